"""constitution.json as it is found and read."""

from pathlib import Path

import pytest

from codewhale.permissions.clauses import MAX_BYTES, parse_clauses
from codewhale.permissions.constitution import read_constitution
from codewhale.permissions.constitution_files import find_constitution
from codewhale.protocol.decisions import Rule
from codewhale.protocol.errors import ConfigError
from support.repos import make_repo, raw_git

TEXT = b"""{"schema_version": 1, "authority": ["x"], "branch_policy": {}, "protected_invariants": [
 "say what you do", {"text": "made by\\n a program", "paths": ["gen/**", "*.lock"]},
 {"text": "final", "paths": ["LICENSE"], "action": "block"}, {"text": "no paths"}]}"""


def test_rows_are_numbered_by_their_invariant() -> None:
    clauses = parse_clauses("c", TEXT).clauses
    assert tuple(rule for clause in clauses for rule in clause.rules) == (
        Rule("ask", path="gen/**", reason="made by a program", source="constitution", row=2),
        Rule("ask", path="*.lock", reason="made by a program", source="constitution", row=2),
        Rule("deny", path="LICENSE", reason="final", source="constitution", row=3),
    )
    assert [clause.rule for clause in clauses if clause.held] == ["constitution.2", "constitution.3"]


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
        parse_clauses("c.json", data)


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


EVERY = b"""{"schema_version": 1, "authority": ["The owners decide."], "protected_invariants": ["be kind",
 {"id": "LIC-1", "paths": ["LICENSE"], "action": "block"}], "branch_policy": {"protected": ["main"], "text": "ours"},
 "verification_policy": {"before_claiming_done": ["look twice", {"text": "tests", "command": "make  test"},
 {"tool": "run_tests"}]}, "escalate_when": ["unsure", {"text": "money", "commands": ["terraform apply"],
 "paths": ["infra/**"], "tools": ["fetch_url"]}], "mascot": "whale"}"""


def test_every_field_becomes_clauses_and_an_unknown_one_a_notice() -> None:
    law = parse_clauses("c.json", EVERY)
    assert [(clause.kind, clause.row, clause.held) for clause in law.clauses] == [
        ("authority", 1, False), ("invariant", 1, False), ("invariant", 2, True), ("branch", 1, True),
        ("verification", 1, False), ("verification", 2, True), ("verification", 3, True), ("escalation", 1, False),
        ("escalation", 2, True),
    ]  # fmt: skip
    (notice,) = law.notices
    assert "c.json: mascot: " in notice
    assert law.clauses[2].id == "LIC-1" and law.clauses[5].command == "make test" and law.clauses[6].tool == "run_tests"


def test_an_id_stays_with_its_clause_whatever_is_changed_elsewhere() -> None:
    before = {clause.text: clause.id for clause in parse_clauses("c", EVERY).clauses}
    grown = EVERY.replace(b'["be kind"', b'["first", "be kind"').replace(b'"look twice", ', b"")
    after = {clause.text: clause.id for clause in parse_clauses("c", grown).clauses}
    assert {text: after[text] for text in after.keys() & before.keys()} == {
        text: before[text] for text in before.keys() - {"look twice"}
    }
    twice = parse_clauses("c", b'{"authority": ["x", "x", "y"]}').clauses
    assert len({clause.id for clause in twice}) == 3


@pytest.mark.parametrize(
    "policy", ['["main"]', '{"protected_branches": ["main"]}', '{"branches": ["refs/heads/main"]}']
)
def test_the_forms_of_a_branch_policy_come_to_the_same(policy: str) -> None:
    (clause,) = parse_clauses("c", b'{"branch_policy": %s}' % policy.encode()).clauses
    assert (clause.branches, clause.action) == (("main",), "ask")
    (told,) = parse_clauses("c", b'{"branch_policy": "Work on branches."}').clauses
    assert not told.held and told.text == "Work on branches."


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b'{"authority": 3}', "authority: must be a list"), (b'{"authority": [[]]}', r"authority\[1\]: must be a text"),
        (b'{"branch_policy": 3}', "branch_policy: must be"),
        (b'{"branch_policy": [3]}', "branch_policy: must be"),
        (b'{"branch_policy": {"protected": "main"}}', r"branch_policy\.protected: must be a list"),
        (b'{"branch_policy": {"action": []}}', r"branch_policy\.action: must be one of"),
        (b'{"verification_policy": []}', "verification_policy: must be"),
        (b'{"verification_policy": {"before_claiming_done": [{"command": 1}]}}', r"done\[1\]\.command: must be a text"),
        (b'{"verification_policy": {"before_claiming_done": [{"tool": "x"}]}}', r"done\[1\]\.tool: must be"),
        (b'{"escalate_when": [{"commands": ["a \\"b"]}]}', r"escalate_when\[1\]\.commands\[1\]"),
        (b'{"escalate_when": [{"tools": [1]}]}', r"escalate_when\[1\]\.tools\[1\]"),
        (b'{"authority": [{"id": "9"}]}', r"authority\[1\]\.id: must be"),
        (b'{"authority": [{"id": "A", "text": "x"}, {"id": "a", "text": "y"}]}', "two clauses"),
    ],
)  # fmt: skip
def test_a_wrong_type_names_the_field_and_what_is_expected(data: bytes, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        parse_clauses("c.json", data)


def test_of_a_worktree_the_law_of_its_checkout_counts(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {".codewhale/constitution.json": "{}", "part/a": ""})
    raw_git(repo, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "tree")
    own = str(repo / ".codewhale" / "constitution.json")
    law = read_constitution(str(tmp_path / "tree" / "part"), lambda path, sha256: path == own)
    assert (law.path, law.law.folder) == (own, "part")
    assert law.untrusted == (str(tmp_path / "tree" / ".codewhale" / "constitution.json"),)
