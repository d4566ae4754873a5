"""What is switched off: kept in a file, by name, full name or place, whoever writes at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

from codewhale.protocol.errors import ConfigError
from codewhale.skills.model import Skill
from codewhale.skills.switches import Off, Switches
from support.patience import HANG

PDF = Skill("pdf", "d", "p", "f", space="agents")


def test_without_a_file_all_is_on(home: Path) -> None:
    assert Switches(str(home)).read() == Off() and not Off().covers(PDF, "skills")


@pytest.mark.parametrize("off", [Off(("pdf",)), Off(("agents:pdf",)), Off((), (".agents/skills",))])
def test_a_name_a_full_name_or_a_place_is_off(off: Off) -> None:
    assert off.covers(PDF, ".agents/skills")
    assert not off.covers(Skill("pdfs", "d", "p", "f", space="agents"), "skills")


def test_what_is_written_is_kept_and_other_lines_stay(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "skills_state.toml").write_text('# mine\ndisabled = ["a"]\n')
    switches = Switches(str(home))
    switches.change("disabled", 'odd "name\x7f', off=True)
    switches.change("places_off", "~/.claude/skills", off=True)
    switches.change("disabled", "a", off=False)
    switches.change("disabled", "a", off=False)
    assert Switches(str(home)).read() == Off(('odd "name\x7f',), ("~/.claude/skills",))
    assert (home / "skills_state.toml").read_text().startswith("# mine\n")


@pytest.mark.parametrize("text", ["disabled = 3", "disabled = [1]", "disabled = [", "\udcff"])
def test_a_damaged_file_leaves_all_on_and_is_not_written_over(text: str, home: Path) -> None:
    home.mkdir(exist_ok=True)
    file = home / "skills_state.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = file.read_bytes()
    off = Switches(str(home)).read()
    assert not off.disabled and "all skills are on" in off.problem
    with pytest.raises(ConfigError, match="all skills are on"):
        Switches(str(home)).change("disabled", "a", off=True)
    assert file.read_bytes() == before


def test_two_processes_at_once_lose_nothing(home: Path) -> None:
    home.mkdir(exist_ok=True)
    program = (
        "import sys\nfrom codewhale.skills.switches import Switches\n"
        "for n in range(15): Switches(sys.argv[1]).change('disabled', f'{sys.argv[2]}{n}', off=True)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, home, who]) for who in "ab"]
    assert [one.wait(HANG) for one in running] == [0, 0]
    assert set(Switches(str(home)).read().disabled) == {f"{who}{n}" for who in "ab" for n in range(15)}
