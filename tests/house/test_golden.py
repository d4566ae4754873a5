"""The bytes every session begins with, checked in: the tools array and the system text of an empty workspace.

A difference here is a difference in every user's prefix cache: look at it, then write the files again with
`make golden`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.protocol.modes import Authority, Mode
from codewhale.testing import harness
from support.patience import HANG

GOLDEN = Path(__file__).resolve().parent / "golden"
HEADS = {
    "tools.openai-chat.json": ("head", "--dialect", "openai-chat"),
    "tools.openai-chat.arcee.json": ("head", "--dialect", "openai-chat", "--profile", "arcee"),
    "tools.openai-chat.compact.json": ("head", "--dialect", "openai-chat", "--profile", "compact"),
    "tools.openai-chat.intent.json": ("head", "--dialect", "openai-chat", "--profile", "intent"),
    "system.txt": ("head", "--system"),
    "system.arcee.txt": ("head", "--system", "--profile", "arcee"),
    "system.compact.txt": ("head", "--system", "--profile", "compact"),
    "system.intent.txt": ("head", "--system", "--profile", "intent"),
}


def head(arguments: tuple[str, ...], hash_seed: str = "0") -> bytes:
    """What the front door prints for one head in an empty workspace and an empty home."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "CODEWHALE_HOME": empty, "HOME": empty, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", "from codewhale.cli import main; raise SystemExit(main())", "tools", *arguments],
            cwd=empty, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_head_bytes_are_the_ones_checked_in(name: str, hash_seed: str) -> None:
    assert head(HEADS[name], hash_seed) == (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("profile", ["", "arcee", "compact", "intent"])
@pytest.mark.parametrize("mode", list(Mode))
async def test_every_mode_sends_the_head_checked_in(mode: Mode, profile: str, tmp_path: Path) -> None:
    tools = (GOLDEN / f"tools.openai-chat{profile and '.'}{profile}.json").read_bytes()
    (body,) = await bodies(tmp_path, f'[tools]\nprofile = "{profile}"\n', mode=mode)
    assert body.count(b'"tools":' + tools) == 1
    sent = msgspec.json.decode(body)
    assert sent["messages"][0]["content"] == (GOLDEN / f"system{profile and '.'}{profile}.txt").read_text()


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ('[tools]\ndisabled = ["exec_shell", "exec_shell_wait", "exec_shell_interact", "run_tests"]\n', True),
        ("", False),
        ('[tools]\ndisabled = ["git_status"]\nrepair = "off"\n', False),
    ],
    ids=["no shell", "no programs", "neither"],
)
@pytest.mark.parametrize("authority", list(Authority))
async def test_what_is_allowed_or_installed_changes_no_byte(
    config: str, path: bool, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not path:
        monkeypatch.setenv("PATH", str(tmp_path))
    (body,) = await bodies(tmp_path, config, mode=Mode.AGENT, authority=authority)
    assert body.count(b'"tools":' + (GOLDEN / "tools.openai-chat.json").read_bytes()) == 1


async def bodies(tmp_path: Path, config: str, **fields: Any) -> list[bytes]:
    """The requests of a turn in an empty workspace; fields are those of OpenSession."""
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    workspace.mkdir()
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(config)
    async with harness(home, workspace, [{"text": "Done."}]) as agent:
        await agent.turn("Say done.", await agent.open(**fields))
        return list(agent.provider.requests)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for file, words in HEADS.items():
        (GOLDEN / file).write_bytes(head(words))
