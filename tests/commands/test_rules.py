"""/rules lists what the model is told with source and mode, and says which of it is for a file and why."""

import json
from pathlib import Path

from codewhale.permissions.trust import TrustStore
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.skills.rule_folders import rule_paths
from codewhale.testing import harness


def put(workspace: Path, path: str, text: str) -> None:
    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (workspace / path).write_text(text)


async def said(home: Path, workspace: Path, *lines: str) -> list[CommandOutput]:
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        session = await agent.open()
        return [await agent.client.submit(RunCommand(session, line)) for line in lines]


async def test_each_rule_stands_under_when_it_applies(home: Path, workspace: Path) -> None:
    put(workspace, "AGENTS.md", "Be brief.\n")
    put(workspace, ".cursor/rules/ts.mdc", "---\nglobs: *.ts\n---\nUse tabs.\n")
    put(workspace, ".windsurfrules", "Use tabs.\n")
    put(workspace, ".clinerules/off.md", "---\npaths: []\n---\nUse tabs.\n")
    put(workspace, ".github/instructions/sql.instructions.md", "---\ndescription: For SQL\n---\nUse tabs.\n")
    trust = TrustStore(str(home))
    for standing in trust.survey(str(workspace), rule_paths(str(workspace))):
        trust.add(standing)
    put(workspace, ".claude/rules/new.md", "Use spaces.\n")
    shown, data, why, none = await said(
        home, workspace, "/rules", "/rules json", "/rules why src/a.ts", "/rules why src/a.ts json"
    )
    always, by_glob, offered, unused, _ = shown.text.split("\n\n")
    assert "AGENTS.md" in always and "windsurf: .windsurfrules" in always and "10 bytes" in always
    assert "*.ts  (cursor: .cursor/rules/ts.mdc)" in by_glob
    assert "For SQL  (copilot: .github/instructions/sql.instructions.md)" in offered
    assert "never applies" in unused and "codewhale trust add" in unused and ".claude/rules/new.md" in unused
    rows = {row["source"]: row for row in json.loads(data.text)["rules"]}
    assert rows[".cursor/rules/ts.mdc"]["globs"] == ["*.ts"] and rows["AGENTS.md"]["mode"] == "always"
    assert "by the glob *.ts" in why.text and "AGENTS.md" in why.text and "SQL" not in why.text
    assert [row["glob"] for row in json.loads(none.text)["rules"]] == ["", "*.ts", ""]


LAW = {
    "protected_invariants": [
        {"id": "gen", "text": "Made by a program.", "paths": ["src/gen/**"], "action": "block"},
        {"id": "kind", "text": "Be kind to readers."},
    ],
    "branch_policy": {"id": "trunk", "protected": ["main"]},
    "verification_policy": {"before_claiming_done": [{"id": "checks", "command": "make test"}]},
}


async def test_of_the_constitution_it_says_what_is_held_and_what_is_told(home: Path, workspace: Path) -> None:
    put(workspace, ".codewhale/constitution.json", json.dumps(LAW))
    (waiting,) = await said(home, workspace, "/rules")
    assert "constitution.json: not trusted; to use it: codewhale trust add" in waiting.text
    trust = TrustStore(str(home))
    for standing in trust.survey(str(workspace)):
        trust.add(standing)
    shown, why, data, other = await said(
        home, workspace, "/rules", "/rules why src/gen/a.py", "/rules why ./src/gen/a.py json", "/rules why src/a.py"
    )
    held, spoken, _ = shown.text.split("\n\n")
    lines = {line.split()[0]: line for line in held.splitlines()[1:]}
    assert set(lines) == {"gen", "trunk", "checks"} and ".codewhale/constitution.json" in held
    assert "blocks changes of src/gen/**  Made by a program." in lines["gen"]
    assert "asks before changes of main" in lines["trunk"] and "make test" in lines["checks"]
    assert "kind" in spoken and "Be kind to readers." in spoken
    assert "held  gen" in why.text and "trunk" not in why.text
    assert [row["id"] for row in json.loads(data.text)["clauses"]] == ["gen"]
    assert "No rule applies" in other.text
    put(workspace, ".codewhale/constitution.json", "{")
    for standing in trust.survey(str(workspace)):
        trust.add(standing)
    (broken,) = await said(home, workspace, "/rules")
    assert broken.ok and "not valid JSON" in broken.text


async def test_without_rules_it_says_where_to_write_them(home: Path, workspace: Path) -> None:
    nothing, no_rule = await said(home, workspace, "/rules", "/rules why a.py")
    assert ".codewhale/rules" in nothing.text and "No rule applies to a.py" in no_rule.text


async def test_what_cannot_be_asked_is_refused_with_what_can(home: Path, workspace: Path) -> None:
    wrong = await said(home, workspace, "/rules why", "/rules what", "/rules json x", "/rules why ../../etc/passwd")
    assert all(not one.ok for one in wrong)
    assert "/rules why PATH" in wrong[0].text and "outside the workspace" in wrong[3].text


async def test_one_that_is_switched_off_is_told_with_the_way_back(home: Path, workspace: Path) -> None:
    put(home, "rules/house.md", "Use tabs.\n")
    off, shown, on, again = await said(
        home, workspace, "/skills off house", "/rules", "/skills on user-rules:house", "/rules"
    )
    assert off.ok and "switched off; to use it: /skills on house" in shown.text
    assert on.ok and "  house " in again.text and "switched off" not in again.text
    off, shown = await said(home, workspace, "/skills off .cursor/rules", "/skills off nothing")
    assert off.ok and not shown.ok
