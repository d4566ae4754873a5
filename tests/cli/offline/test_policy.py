"""What would be decided about command lines, rules included."""

from pathlib import Path

import pytest

from codewhale.cli.offline.policy import CheckOptions, PolicyCheck, checked, told
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.modes import Mode


def check(home: Path, mode: Mode = Mode.AGENT, rules: str = "", user: bool = True) -> PolicyCheck:
    """A check in a workspace below a home."""
    options = CheckOptions(str(home), mode, rules, user)
    return PolicyCheck(options, {"HOME": str(home), "CODEWHALE_HOME": str(home)})


def test_rules_of_a_file_and_of_the_person_count(tmp_path: Path) -> None:
    (tmp_path / "permissions.toml").write_text('allow = ["npm test"]\n')
    more = tmp_path / "more.toml"
    more.write_text('deny = ["npm"]\n')
    assert check(tmp_path).judge("npm test").verdict == "allow"
    assert check(tmp_path, user=False).judge("npm test").verdict == "ask"
    assert check(tmp_path, rules=str(more)).judge("npm test").verdict == "deny"
    with pytest.raises(ConfigError, match="no such file"):
        check(tmp_path, rules=str(tmp_path / "absent"))


def test_modes_differ_and_the_floor_does_not(tmp_path: Path) -> None:
    verdicts = {mode: check(tmp_path, mode).judge("npm test").verdict for mode in Mode}
    assert verdicts == {Mode.PLAN: "deny", Mode.AGENT: "ask", Mode.YOLO: "allow"}
    assert {check(tmp_path, mode).judge("rm -rf /").verdict for mode in Mode} == {"deny"}


def test_lines_are_answered_in_order_and_bad_ones_said(tmp_path: Path) -> None:
    lines = iter([b'{"id":1,"cmd":"ls","more":2}', b"x", b'{"id":3}', b'{"id":"4","cmd":"rm -rf ~"}'])
    answers = list(checked(lines, check(tmp_path)))
    assert [readable for _, readable in answers] == [True, False, False, True]
    assert answers[0][0]["decision"] == "allow" and set(answers[0][0]) == {
        "id",
        "decision",
        "rule",
        "reason",
        "sandbox",
    }
    assert [answer["line"] for answer, readable in answers if not readable] == [2, 3]
    assert (answers[3][0]["id"], answers[3][0]["decision"], answers[3][0]["rule"]) == ("4", "deny", "floor.destroy")
    assert set(told(check(tmp_path).judge("ls"))) == {"decision", "rule", "reason", "sandbox"}
