"""What a person wants remembered: in the head of new sessions, an update in running ones, gone when it was cleared."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codewhale.memory.places import workspace_folder
from codewhale.memory.service import Memory
from codewhale.protocol.events import ContextAppended, HeaderPinned, PrefixInvalidated, TextForgotten
from codewhale.protocol.memory import GetFacts
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.protocol.views import GetContext
from codewhale.session.forgetting import holder
from codewhale.testing import Harness, harness
from codewhale.tui.screens.layers import NOTES
from scenarios.test_children import call

FACT = "The staging database listens on port 5433."
OTHER = "Commit messages are one imperative sentence."


async def run(here: Harness, session: str, line: str) -> CommandOutput:
    return await here.client.submit(RunCommand(session, line))


async def opened(here: Harness, **fields: Any) -> str:
    return await here.open(mode=Mode.AGENT, authority=Authority.PERSON, **fields)


def log(here: Harness, session: str) -> list[Any]:
    return [envelope.event for envelope in here.app.parts.sessions.read(session)]


def systems(here: Harness) -> list[str]:
    return [json.loads(body)["messages"][0]["content"] for body in here.provider.requests]


def files_with(home: Path, text: str) -> list[str]:
    """The files below a folder that hold a text, in whatever form."""
    holds = holder((text,))
    return sorted(
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and (text.encode() in path.read_bytes() or holds(path.read_text(errors="replace")))
    )


@pytest.fixture
def texts(home: Path, workspace: Path) -> Iterator[None]:
    (home / "memory/global").mkdir(parents=True)
    (home / "memory/global/MEMORY.md").write_text(f"# Mine\n\n- {OTHER}\n")
    yield


async def test_facts_stand_in_the_head_of_a_new_session_as_the_users_notes(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "ok"}] * 4) as here:
        first = await opened(here)
        assert (await run(here, first, f"/memory add {FACT}")).ok
        assert (await run(here, first, f"/memory add global {OTHER}")).ok
        await here.turn("Go", await opened(here))
        (system,) = systems(here)
        block = system[system.index("# The user's notes") : system.index("</user_memory>")]
        assert f"- {FACT}" in block and f"- {OTHER}" in block and "not orders" in block
        shown = (await run(here, first, "/memory")).text
        assert FACT in shown and OTHER in shown and "not sent" not in shown


async def test_a_fact_that_is_to_be_edited_is_handed_out_with_its_text(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as here:
        session = await opened(here)
        name = (await run(here, session, f"/memory add {FACT}")).text.split()[4]
        handed = await run(here, session, f"/memory edit {name[:4]}")
        assert handed.ok and handed.draft == f"/memory edit {name} {FACT}"
        assert (await run(here, session, f"{handed.draft} Since May.")).ok
        (fact,) = await here.client.query(GetFacts(str(workspace)))
        assert (fact.id, fact.text, fact.unsent) == (name, f"{FACT} Since May.", False)
        other = FACT.replace("5433", "5434")
        assert (await run(here, session, f"/memory add {other}")).ok
        older, newer = await here.client.query(GetFacts(str(workspace)))
        assert older.newer == newer.id and older.unsent and not newer.unsent
        assert not (await run(here, session, "/memory edit zzzz")).ok


async def test_the_layers_say_what_waits_and_every_note_has_words_in_both_languages(
    home: Path, workspace: Path
) -> None:
    turns = [call("remember", fact="Deploys run on Fridays."), {"text": "ok"}]
    async with harness(home, workspace, turns) as here:
        session = await opened(here)
        for text in (FACT, FACT.replace("5433", "5434")):
            assert (await run(here, session, f"/memory add {text}")).ok
        await here.turn("Go", session)
        rows = (await here.client.query(GetContext(session))).rows
        assert rows[0].note == "1 of 2 facts are sent; 1 wait for you: /memory waiting"
        notes = {re.sub(r"\d+", "#", note) for row in rows for note in row.note.split("; ") if note}
        assert len(notes) > 5 and notes <= {*NOTES}


async def test_a_running_session_hears_of_an_edit_once_and_its_head_stands(
    home: Path, workspace: Path, texts: None
) -> None:
    async with harness(home, workspace, [{"text": "ok"}] * 40) as here:
        session = await opened(here)
        for number in range(20):
            await here.turn(f"Turn {number}", session)
            if number == 9:
                path = home / "memory/global/MEMORY.md"
                path.write_text(path.read_text() + f"- {FACT}\n")
        assert len(set(systems(here))) == 1
        told = [one for one in log(here, session) if isinstance(one, ContextAppended) and one.kind == "memory"]
        assert len(told) == 1 and FACT in told[0].text and OTHER in told[0].text
        assert not [one for one in log(here, session) if isinstance(one, PrefixInvalidated)]


async def test_use_changes_nothing_that_a_running_session_was_told(home: Path, workspace: Path) -> None:
    (home / "memory/global").mkdir(parents=True)
    lines = "".join(f"- The service number {number} is called whale{number}.\n" for number in range(60))
    (home / "memory/global/MEMORY.md").write_text(lines)
    async with harness(home, workspace, [{"text": "ok"}] * 9) as here:
        session = await opened(here)
        await here.turn("One", session)
        memory = here.app.parts.memory.facts
        memory.used([fact.id for fact in memory.facts(str(workspace))[:20]])
        await here.turn("Two", session)
        assert not [one for one in log(here, session) if isinstance(one, ContextAppended) and one.kind == "memory"]
        await here.turn("Three", await opened(here))
        assert "whale0." in systems(here)[-1] and systems(here)[-1] != systems(here)[0]
        assert systems(here)[-1].count("- The service number") == 32


async def test_what_is_cleared_stands_in_no_later_request(home: Path, workspace: Path, texts: None) -> None:
    turns = [
        call("memory_search", query="staging port"),
        {"text": f"I see: {FACT}"},
        {"text": "ok"},
        {"text": "ok"},
    ]
    async with harness(home, workspace, turns) as here:
        session = await opened(here)
        added = await run(here, session, f"/memory add {FACT}")
        name = added.text.split()[4]
        await here.turn(f"Is it true that {FACT}", session)
        asked = await run(here, session, f"/memory clear {name}")
        assert "Nothing has changed yet" in asked.text and session in asked.text and FACT in asked.text
        assert here.provider.requests[-1].count(FACT.encode()) > 1
        cleared = await run(here, session, f"/memory clear {name} yes")
        assert cleared.ok and session in cleared.text
        events = log(here, session)
        at = next(i for i, one in enumerate(events) if isinstance(one, TextForgotten))
        assert isinstance(events[at - 1], PrefixInvalidated) and events[at - 1].reason == "memory cleared"
        assert isinstance(events[at + 1], HeaderPinned)
        await here.turn("And now?", session)
        assert FACT.encode() not in here.provider.requests[-1] and b"5433" not in here.provider.requests[-1]
        assert OTHER.encode() in here.provider.requests[-1]


async def test_a_session_that_is_resumed_later_does_not_bring_it_back(home: Path, workspace: Path, texts: None) -> None:
    async with harness(home, workspace, [{"text": f"Noted: {FACT}"}] * 3) as here:
        session = await opened(here)
        await run(here, session, f"/memory add {FACT}")
        await here.turn("Go", session)
        other = await opened(here)
        await here.turn("Go", other)
    async with harness(home, workspace, [{"text": "ok"}] * 3) as here:
        fresh = await opened(here)
        name = next(fact.id for fact in here.app.parts.memory.facts.facts(str(workspace)) if fact.text == FACT)
        await run(here, fresh, f"/memory clear {name} yes")
    async with harness(home, workspace, [{"text": "ok"}] * 3) as here:
        for one in (session, other):
            await opened(here, resume=one)
            await here.turn("Again", one)
            assert FACT.encode() not in here.provider.requests[-1]
            await here.client.submit(RunCommand(one, "/compact"))
        assert all(b"5433" not in body for body in here.provider.requests)


async def test_each_clear_and_each_restore_counts_in_a_running_session(
    home: Path, workspace: Path, texts: None
) -> None:
    async with harness(home, workspace, [{"text": "ok"}] * 9) as here:
        session, holding = await opened(here), list[bool]()
        name = (await run(here, session, f"/memory add {FACT}")).text.split()[4]
        for line in ("", "clear {} yes", "restore {}", "clear {} yes", "restore {}"):
            assert not line or (await run(here, session, f"/memory {line.format(name)}")).ok
            await here.turn("And now?", session)
            holding.append(FACT.encode() in here.provider.requests[-1])
        assert holding == [True, False, True, False, True]
    async with harness(home, workspace, [{"text": "ok"}] * 9) as here:
        await opened(here, resume=session)
        await here.turn("Later", session)
        assert FACT.encode() in here.provider.requests[-1]
        assert (await run(here, session, f"/memory clear {name} yes")).ok
        for lines in (["/rewind 3 both yes"], ["/rewind 2 both yes", "/rewind back"], ["/rewind 2 both yes"]):
            assert [one for line in lines if not (one := await run(here, session, line)).ok] == []
            await here.turn("Once more", session)
            assert b"5433" not in here.provider.requests[-1] and OTHER.encode() in here.provider.requests[-1]


async def test_what_is_added_again_or_restored_is_told_again(home: Path, workspace: Path, texts: None) -> None:
    async with harness(home, workspace, [{"text": "ok"}] * 9) as here:
        session = await opened(here)
        name = (await run(here, session, f"/memory add {FACT}")).text.split()[4]
        await here.turn("One", session)
        await here.turn("Two", session)
        await run(here, session, f"/memory clear {name} yes")
        await run(here, session, f"/memory restore {name}")  # the same notes as the masked update had
        await here.turn("Three", session)
        assert here.provider.requests[-1].count(FACT.encode()) == 1
        assert (await run(here, session, "/rewind 2 both yes")).ok  # the update of the first turn stands, masked
        await here.turn("Again", session)
        assert here.provider.requests[-1].count(FACT.encode()) == 1
        await run(here, session, f"/memory clear {name} yes")
        await here.turn("None", session)
        await run(here, session, f"/memory add {FACT}")
    async with harness(home, workspace, [{"text": "ok"}] * 9) as here:
        await opened(here, resume=session)
        await here.turn("Later", session)
        assert here.provider.requests[-1].count(FACT.encode()) == 1
    async with harness(home, workspace, [{"text": "ok"}] * 9) as here:
        await opened(here, resume=session)
        await here.turn("Later", session)
        assert here.provider.requests[-1].count(FACT.encode()) == 1


async def test_kept_answers_that_cannot_be_cleared_are_told(home: Path, workspace: Path, texts: None) -> None:
    (home / "rlm/answers.sqlite3").mkdir(parents=True)
    async with harness(home, workspace, [{"text": "ok"}]) as here:
        session = await opened(here)
        name = (await run(here, session, f"/memory add {FACT}")).text.split()[4]
        await here.turn("Go", session)
        cleared = await run(here, session, f"/memory clear {name} yes")
        assert "/context rlm-memo clear" in cleared.text and "restore" in cleared.text
        assert any(isinstance(event, TextForgotten) for event in log(here, session))
        refused = await run(here, session, "/context rlm-memo clear")
        assert "cannot be used now" in refused.text and "answers.sqlite3" in refused.text
        assert "answers.sqlite3" in (await run(here, session, "/context rlm-memo")).text


async def test_after_a_clear_the_fact_is_in_the_trash_and_the_named_logs_alone(
    home: Path, workspace: Path, texts: None
) -> None:
    remembering = [call("memory_search", query="staging"), {"text": FACT}, call("exec_shell", command=f"echo '{FACT}'")]
    async with harness(home, workspace, [*remembering, *[{"text": "ok"}] * 5]) as here:
        session = await opened(here)
        name = (await run(here, session, f"/memory add {FACT}")).text.split()[4]
        await here.turn("What is the port?", session)
        await run(here, session, "/memory search staging port")
        await run(here, session, f"/memory clear {name} yes")
        held = {path for path in files_with(home, FACT) if not path.startswith("memory/trash/")}
        assert held and all(path.startswith(f"sessions/{session}/") for path in held), held
    async with harness(home, workspace, []) as here:
        other = await opened(here)
        await run(here, other, f"/memory restore {name}")
        done = await run(here, other, f"/memory clear {name} sessions yes")
        assert "Removed 1 session" in done.text
        left = files_with(home, FACT)
        assert left and all(path.startswith("memory/trash/") for path in left), left
    later = Memory(str(home), workspace_folder, now=lambda: time.time() + 31 * 86400)
    assert later.trashed() == () and files_with(home, FACT) == []


async def test_a_line_that_stands_in_both_files_is_cleared_where_it_was_asked(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as here:
        session = await opened(here)
        paths = here.app.parts.memory.facts.paths(str(workspace))
        for path in map(Path, paths.values()):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"- {OTHER}\n")
        assert "  workspace  " in (await run(here, session, "/memory clear workspace")).text
        done = await run(here, session, "/memory clear workspace yes")
        left = {scope: Path(path).read_text() for scope, path in paths.items()}
    assert done.ok and left == {"global": f"- {OTHER}\n", "workspace": ""}
