"""constitution.json as it is found and read."""

from pathlib import Path

import pytest

from codewhale.permissions.constitution import MAX_BYTES, find_constitution, parse_constitution
from codewhale.protocol.decisions import Rule
from codewhale.protocol.errors import ConfigError
from support.repos import make_repo

TEXT = b"""{"schema_version": 1, "authority": ["x"], "branch_policy": {}, "protected_invariants": [
 "say what you do", {"text": "made by\\n a program", "paths": ["gen/**", "*.lock"]},
 {"text": "final", "paths": ["LICENSE"], "action": "block"}, {"text": "no paths"}]}"""


def test_rows_are_numbered_by_their_invariant() -> None:
    assert parse_constitution("c", TEXT) == (
        Rule("ask", path="gen/**", reason="made by a program", source="constitution", row=2),
        Rule("ask", path="*.lock", reason="made by a program", source="constitution", row=2),
        Rule("deny", path="LICENSE", reason="final", source="constitution", row=3),
    )
    assert parse_constitution("c", TEXT)[2].name == "constitution.3"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"{", "not valid JSON"), (b"[]", "JSON object"),
        (b"\xff", "not valid JSON"), (b"[" * 100_000, "nested too deeply"),
        (b'{"schema_version": 2}', "schema_version"), (b'{"protected_invariants": {}}', "protected_invariants"),
        (b'{"protected_invariants": [1]}', r"protected_invariants\[1\]"),
        (b'{"protected_invariants": ["a", {"action": "allow"}]}', r"protected_invariants\[2\]\.action"),
        (b'{"protected_invariants": [{"text": 1}]}', r"\[1\]\.text"),
        (b'{"protected_invariants": [{"paths": ["a", "/"]}]}', r"\[1\]\.paths\[2\]"),
        (b'{"protected_invariants": [{"paths": "a"}]}', r"\[1\]\.paths"), (b" " * (MAX_BYTES + 1), "larger than"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(data: bytes, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        parse_constitution("c.json", data)


def test_the_nearest_one_up_to_the_repository_is_found(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {".codewhale/constitution.json": "{}", "part/x/a": ""})
    assert find_constitution(str(repo / "part" / "x")) == str(repo / ".codewhale" / "constitution.json")
    assert find_constitution(str(repo)) == str(repo / ".codewhale" / "constitution.json")
    (tmp_path / ".codewhale").mkdir()
    (tmp_path / ".codewhale" / "constitution.json").write_text("{}")
    (tmp_path / "bare").mkdir()
    assert find_constitution(str(tmp_path / "bare")) == ""
    plain = make_repo(tmp_path / "plain", {"a": ""})
    assert find_constitution(str(plain)) == ""
