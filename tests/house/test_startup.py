"""What start-up imports: nothing heavy for `--version`, no tool family before the first model request is sent."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from support.house import sources
from support.patience import HANG

PROGRAM = "import sys\nfrom codewhale.cli import main\nsys.argv[0] = 'codewhale'\nsys.exit(main())\n"
IMPORTED = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$", re.M)


def imported(home: Path, *arguments: str) -> tuple[set[str], str]:
    """Modules that a command line imports beyond what Python itself starts with, and its stdout."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV", "PYTEST"))}
    environment |= {"CODEWHALE_HOME": str(home), "FAKE_KEY": "x"}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", PROGRAM, *arguments],
        cwd=home, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    bare = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", ""], env=environment, capture_output=True, text=True, timeout=60
    )
    return set(IMPORTED.findall(done.stderr)) - set(IMPORTED.findall(bare.stderr)), done.stdout


def test_version_imports_next_to_nothing(tmp_path: Path) -> None:
    found, said = imported(tmp_path, "--version")
    assert said.startswith("codewhale ")
    heavy = {"argparse", "asyncio", "msgspec", "pycurl", "subprocess", "json", "dataclasses", "inspect", "ast"}
    assert found & heavy == set()
    assert len([name for name in found if name.startswith("codewhale")]) <= 4, found


class Answering(BaseHTTPRequestHandler):
    """Answers every request with one streamed sentence."""

    def do_POST(self) -> None:
        """One sentence and the end."""
        self.rfile.read(int(self.headers["Content-Length"]))
        chunks = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Done."}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        sent = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The base address of a model server on loopback."""
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


def configure(home: Path, endpoint: str) -> None:
    (home / "config.toml").write_text(
        f'provider = "p"\nmodel = "m"\n[providers.p]\ndialect = "openai-chat"\nbase_url = "{endpoint}"\n'
        'api_key_env = "FAKE_KEY"\n'
    )


def test_a_turn_without_calls_imports_no_tool(tmp_path: Path, endpoint: str) -> None:
    configure(tmp_path, endpoint)
    found, said = imported(tmp_path, "exec", "-w", str(tmp_path), "--yolo", "Say done.")
    assert said == "Done.\n"
    heavy = {"tomlkit", "pypdfium2", "regex", "hypothesis", "openai", "sqlite3", "xml", "difflib"}
    assert found & heavy == set()
    rooms = ("codewhale.tools.", "codewhale.services.", "codewhale.commands.")
    families = {name for name in found if name.startswith(rooms)} - {"codewhale.tools.base", "codewhale.commands.base"}
    assert families == set()
    later = ("codewhale.permissions.constitution", "codewhale.permissions.rules", "codewhale.agent.roles")
    later += ("codewhale.agent.verification", "json", "httpcore2", "anyio", "email", "zipfile", "urllib.parse")
    assert found & set(later) == set()
    at_import = re.compile(r"^\w.*\bre\.compile\(", re.M)
    loaded = {"src/" + name.replace(".", "/") + ".py" for name in found if name.startswith("codewhale")}
    assert sum(len(at_import.findall(source.text)) for source in sources() if source.path in loaded) <= 20


def test_a_run_holds_no_more_than_it_uses_and_no_collection_goes_through_it(tmp_path: Path, endpoint: str) -> None:
    configure(tmp_path, endpoint)
    unused = {"ssl", "typing_extensions"}  # -X importtime lists them: asyncio and msgspec look whether they are there
    code = (
        "import gc, sys\nfrom codewhale.cli import main\n"
        "gc.callbacks.append(lambda phase, info: info['generation'] == 2 and seen.append(gc.get_freeze_count()))\n"
        "seen = []\nsys.argv[0] = 'codewhale'\nmain()\n"
        "print(min(gc.get_freeze_count(), 10**9, *seen) >= 10_000, gc.isenabled())\n"
        f"print({unused} & set(sys.modules))"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, "-c", code, "exec", "-w", str(tmp_path), "--yolo", "Say done."],
        env=environment | {"CODEWHALE_HOME": str(tmp_path), "FAKE_KEY": "x"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert done.stdout == "Done.\nTrue True\nset()\n", done.stderr[-2000:]


SDK_ROOMS = ("src/codewhale/mcp/broker/", "src/codewhale/mcpserver/")


def test_the_sdk_of_mcp_is_loaded_by_the_broker_and_the_server_alone() -> None:
    sdk = re.compile(r"^\s*(from|import) (mcp|mcp_types|httpx2|pydantic|starlette|uvicorn)\b", re.M)
    using = {source.path for source in sources() if sdk.search(source.text)}
    assert using and {path for path in using if not path.startswith(SDK_ROOMS)} == set()


FIRST_PAINT = """
import asyncio, contextlib, json, sys
from codewhale.cli.tui import OPTIONS
from codewhale.tui.running import CodeWhaleApp
from codewhale.display.setup import Setup
from codewhale.protocol.ops import OpenSession

seen = []

@contextlib.asynccontextmanager
async def connect():
    seen.extend(sys.modules)
    app.exit()
    raise OSError
    yield

app = CodeWhaleApp(Setup(connect, OpenSession(sys.argv[1]), sys.argv[1]))
asyncio.run(app.run_async(headless=True))
print(json.dumps(seen))
"""


def test_the_first_frame_of_the_screen_needs_no_engine(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_PAINT, str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    found = set(json.loads(done.stdout.splitlines()[-1]))
    heavy = {"pygments", "markdown_it", "httpcore2", "pycurl", "sqlite3", "tomlkit", "numpy", "hypothesis"}
    assert found & heavy == set()
    ours = {name.split(".")[1] for name in found if name.startswith("codewhale.")}
    assert ours <= {"cli", "config", "display", "lib", "process", "protocol", "tui"}, ours
    screens = {name.rpartition(".")[2] for name in found if name.startswith("codewhale.tui.screens.")}
    assert screens <= {"context", "table"}
    cards = {name.rpartition(".")[2] for name in found if name.startswith("codewhale.tui.asking.")}
    assert cards <= {"asks", "panel"}


def test_completion_loads_nothing_of_the_engine(tmp_path: Path) -> None:
    for words in (["sessions", "show", ""], ["exec", "--provider", ""], ["exec", "--model", ""]):
        found, _ = imported(tmp_path, "completion", "--words", *words)
        heavy = {
            "tomlkit",
            "textual",
            "httpcore2",
            "pycurl",
            "sqlite3",
            "yaml",
            "codewhale.app.compose",
            "codewhale.session.store",
        }
        assert found & heavy == set()
