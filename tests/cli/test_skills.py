"""`codewhale skills check` as a person and a script call it."""

import json
from pathlib import Path

from support.program import codewhale_program

GOOD = "---\nname: {}\ndescription: d\n---\n"


def put(folder: Path, text: str) -> Path:
    """A skill."""
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text.format(folder.name))
    return folder


def test_each_fault_is_a_line_and_the_exit_code_says_whether_there_is_one(tmp_path: Path) -> None:
    put(tmp_path / "good", GOOD)
    put(tmp_path / "Bad", "---\nname: worse\ndescription: d\nauthor: me\n---\n")
    done = codewhale_program(tmp_path, "skills", "check", "good")
    assert (done.returncode, done.stdout) == (0, "good: valid\n")
    done = codewhale_program(tmp_path, "skills", "check", "good", "Bad/")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "good: valid",
        "Bad: 'author' is no field of the standard",
        "Bad: its name is not that of its folder, 'Bad'",
    ]
    done = codewhale_program(tmp_path, "skills", "check", "--json", "good", "Bad")
    assert done.returncode == 1
    assert [(row["path"], row["valid"], len(row["faults"])) for row in json.loads(done.stdout)] == [
        ("good", True, 0), ("Bad", False, 2),
    ]  # fmt: skip


def test_a_folder_of_skills_stands_for_all_of_them(tmp_path: Path) -> None:
    put(tmp_path / "skills/one", GOOD)
    put(tmp_path / "skills/group/two\x1b[2J", GOOD)
    done = codewhale_program(tmp_path, "skills", "check", "skills")
    assert done.returncode == 1 and "skills/one: valid" in done.stdout
    assert r"two\x1b[2J: " in done.stdout and "\x1b" not in done.stdout


def test_wrong_usage_is_told_from_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words in (["check", "nowhere"], ["check", "file"], ["check"], []):
        done = codewhale_program(tmp_path, "skills", *words)
        assert done.returncode == 2 and not done.stdout
