"""The bytes every session begins with, checked in: the tools array and the system text of an empty workspace.

A difference here is a difference in every user's prefix cache: look at it, then write the files again with
`make golden`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from codewhale.protocol.modes import Mode
from codewhale.testing import harness

GOLDEN = Path(__file__).resolve().parent / "golden"
HEADS = {"tools.openai-chat.json": ("head", "--dialect", "openai-chat"), "system.txt": ("head", "--system")}


def head(arguments: tuple[str, ...], hash_seed: str = "0") -> bytes:
    """What the front door prints for one head in an empty workspace and an empty home."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "CODEWHALE_HOME": empty, "HOME": empty, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", "from codewhale.cli import main; raise SystemExit(main())", "tools", *arguments],
            cwd=empty, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_head_bytes_are_the_ones_checked_in(name: str, hash_seed: str) -> None:
    assert head(HEADS[name], hash_seed) == (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("mode", list(Mode))
async def test_every_mode_sends_the_head_checked_in(mode: Mode, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with harness(tmp_path / "home", workspace, [{"text": "Done."}]) as agent:
        await agent.turn("Say done.", await agent.open(mode=mode))
    tools = (GOLDEN / "tools.openai-chat.json").read_bytes()
    assert agent.provider.requests[0].count(b'"tools":' + tools) == 1
    sent = msgspec.json.decode(agent.provider.requests[0])
    assert sent["messages"][0]["content"] == (GOLDEN / "system.txt").read_text()


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for file, words in HEADS.items():
        (GOLDEN / file).write_bytes(head(words))
