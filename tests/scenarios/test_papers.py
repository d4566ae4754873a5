"""Every command of the pages that people start with runs as it stands there."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.house import ROOT
from support.patience import HANG
from support.program import codewhale_program, configure
from support.repos import commit, make_repo
from support.terminal import Terminal, environment
from support.wire import Reply, Wire, delta, sse, stream

PAGES = [
    "README.md",
    *(f"docs/{name}.md" for name in ("getting-started", "daily-use", "safety", "headless", "connect")),
]
SCREENS = ("codewhale", "codewhale --continue")  # what opens the interface
# Other exit codes, where they say something about the machine or about the command that was asked about.
JUDGES = {"codewhale doctor": (1,), "codewhale sandbox": (1,), "codewhale policy check": (4,)}
SCRIPTED = 'provider = "scripted"\nmodel = "m"\n[providers.scripted]\ndialect = "scripted"\nscript = {script}\n'
SET_UP = ("make ", ". .venv")


def lines(page: str) -> list[str]:
    """The command lines of a page, without the remarks behind them."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)
    found = [re.sub(r"\s+#.*", "", line) for block in blocks for line in block.splitlines()]
    return [line for line in found if line and not line.startswith(SET_UP)]


COMMANDS = sorted({line for page in PAGES for line in lines(page)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a scripted model and a session, a repository, and a key in a file."""
    top = tmp_path_factory.mktemp("papers")
    home, work = top / "home", make_repo(top / "work", {"basket.py": "def total(prices):\n    return sum(prices)\n"})
    home.mkdir(mode=0o700)
    commit(work, {"key.txt": "sk-made-up\n"}, "Add a discount")
    (home / "script.jsonl").write_text(json.dumps({"text": "Done."}) + "\n")
    (home / "config.toml").write_text(SCRIPTED.format(script=json.dumps(str(home / "script.jsonl"))))
    subprocess.run(
        [sys.executable, "-m", "codewhale", "exec", "Hello."], cwd=work, env=environment(home), check=True, timeout=100
    )
    return top


PLACES = re.findall(r'`(provider = "[^`]+)`, `(model = "[^`]+)`', (ROOT / "docs" / "connect.md").read_text())


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0].split('"')[1])
def test_each_row_of_configuration_is_all_that_is_needed(tmp_path: Path, place: tuple[str, str]) -> None:
    configure(tmp_path, "\n".join(place) + "\n")
    name, model = (text.split('"')[1] for text in place)
    done = codewhale_program(tmp_path, "model", "resolve", model, "--provider", name)
    assert done.returncode == 0 and model in done.stdout and name in done.stdout, done.stdout + done.stderr


def test_twelve_providers_and_four_servers_have_a_row() -> None:
    assert len(PLACES) == 16


def test_there_are_commands_on_each_page() -> None:
    assert all(lines(page) for page in PAGES) and len(COMMANDS) > 20


@pytest.mark.parametrize("line", COMMANDS)
async def test_each_command_of_the_pages_runs(folder: Path, line: str) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}
    spoken = stream(sse(delta(content="Hello."), delta("stop"), usage, "[DONE]"))
    async with Wire([Reply([spoken])] * 9) as server:
        mine = SCRIPTED.format(script=json.dumps(str(folder / "home" / "script.jsonl")))
        (folder / "home" / "config.toml").write_text(f'{mine}[providers.deepseek]\nbase_url = "{server.url}"\n')
        env = {**environment(folder / "home"), "DEEPSEEK_API_KEY": "sk-made-up"}
        if line in SCREENS:
            await asyncio.to_thread(opens, line, env, folder / "work")
            return
        argv = ["/bin/sh", "-c", line]
        done = await asyncio.to_thread(
            subprocess.run,
            argv,
            cwd=folder / "work",
            env=env,
            capture_output=True,
            text=True,
            timeout=HANG,
            stdin=subprocess.DEVNULL,
        )
    usual = {0, *next((codes for words, codes in JUDGES.items() if line.startswith(words)), ())}
    assert done.returncode in usual, done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def opens(line: str, env: dict[str, str], work: Path) -> None:
    """The interface comes up and ends."""
    with Terminal(["/bin/sh", "-c", f"exec {line}"], env, cwd=work) as term:
        term.sees("scripted/m")
        term.type("\x04")
        assert term.wait() == 0
