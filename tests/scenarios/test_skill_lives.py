"""How long a skill is active: over rewinds, compactions, forks, resumes and kills; what it restricts outlasts what it
pre-approves."""

import json
import os
import random
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codewhale.lib.clock import SystemClock
from codewhale.lib.failpoints import VARIABLE
from codewhale.protocol.events import ApprovalAsked, CallFinished, ContextAppended, SkillActivated, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, CloseSession, CommandOutput, RunCommand, SendMessage
from codewhale.session.state import SessionState
from codewhale.session.store import SessionStore
from codewhale.testing import Harness, harness
from scenarios.test_active_skills import calling, log, skill, turn
from scenarios.test_children import call
from support.patience import HANG
from support.scenes import only, watching

WRITES = {"codewhale-tools": "Read Write Bash(make check)"}
MAKES = call("exec_shell", command="make check")


def approving(home: Path, name: str, **metadata: str) -> None:
    """A skill that pre-approves `make check`."""
    file = skill(home, name, **metadata) / "SKILL.md"
    text = file.read_text()
    file.write_text(text.replace("description:", "allowed-tools: Bash(make check)\ndescription:"))


def makefile(workspace: Path) -> None:
    (workspace / "Makefile").write_text("check:\n\ttrue\n")


async def run(here: Harness, session: str, line: str) -> CommandOutput:
    output: CommandOutput = await here.client.submit(RunCommand(session, line))
    assert output.ok, output.text
    return output


def active(here: Harness, session: str) -> dict[str, str]:
    """The active skills and until when they are."""
    return {name: one.lasts for name, one in here.app.engine.session(session).state.skills.items()}


async def ran(here: Harness, session: str, text: str = "Go") -> list[bool]:
    return [one.ok for one in await turn(here, session, text)]


AS_PERSON: dict[str, Any] = {"mode": Mode.AGENT, "authority": Authority.HEADLESS}


async def test_a_name_in_a_message_does_not_end_what_lasts_until_it_is_switched_off(
    home: Path, workspace: Path
) -> None:
    approving(home, "keeper", **WRITES)
    makefile(workspace)
    async with harness(home, workspace, calling(MAKES)) as here:
        session = await here.open(**AS_PERSON)
        assert await ran(here, session, "$keeper please") == [True]
        assert active(here, session) == {} and await ran(here, session) == [False]
        await run(here, session, "/skill keeper")
        assert await ran(here, session, "$keeper please") == [True]
        assert active(here, session) == {"keeper": "session"} and await ran(here, session) == [True]
        await run(here, session, "/skill off")
        assert await ran(here, session) == [False]


async def test_what_is_pre_approved_ends_with_the_process_and_comes_back_by_no_rewind(
    home: Path, workspace: Path
) -> None:
    approving(home, "keeper", **WRITES)
    makefile(workspace)
    async with harness(home, workspace, calling(MAKES)) as here:
        session = await here.open(**AS_PERSON)
        await run(here, session, "/skill keeper")
        assert await ran(here, session, "One") == [True]
        assert await ran(here, session, "Two") == [True]
        await run(here, session, "/skill off")
        await run(here, session, "/rewind 2 conversation yes")
        assert active(here, session) == {"keeper": "session"} and await ran(here, session, "Three") == [False]
        await run(here, session, "/skill off")
        await run(here, session, "/skill keeper")
        assert await ran(here, session, "Four") == [True]
        await here.client.submit(CloseSession(session))
        session = await here.open(resume=session, **AS_PERSON)
        assert active(here, session) == {"keeper": "session"} and await ran(here, session, "Five") == [False]
        await run(here, session, "/rewind 4 conversation yes")
        assert await ran(here, session, "Six") == [False]
        fork = (await run(here, session, "/fork")).session
        assert active(here, fork) == {"keeper": "session"} and await ran(here, fork, "Seven") == [False]


async def test_a_fork_keeps_what_is_restricted_and_nothing_that_is_pre_approved(home: Path, workspace: Path) -> None:
    approving(home, "keeper", **WRITES)
    skill(home, "reader", **{"codewhale-tools": "Read exec_shell"})
    makefile(workspace)
    model = calling(MAKES, call("write_file", path="b.txt", content="x"))
    async with harness(home, workspace, model) as here:
        session = await here.open(**AS_PERSON)
        await run(here, session, "/skill keeper")
        await run(here, session, "/skill reader")
        assert await ran(here, session) == [True, False]
        fork = (await run(here, session, "/fork")).session
        assert set(active(here, fork)) == {"keeper", "reader"} and await ran(here, fork) == [False, False]
        await run(here, fork, "/skill off reader")
        assert await ran(here, fork) == [False, True]


async def test_a_rewind_brings_back_what_was_active_then(home: Path, workspace: Path) -> None:
    skill(home, "reader", **{"codewhale-tools": "Read"})
    async with harness(home, workspace, calling(call("write_file", path="b.txt", content="x"))) as here:
        session = await here.open()
        assert await ran(here, session, "One") == [True]
        await run(here, session, "/skill reader")
        assert await ran(here, session, "Two") == [False]
        await run(here, session, "/skill off")
        assert await ran(here, session, "Three") == [True]
        for number, skills in ((3, {}), (2, {"reader": "session"}), (1, {})):
            await run(here, session, f"/rewind {number} conversation yes")
            assert active(here, session) == skills
        await run(here, session, "/rewind back")
        assert active(here, session) == {"reader": "session"} and await ran(here, session, "Four") == [False]


async def test_a_skill_of_a_file_restricts_until_it_is_switched_off_and_no_file_brings_it_back(
    home: Path, workspace: Path
) -> None:
    skill(home, "python", **{"codewhale-tools": "Read", "codewhale-globs": "*.py", "codewhale-activation": "glob"})
    (workspace / "a.py").write_text("x = 1\n")
    calls = call("read_file", path="a.py"), call("write_file", path="b.txt", content="x")
    async with harness(home, workspace, calling(*calls)) as here:
        session = await here.open()
        for _ in range(2):
            done = await turn(here, session)
            assert done[0].ok and not done[-1].ok and "skill.python" in done[-1].content
        assert (
            sum(
                isinstance(one, ContextAppended)
                for one in log(here, session)
                if getattr(one, "kind", "") == "skill:python"
            )
            == 1
        )
        await run(here, session, "/skill python")
        await run(here, session, "/skill off")
        assert await ran(here, session) == [True, True]


async def test_the_text_of_an_active_skill_survives_a_compaction(home: Path, workspace: Path) -> None:
    body = "\n".join(f"Rule {number}: look {number} times." for number in range(1_000))
    skill(home, "rules", body, **{"codewhale-tools": "Read"})

    def model(request: dict[str, Any]) -> dict[str, Any]:
        asked = json.dumps(request["messages"])
        return {"text": "<summary>Nothing was done.</summary>" if "Summar" in asked else "x " * 40_000}

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(**AS_PERSON)
        await run(here, session, "/skill rules")
        for text in ("One", "Two", "Three", "Four", "Five"):
            await here.turn(text, session)
        await run(here, session, "/compact")
        await here.turn("Six", session)
        text = here.provider.requests[-1].decode()
        assert text.count("Rule 7: look 7 times.") == 1 and text.count("Rule 999: look 999 times.") == 1
        assert active(here, session) == {"rules": "session"}


async def test_a_call_that_waits_for_the_person_is_held_to_a_skill_that_became_active(
    home: Path, workspace: Path
) -> None:
    skill(home, "reader", **{"codewhale-tools": "Read"})
    makefile(workspace)
    async with harness(home, workspace, calling(MAKES)) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        async with watching(here, session) as watch:
            await here.client.submit(SendMessage(session, "Go"))
            asked = await watch.until(ApprovalAsked)
            await run(here, session, "/skill reader")
            await here.client.submit(Answer(session, asked.request_id, allowed=True))
            await watch.until(TurnFinished)
        done = only(watch.events, CallFinished)[0]
        assert not done.ok and "skill.reader" in done.content


# Activates, works and releases without end, one step a line.
CHILD = """
    import asyncio, sys
    from pathlib import Path
    from codewhale.protocol.events import SkillActivated
    from codewhale.protocol.ops import RunCommand
    from codewhale.testing import harness
    from scenarios.test_active_skills import calling
    from scenarios.test_children import call

    async def main(home, workspace, session):
        model = calling(call("load_skill", name="briefly"), call("write_file", path="b.txt", content="x")) * 50
        async with harness(home, workspace, model) as here:
            session = await here.open(resume=session)
            print(session, flush=True)
            for number in range(40):
                await here.client.submit(RunCommand(session, "/skill keeper"))
                await here.turn("$manual go", session)
                await here.client.submit(RunCommand(session, "/skill off keeper"))
                await here.turn("$manual go", session)

    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
"""
POINTS = ("log.append.before", "log.append.mid", "log.append.after", "log.sync.before", "log.sync.after")
KILLS = int(os.environ.get("CODEWHALE_KILLS", "5"))


def killed(home: Path, workspace: Path, session: str, chance: random.Random) -> str:
    """The session of a process that was killed at some write of its log."""
    here = Path(__file__).parents[1]
    point = f"{chance.choice(POINTS)}=kill@{chance.randint(3, 60)}"
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(home), str(workspace), session],
        stdout=subprocess.PIPE, text=True, cwd=here, timeout=HANG, check=False,
        env={"PYTHONPATH": str(here), "PATH": "/usr/bin:/bin", "HOME": str(home.parent), VARIABLE: point},
    )  # fmt: skip
    assert child.returncode == -9, point
    return child.stdout.strip() or session


@pytest.mark.timeout(900 + 30 * KILLS)
async def test_after_a_kill_what_lasts_holds_and_what_was_for_a_turn_is_gone(home: Path, workspace: Path) -> None:
    chance, session, held = random.Random(7), "", set[tuple[str, bool]]()
    for name in ("keeper", "manual", "briefly"):
        skill(home, name, **{"codewhale-tools": "Read load_skill" + " Write" * (name != "keeper")})
    for _ in range(KILLS):
        session = killed(home, workspace, session, chance)
        events = [one.event for one in SessionStore(str(home), SystemClock()).read(session)] if session else []
        state = SessionState()
        for event in events:
            state.apply(event)
        texts = [one.text for one in events if isinstance(one, ContextAppended) and one.kind.startswith("skill:")]
        assert all(one != two for one, two in pairwise(texts))
        on = [at for at, one in enumerate(events) if isinstance(one, SkillActivated) and one.by == "person"]
        assert all(at + 1 == len(events) or isinstance(events[at + 1], ContextAppended) for at in on)
        lasting = {name for name, one in state.skills.items() if one.lasts == "session"}
        async with harness(home, workspace, calling(call("write_file", path="c.txt", content="x"))) as here:
            session = await here.open(resume=session)
            assert set(active(here, session)) == lasting <= {"keeper"}
            assert await ran(here, session) == [not lasting]
            (workspace / "c.txt").unlink(missing_ok=True)
        held |= {("session", bool(lasting)), ("turn", len(state.skills) > len(lasting))}
    assert len(held) == 4 or KILLS < 10
