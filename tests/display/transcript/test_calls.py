"""Calls in words: verbs and results, neighbouring looks as one row, what failed by itself."""

import pytest

from codewhale.display.transcript.blocks import CallCard, Explored, TranscriptBlock
from codewhale.display.transcript.calls import VERBS, call_text, problems_in, tally_of
from codewhale.display.transcript.cards import DrawOptions
from codewhale.display.transcript.drawing import Drawer
from codewhale.display.words import LANGUAGES, Words
from codewhale.protocol.blocks import DiffBlock, TerminalBlock
from codewhale.protocol.events import ApprovalAsked, CallFinished, CallStarted, Event, TurnFinished
from codewhale.protocol.messages import Reasoning, ToolCall
from codewhale.protocol.tools import PathSubject
from support.transcripts import answered, begun, said, told
from support.tuirecord import envelopes

READ = ToolCall("r1", "read_file", '{"path":"calc.py"}')
OTHER = ToolCall("r2", "read_file", '{"path":"test_calc.py"}')
SEARCH = ToolCall("s1", "grep_files", '{"pattern":"discount","path":"src"}')


def ends(call: ToolCall, ok: bool = True, **fields: object) -> list[Event]:
    """A call from its beginning to its end."""
    over = CallFinished(call.id, call.name, ok, "what the model reads", 400, **fields)  # type: ignore[arg-type]
    return [CallStarted(call.id, call.name, call.sent_arguments, (), "mode"), over]


def rows(*events: Event, language: str = "en", opened: bool = False, width: int = 100) -> list[str]:
    """The lines of calls as they are seen."""
    story, drawer = told([*begun(), *events]), Drawer(Words(language))
    calls: list[TranscriptBlock] = [block for block in story.settled if isinstance(block, CallCard | Explored)]
    shown = [block for block in calls if block.group < 0 or opened]
    return [line.text.rstrip() for block in shown for line in drawer.lines(block, DrawOptions(width, opened))]


def test_one_look_is_a_verb_and_a_result() -> None:
    assert rows(answered(READ), *ends(READ, metadata={"lines": 6})) == ["● Read calc.py, 6 lines  0.4 s"]
    none = ends(SEARCH, metadata={"total_matches": 0})
    assert rows(answered(SEARCH), *none) == ['● Searched "discount" src, no matches  0.4 s']
    assert rows(answered(READ), *ends(READ, metadata={"lines": 6}), language="zh-Hans") == [
        "● 读取 calc.py, 6 行  0.4 秒"
    ]


def test_neighbouring_looks_are_one_row_that_opens() -> None:
    calls = [answered(READ, OTHER), *ends(READ, metadata={"lines": 6}), *ends(OTHER, metadata={"lines": 9})]
    calls += [answered(Reasoning("And where is it?"), SEARCH), *ends(SEARCH, metadata={"total_matches": 5})]
    thought = next(block for block in told([*begun(), *calls]).settled if getattr(block, "who", "") == "thought")
    assert thought.group >= 0
    assert rows(*calls) == ['● Explored Read calc.py, test_calc.py · searched "discount" src (5 hits)  1.2 s']
    assert rows(*calls, opened=True)[1::2] == [
        "● Read  calc.py  6 lines  0.4 s",
        "● Read  test_calc.py  9 lines  0.4 s",
        '● Searched  "discount" src  5 hits  0.4 s',
    ]


def test_many_looks_are_counted() -> None:
    calls = [ToolCall(f"c{at}", "grep_files", f'{{"pattern":"word{at}"}}') for at in range(8)]
    done = [event for at, call in enumerate(calls) for event in ends(call, metadata={"total_matches": int(at == 3)})]
    assert rows(answered(*calls), *done) == ["● Explored Searched 8 patterns (1 hit)  3.2 s"]


def test_words_part_a_group() -> None:
    calls = [answered(READ), *ends(READ), answered(said("Now the test."), OTHER), *ends(OTHER)]
    assert rows(*calls) == ["● Read calc.py  0.4 s", "● Read test_calc.py  0.4 s"]


def test_a_look_that_fails_stands_alone_and_says_why() -> None:
    error = {"code": "invalid_input", "message": "gone.py does not exist. Call list_dir to see what is there."}
    gone = ToolCall("g1", "read_file", '{"path":"gone.py"}')
    failed = ends(gone, ok=False, error="invalid_input", metadata={"error": error})
    lines = rows(answered(READ, gone, OTHER), *ends(READ), *failed, *ends(OTHER))
    assert lines == [
        "● Explored Read calc.py, test_calc.py  0.8 s",
        "✗ Read  gone.py  0.4 s",
        "  gone.py does not exist",
    ]


def test_a_look_that_is_asked_about_or_stopped_stands_alone() -> None:
    ask = ApprovalAsked("q1", "r2", "read_file", (PathSubject("/etc/passwd"),), "outside")
    assert rows(answered(READ, OTHER), *ends(READ), ask)[1] == "? Read  test_calc.py  needs your approval"
    assert rows(answered(READ, OTHER), *ends(READ), TurnFinished(1, "interrupted"))[1] == (
        "✗ Read  test_calc.py  you stopped it"
    )


def test_a_group_that_runs_says_what_it_does_now() -> None:
    story = told([*begun(), answered(READ, OTHER), *ends(READ), ends(OTHER)[0]])
    group = next(block for block in story.settled if isinstance(block, Explored))
    line = Drawer(Words("en"), "Esc").lines(group, DrawOptions(100, now=group.cards[1].started + 5))[0]
    assert line.text[2:] == "Exploring Read calc.py · Reading test_calc.py  5.0 s  Esc stops it"


def test_a_change_in_a_group_is_drawn_again() -> None:
    story = told([*begun(), answered(READ, OTHER)])
    story.touched.clear()
    for envelope in envelopes(ends(OTHER)):
        story.take(envelope)
    group = next(block for block in story.settled if isinstance(block, Explored))
    assert story.touched >= {group.id, group.cards[1].id}


DIFF = "--- a/{0}\n+++ b/{0}\n@@ -1 +1,2 @@\n-old\n+new\n+more\n"


def test_a_patch_over_files_names_each_above_its_diff() -> None:
    patch = ToolCall("p1", "apply_patch", "{}")
    diffs = tuple(DiffBlock(name, DIFF.format(name)) for name in ("shop/a.py", "b.py"))
    assert rows(answered(patch), *ends(patch, display=diffs)) == [
        "● Edited  2 files  +4 -2  0.4 s",
        *("  shop/a.py  +2 -1", "  1 - old", "  1 + new", "  2 + more"),
        *("  b.py  +2 -1", "  1 - old", "  1 + new", "  2 + more"),
    ]
    context = "".join(f" line {at}\n" for at in range(9))
    deep = tuple(DiffBlock(name, f"--- a\n+++ b\n@@ -1,9 +1,10 @@\n{context}+new\n") for name in "ab")
    assert "+ new" in " ".join(rows(answered(patch), *ends(patch, display=deep)))
    many = tuple(DiffBlock(f"{at}.py", DIFF.format("x")) for at in range(20))
    assert rows(answered(patch), *ends(patch, display=many))[-1] == "  + 12 files"
    new = DiffBlock("n.py", "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+x\n")
    assert rows(answered(patch), *ends(patch, display=(new,)))[0] == "● Created  n.py  +1 -0  0.4 s"


OUTPUT = (
    "collected 2 items\nE   assert 1 == 2\nFAILED test_a.py::test_b - assert 1 == 2\n== 1 failed, 12 passed in 0.1s =="
)


def test_a_test_run_has_its_tally_in_the_heading_and_names_what_failed() -> None:
    run = ToolCall("t1", "run_tests", '{"args":"-q"}')
    shown = (TerminalBlock("pytest -q", OUTPUT, 1),)
    data = {"workspace_tree_sha256": "a", "summary": "12 passed, 1 failed; failing: test_b"}
    lines = rows(answered(run), *ends(run, ok=False, display=shown, metadata=data))
    assert lines[0] == "✗ Ran tests  pytest -q  1 failed, 12 passed  0.4 s"
    assert lines[1:] == ["  │ E   assert 1 == 2", "  │ FAILED test_a.py::test_b - assert 1 == 2", "  + 2 lines"]
    good = {"workspace_tree_sha256": "a", "summary": "13 passed"}
    shown = (TerminalBlock("pytest -q", "13 passed in 0.1s", 0),)
    assert rows(answered(run), *ends(run, display=shown, metadata=good)) == ["● Ran tests  pytest -q  13 passed  0.4 s"]


@pytest.mark.parametrize("name", ["exec_shell", "task_shell_start"])
def test_a_command_that_runs_tests_has_it_too(name: str) -> None:
    card = CallCard(name=name, status="failed", display=(TerminalBlock("pytest", OUTPUT, 1),))
    assert tally_of(card) == "1 failed, 12 passed"
    card.display = (TerminalBlock("pytest", "..\n2 passed in 0.1s\n\nSTDERR:\na.py:3: Warning: old\n", 0),)
    assert tally_of(card) == "2 passed"
    card.display = (TerminalBlock("cat notes", "the 3 passed over it", 0),)
    assert tally_of(card) == ""
    assert problems_in("error: no\nerrors are fun\nok\nFAIL: test_x") == ["error: no", "FAIL: test_x"]


def test_what_never_ran_is_not_said_to_have_run() -> None:
    card = CallCard(name="exec_shell", subject="git push", status="failed", answer="denied", error="permission_denied")
    assert call_text(Words("en"), card) == "Run git push"
    assert [line.text for line in Drawer(Words("en")).lines(card, DrawOptions(60))] == ["✗ Run  git push  denied"]
    card.name, card.status, card.started = "mcp_thing", "running", 1.0
    assert call_text(Words("en"), card) == "Calling mcp_thing git push"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_verb_has_its_three_forms(language: str) -> None:
    words = Words(language)
    for verb in (*VERBS, "create", "start", "call"):
        assert len([form for form in words(f"calls.{verb}").split("|") if form]) == 3
