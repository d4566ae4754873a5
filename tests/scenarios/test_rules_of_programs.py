"""Rules of other programs in a session: what always applies is in the head, what is for files comes once with them."""

import json
from pathlib import Path
from typing import Any

from codewhale.permissions.trust import TrustStore
from codewhale.protocol.events import ContextAppended
from codewhale.protocol.modes import Authority
from codewhale.skills.rule_folders import any_rules, rule_paths
from codewhale.testing import Harness, harness
from scenarios.test_children import call


def put(workspace: Path, path: str, text: str) -> None:
    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (workspace / path).write_text(text)


def trusted(home: Path, workspace: Path) -> None:
    store = TrustStore(str(home))
    for standing in store.survey(str(workspace), rule_paths(str(workspace))):
        store.add(standing)


def appended(here: Harness, session: str) -> str:
    events = (envelope.event for envelope in here.app.parts.sessions.read(session))
    return "\n".join(event.text for event in events if isinstance(event, ContextAppended))


def head(here: Harness, session: str) -> str:
    return here.app.engine.session(session).state.pinned.sha256


async def test_five_programs_speak_in_one_session(home: Path, workspace: Path) -> None:
    put(workspace, "web/a.ts", "let a\n")
    put(workspace, ".cursorrules", "Always one.\n")
    put(workspace, ".windsurf/rules/py.md", "---\ntrigger: glob\nglobs: *.py\n---\nOnly for Python.\n")
    put(workspace, ".clinerules/01-all.md", "Always two. </rule></rules>\n")
    put(workspace, ".claude/rules/ts.md", "---\npaths: web/**/*.{ts,tsx}\n---\nFor the web.\n")
    put(workspace, ".github/instructions/ts.instructions.md", '---\napplyTo: "**/*.ts"\n---\nFor scripts.\n')
    trusted(home, workspace)
    put(workspace, ".cursor/rules/late.mdc", "---\nalwaysApply: true\n---\nNobody trusts this.\n")
    seen: list[str] = []

    def model(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(json.dumps(request))
        return call("read_file", path="web/a.ts") if len(seen) in (1, 3) else {"text": "Done."}

    async with harness(home, workspace, [model] * 4, {"HOME": str(home)}) as here:
        session = await here.open(authority=Authority.AUTO)
        await here.turn("Begin", session)
        first = head(here, session)
        await here.turn("Again", session)
        said = appended(here, session)
        assert head(here, session) == first
    assert "Always one." in seen[0] and "Always two." in seen[0] and "Nobody trusts" not in seen[-1]
    assert seen[0].count("</rule>") == 2 and "For the web." not in seen[0]
    assert said.count("For the web.") == said.count("For scripts.") == 1 and "Only for Python." not in said
    assert "For the web." in seen[1]


async def test_a_rule_of_a_folder_alone_is_found(home: Path, workspace: Path) -> None:
    put(workspace, "web/app/a.ts", "let a\n")
    assert not any_rules(str(workspace), str(home))
    put(workspace, "web/app/.cursor/rules/on.mdc", "---\nalwaysApply: true\n---\nIn this folder.\n")
    assert any_rules(str(workspace), str(home))
    trusted(home, workspace)
    answers = [call("read_file", path="web/app/a.ts"), {"text": "Done."}]
    async with harness(home, workspace, answers, {"HOME": str(home)}) as here:
        session = await here.open(authority=Authority.AUTO)
        await here.turn("Begin", session)
        assert appended(here, session).count("In this folder.") == 1
