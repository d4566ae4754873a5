"""The status lines as they are drawn."""

from pathlib import Path
from typing import Literal

import pytest
from rich.cells import cell_len

from codewhale.display.palette import Palette, contrast
from codewhale.display.words import Words
from codewhale.protocol.events import (
    AnswerMoved,
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalChanged,
    CallFinished,
    CallStarted,
    CallStreamed,
    ChildClosed,
    ChildOpened,
    ChildProgress,
    Event,
    JobStarted,
    Queued,
    ReasoningStreamed,
    RequestSent,
    RetryCountdown,
    Rewound,
    SessionOpened,
    SessionResumed,
    SkillActivated,
    SkillReleased,
    TextStreamed,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import RunCommand, RunShell, StatusView
from codewhale.protocol.scopes import Scope
from codewhale.protocol.stream import Usage
from codewhale.protocol.views import ContextView, WorkspaceRow
from codewhale.testing import FakeClock
from codewhale.tui.facts import SessionFacts
from codewhale.tui.status import Status, fitting, money_text, seconds_text
from support.repos import make_repo
from support.tuiapp import scripted
from support.tuirecord import envelopes, hosted, screen_text, until

VIEW = StatusView(
    "s", "/w", Mode.AGENT, Authority.PERSON, "deepseek", "deepseek-v4", 0, 0, 0, False, "", (), 0, 0,
    effort="high", approval=Approval.SUGGEST, branch="feature/login", sandbox="landlock",
)  # fmt: skip
CONTEXT = ContextView(
    "deepseek", "deepseek-v4", 128_000, "catalog", 28_000, 100_000, 0, 80_000, (), (), 0, True, 0, 0, 0, 0, 0
)
EVENTS: tuple[Event, ...] = (
    SessionOpened(1, "/w", Mode.AGENT, "deepseek", "deepseek-v4"),
    TurnStarted(1),
    RequestSent(1, 1, "", 1),
    UsageReported(1, Usage(79_000, 1000, 77_000, 2000, cost=0.0421)),
)


def drawn(status: Status) -> list[str]:
    """Its lines, of which there are two while something is done."""
    return [status.render_line(y).text for y in range(len(status.pieces(status.size.width)))]


async def shown(width: int, *events: Event, language: str = "en", seconds: float = 8) -> list[str]:
    """The two lines after these events, so many seconds after the last."""
    clock = FakeClock()

    def make(palette: Palette) -> Status:
        return Status(Words(language), palette, clock.monotonic)

    async with hosted(make, size=(width, 20)) as (host, pilot):
        status = host.panel
        assert isinstance(status, Status)
        status.see(VIEW)
        status.see_context(CONTEXT)
        status.see_workspace(WorkspaceRow("/w", "feature/login", 2))
        for envelope in envelopes(events):
            status.take(envelope)
        clock.advance(seconds)
        await until(pilot, lambda: screen_text(host))
        lines = drawn(status)
        assert all(cell_len(line) == width for line in lines)
        return lines


async def test_everything_is_told_where_there_is_room() -> None:
    lines = await shown(120, *EVENTS, JobStarted("j", "make", "."))
    assert lines[0].rstrip() == " ● Waiting for the model  8 s  esc to stop"
    left, right = lines[1].split("   ", 1)
    assert left.split("  ") == [" deepseek/deepseek-v4 · high", "asks first", "sandboxed"]
    assert right.split("  ")[-5:] == ["1 job", "context 80%", "cache 97%", "$0.042", "feature/login ±2 "]


@pytest.mark.parametrize(
    ("events", "seconds", "line"),
    [
        ([], 9.9, "● Waiting for the model  9 s  esc to stop"),
        ([], 12, "● deepseek has not answered yet, waiting  12 s  esc to stop"),
        ([TextStreamed("a")], 9, "● Writing  9 s  esc to stop"),
        ([TextStreamed("a")], 75, "● deepseek has stopped sending, waiting  1 m 15 s  esc to stop"),
        ([ReasoningStreamed("a")], 10, "● deepseek has stopped sending, waiting  10 s  esc to stop"),
        ([CallStreamed(0, "write_file")], 11, "● deepseek has stopped sending, waiting  11 s  esc to stop"),
        ([CallStreamed(0, "write_file"), CallStarted("c", "run_tests", "{}", (), "")], 30, "● Running tests  30 s"),
    ],
)
async def test_a_model_that_sends_nothing_is_said_to(events: list[Event], seconds: float, line: str) -> None:
    lines = await shown(120, *EVENTS[:3], *events, seconds=seconds)
    assert lines[0].strip().startswith(line)


async def test_an_approval_says_when_it_is_denied_without_an_answer() -> None:
    ask = ApprovalAsked("r", "c1", "exec_shell", (), "", seconds=300)
    lines = await shown(120, *EVENTS[:3], ask, seconds=60)
    assert "denied in 4 m 00 s without an answer" in lines[0]
    lines = await shown(120, *EVENTS[:3], ApprovalAsked("r", "c1", "exec_shell", (), ""), seconds=60)
    assert "denied" not in lines[0] and "1 m 00 s" in lines[0]


def test_only_silence_counts_and_only_the_models() -> None:
    clock = FakeClock()
    facts = SessionFacts(clock.monotonic)
    came: list[tuple[Event, float]] = [
        (TurnStarted(1), 3), (RequestSent(1, 1, "", 1), 8), (CallStreamed(0, "x"), 2),
        (AnswerMoved(), 9), (CallStarted("c", "x", "{}", (), ""), 0), (CallFinished("c", "x", True, "", 1), 4),
    ]  # fmt: skip
    silent = []
    for envelope, (_, seconds) in zip(envelopes([event for event, _ in came]), came, strict=True):
        facts.take(envelope)
        clock.advance(seconds)
        silent.append(facts.silent)
    assert silent == [3, 8, 2, 9, 0, 4]


@pytest.mark.parametrize(("language", "words"), [("en", "asks outside the sandbox"), ("zh-Hans", "超出沙箱才询问")])
async def test_who_is_asked_only_outside_the_sandbox_reads_so_until_it_is_switched_off(
    language: str, words: str
) -> None:
    chosen = ApprovalChanged(Approval.SANDBOX, Approval.SUGGEST)
    lines = await shown(120, *EVENTS, chosen, language=language)
    assert words in lines[1] and Words(language)("status.held") not in lines[1]
    again = ApprovalChanged(Approval.SUGGEST, Approval.SANDBOX)
    lines = await shown(120, *EVENTS, chosen, again, language=language)
    assert words not in lines[1] and Words(language)("status.approval_suggest") in lines[1]


async def test_what_matters_least_goes_first() -> None:
    lines = await shown(60, *EVENTS, JobStarted("j", "make", "."))
    assert "deepseek-v4" in lines[1] and "context 80%" in lines[1] and "1 job" in lines[1]
    assert "feature" not in lines[1] and "cache" not in lines[1]
    assert (await shown(20, *EVENTS))[1].startswith(" deepseek/")


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
@pytest.mark.parametrize("width", [10, 31, 80, 200])
async def test_lines_have_the_width_of_the_screen(language: str, width: int) -> None:
    await shown(width, *EVENTS, Queued("later", 3), ChildOpened("c", "C", ""), language=language)


async def test_what_it_waits_for_and_how_to_stop() -> None:
    asked = ApprovalAsked("r", "c", "exec_\x1b[31mshell", (), "")
    lines = await shown(120, *EVENTS, asked, Queued("later", 2), ChildOpened("c", "C", ""), seconds=75)
    assert "● Waiting for your approval: Call exec_\\x1b[31mshell  1 m 15 s  esc to deny and stop" in lines[0]
    assert "2 messages queued" in lines[0] and "1 agent runs" in lines[0]
    again = await shown(100, *EVENTS, RetryCountdown(1, 3, 20.0, "too many requests"))
    assert "Retry 1/3: too many requests  again in 12 s" in again[0]


async def test_one_line_is_enough_where_nothing_is_done() -> None:
    lines = await shown(80, EVENTS[0])
    assert len(lines) == 1 and "deepseek-v4" in lines[0]
    assert len(await shown(80, *EVENTS)) == 2


async def test_before_and_without_a_session() -> None:
    async with hosted(lambda palette: Status(Words("en"), palette), size=(60, 2)) as (host, pilot):
        status = host.panel
        assert isinstance(status, Status)
        await until(pilot, lambda: "Opening the session" in screen_text(host))
        status.lost()
        await until(pilot, lambda: "No session" in screen_text(host))
        status.say("copied\x1b]52;c;x\x07 2 lines", "success")
        await until(pilot, lambda: "copied\\x1b]52;c;x\\x07 2 lines" in screen_text(host))


async def test_keys_are_named_as_they_are_set() -> None:
    keys = {"app.palette": "f9", "composer.escape": "ctrl+q"}
    async with hosted(lambda palette: Status(Words("en"), palette, keys=keys), size=(80, 2)) as (host, pilot):
        status = host.panel
        assert isinstance(status, Status)
        assert "f9 palette" in status.hint
        status.take(envelopes([TurnStarted(1)])[0])
        await until(pilot, lambda: "ctrl+q to stop" in screen_text(host))


async def test_colours_are_those_of_the_palette() -> None:
    async with hosted(lambda palette: Status(Words("en"), palette), size=(80, 2), theme="light") as (host, _):
        status = host.panel
        assert isinstance(status, Status)
        status.see(VIEW)
        for y in (0, 1):
            for segment in status.render_line(y):
                style = segment.style
                if segment.text.strip() and style is not None:
                    assert style.color and style.bgcolor
                    assert contrast(style.color.name, style.bgcolor.name) >= 4.5


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (8.9, "8 s"), (60, "1 m 00 s"), (3599, "59 m 59 s"), (3660, "1 h 01 m")]
)
def test_seconds(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (0.0, "USD", "$0.00"),
        (0.00421, "USD", "$0.0042"),
        (1.374, "CNY", "¥1.37"),
        (0.5, "XAU", "0.50 XAU"),
        (1e-9, "USD", "$0.000000"),
    ],
)
def test_money(amount: float, currency: str, text: str) -> None:
    assert money_text(amount, currency) == text


def test_pieces_that_fit() -> None:
    pieces = [("aaaa", "text", 0), ("bb", "text", 2), ("", "text", 0), ("cc", "text", 1)]
    assert [text for text, _, _ in fitting(pieces, 12)] == ["aaaa", "bb", "cc"]
    assert [text for text, _, _ in fitting(pieces, 11)] == ["aaaa", "cc"]
    assert [text for text, _, _ in fitting(pieces, 2)] == ["aaaa"]


async def test_the_bar_follows_what_is_changed_without_a_turn(tmp_path: Path) -> None:
    shop = make_repo(tmp_path / "shop", {"a.txt": "one\n"})
    write = {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "two\n"}}]}
    async with scripted(tmp_path / "home", shop, [write, {"text": "Done."}]) as stage:

        async def bar(end: str) -> None:
            await stage.until(lambda: drawn(stage.app.status)[-1].rstrip().endswith(end))

        await bar("main")
        await stage.type("Go")
        await stage.pilot.press("enter")
        await bar("±1")
        await stage.client.submit(RunShell(stage.app.link.session, "touch b"))
        await bar("±2")
        await stage.client.submit(RunCommand(stage.app.link.session, "/undo yes"))
        await bar("±1")
        await stage.client.submit(RunShell(stage.app.link.session, "rm b"))
        await bar("main")


def test_a_question_of_an_agent_is_waited_for_beside_turns_and_is_over_with_its_answer() -> None:
    facts = SessionFacts(FakeClock().monotonic)

    def happen(*events: Event) -> None:
        for envelope in envelopes(events):
            facts.take(envelope)

    asked = ApprovalAsked("r", "c1", "exec_shell", (), "", asker="general one")
    happen(TurnStarted(1), ChildOpened("c", "one", "do"), asked, TurnFinished(1, "done"))
    assert (facts.busy, facts.doing, facts.asking, facts.turn_asks) == (True, "approval", True, False)
    happen(ApprovalAnswered("r", True))
    assert (facts.busy, facts.asking, list(facts.children.values())) == (False, False, ["one"])


def test_the_cost_is_that_of_the_session_and_of_all_its_agents() -> None:
    facts = SessionFacts(FakeClock().monotonic)
    used = [Usage(10, 1, cost=0.25), Usage(20, 2, cost=0.5), Usage(30, 3, cost=1.0)]
    events: list[Event] = [TurnStarted(1), RequestSent(1, 1, "", 1), UsageReported(1, used[0])]
    events += [ChildOpened("c", "one", "do"), ChildProgress("c", "read_file", usage=used[1])]
    events += [ChildClosed("c", "completed", usage=used[2])]
    for envelope in envelopes(events):
        facts.take(envelope)
    assert facts.cost == 1.25


def restricting(name: str, lasts: Literal["turn", "session"]) -> SkillActivated:
    return SkillActivated(name, f"{name}/SKILL.md", "0", "person", lasts, Scope(tools=("read_file",)))


RESUMED = SessionResumed(Mode.AGENT, Authority.PERSON)
END = TurnFinished(1, "done")


@pytest.mark.parametrize(
    ("events", "names"),
    [
        ((TurnStarted(1), restricting("a", "turn")), "a"),
        ((TurnStarted(1), restricting("a", "turn"), END), ""),
        ((TurnStarted(1), restricting("a", "turn"), RESUMED), ""),
        ((restricting("a", "session"), TurnStarted(1), restricting("b", "turn")), "a, b"),
        ((restricting("a", "session"), TurnStarted(1), END, RESUMED), "a"),
        ((restricting("a", "session"), SkillReleased("a")), ""),
        ((TurnStarted(1), SkillActivated("guides", "g/SKILL.md", "0", "person")), ""),
        ((TurnStarted(1), END, restricting("a", "session"), Rewound(1)), ""),
        ((TurnStarted(1), END, restricting("a", "session"), Rewound(1), Rewound(1, back=True)), "a"),
    ],
)
@pytest.mark.parametrize("width", [80, 120])
async def test_skills_that_restrict_the_tools_are_named_as_long_as_they_do(
    width: int, events: tuple[Event, ...], names: str
) -> None:
    lines = await shown(width, EVENTS[0], *events)
    assert f"  skill {names}  " in lines[-1] if names else "skill" not in lines[-1]
