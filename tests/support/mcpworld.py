"""A home and a workspace with MCP servers in it: a copy of the server of notes that a test may change, its entry."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from codewhale.app.mcpparts import open_servers
from codewhale.lib.clock import SystemClock
from codewhale.mcp.config import config_files, read_config
from codewhale.mcp.remembered import RememberedOffers
from codewhale.mcp.terms import OfferedTool, ServerOffer

SERVERS = Path(__file__).with_name("mcpservers")


class McpWorld:
    """One. `script` is the server's program, `log` what it wrote."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "state", folder / "work"
        self.home.mkdir(mode=0o700)
        self.work.mkdir()
        place = folder / "server"
        place.mkdir()
        self.script = place / "notes.py"
        shutil.copy(SERVERS / "notes.py", self.script)
        self.log = place / "log"
        self.file = self.home / "mcp.json"

    def entry(self, **more: Any) -> dict[str, Any]:
        """The server of notes."""
        return {"command": sys.executable, "args": [str(self.script)], "connect_timeout": 120, **more}

    def name(self, file: Path | None = None, **servers: Any) -> None:
        """Write the file, the person's own where no other is given."""
        path = file or self.file
        path.write_text(json.dumps({"servers": servers}))
        path.chmod(0o600)

    def approve(self, *names: str) -> None:
        """Approve servers as they are now."""
        service = open_servers(str(self.home), str(self.work), str(self.file), {"PATH": "/usr/bin:/bin"})
        for name in names:
            pending = service.pending(name)
            if pending is not None:
                service.approve(name, pending.fingerprint)

    @property
    def calls(self) -> list[str]:
        """What the server has noted of its starts and calls."""
        return self.log.read_text().splitlines() if self.log.exists() else []


def remember(world: McpWorld, servers: dict[str, list[OfferedTool]]) -> None:
    """Let servers be known by what they offered last time; each would be a program that ends at once."""
    world.name(**{name: {"command": "false"} for name in servers})
    configured = read_config(config_files(str(world.file), str(world.work)))
    kept = RememberedOffers(str(world.home), SystemClock())
    for server in configured.servers:
        kept.put(server.key, server.digest, ServerOffer(server.name, tools=tuple(servers[server.name])))
