"""What honest code makes of a kernel's frames never ends the kernel: the round says what was wrong, variables stay."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codewhale.process.confinement import sandbox
from codewhale.rlm.kernel import channel
from codewhale.rlm.model import Answered, KernelAsk, RoundResult
from codewhale.rlm.process import MOST_FRAME, Answer, KernelProcess
from support.patience import HANG


@pytest.fixture
async def kernel(tmp_path: Path) -> AsyncIterator[KernelProcess]:
    source = tmp_path / "source.txt"
    source.write_text("0123456789")
    started = await KernelProcess.start(str(source), 10, confined=bool(sandbox().mechanism))
    yield started
    await started.close()


async def echo(ask: KernelAsk, answer: Answer) -> None:
    for slot in range(len(ask.spans)):
        await answer(slot, Answered(ask.prompt(slot)))


async def run(kernel: KernelProcess, code: str) -> RoundResult:
    """One round after a variable was made, which stands afterwards."""
    await kernel.run("kept = 7", HANG, echo)
    result = await kernel.run(code, HANG, echo)
    after = await kernel.run("finalize(kept)", HANG, echo)
    assert after.error is None and after.finals[0].value == 7
    return result


@pytest.mark.parametrize("number", ["float('nan')", "float('-inf')", "10**400", "True", "'high'"])
async def test_a_confidence_that_is_no_number_is_told_in_the_round(kernel: KernelProcess, number: str) -> None:
    result = await run(kernel, f"finalize(1, confidence={number})")
    assert result.error is not None and result.error.kind == "ValueError"
    assert "send a number from 0 to 1" in result.error.message and result.finals == ()


@pytest.mark.parametrize(
    "code",
    [
        "finalize(half)",
        "finalize({half: [half]})",
        "finalize(sub_query(half))",
        "finalize(sub_query_map([half], [half])[0])",
    ],
)
async def test_half_a_character_is_sent_as_a_sign(kernel: KernelProcess, code: str) -> None:
    result = await run(kernel, f"import json\nhalf = json.loads('\"a\\\\ud83d\"')\n{code}")
    assert result.error is None and "a?" in str(result.finals[0].value) and "\ud83d" not in str(result.finals)


async def test_half_a_character_in_an_error_or_a_name_is_sent(kernel: KernelProcess) -> None:
    result = await run(kernel, "globals()['n\\ud83d'] = 1\nraise ValueError('why \\ud83d')")
    assert result.error is not None and result.error.message == "why ?"
    assert "n?" in [one.name for one in result.new_vars]


@pytest.mark.parametrize("value", ["10**400", "-(10**30)", "{n: 1e308 for n in range(9)}"])
async def test_any_number_arrives(kernel: KernelProcess, value: str) -> None:
    result = await run(kernel, f"finalize({value})")
    assert result.error is None and len(result.finals) == 1


@pytest.mark.parametrize("depth", [100, 900, 5_000, 100_000])
async def test_a_deep_answer_arrives_in_some_form(kernel: KernelProcess, depth: int) -> None:
    result = await run(kernel, f"deep = 1\nfor _ in range({depth}): deep = [deep]\nfinalize(deep)")
    assert result.finals or result.error is not None


async def test_whole_characters_arrive_as_they_are(kernel: KernelProcess) -> None:
    result = await run(kernel, "finalize(sub_query('naïve 鯨 🐳 \\x00 \\x7f \\u2028'))")
    assert result.finals[0].value == "naïve 鯨 🐳 \x00 \x7f \u2028"


async def test_a_question_that_is_too_large_says_so(kernel: KernelProcess) -> None:
    assert channel.MOST_FRAME == MOST_FRAME
    result = await run(kernel, "sub_query('Count', 'x' * (33 << 20))")
    assert result.error is not None and result.error.kind == "ValueError" and "pass slices" in result.error.message


@pytest.mark.parametrize(("more", "kind"), [("", "ValueError"), ("\n{}['gone']", "KeyError")])
async def test_an_answer_that_is_too_large_is_dropped_with_a_reason(
    kernel: KernelProcess, more: str, kind: str
) -> None:
    result = await run(kernel, f"print('so far')\nfinalize('x' * (33 << 20)){more}")
    assert result.error is not None and result.error.kind == kind and result.finals == ()
    assert "what the round gave finalize was dropped" in result.error.message
    assert result.stdout.text == "so far\n" and ("gone" in result.error.message) == bool(more)


@pytest.mark.parametrize(
    "code",
    [
        "sub_query('Count', {'start': 0, 'end': 11})",
        "sub_query('Count', {'start': -1, 'end': 5})",
        "sub_query('Count', {'start': 0.5, 'end': 5})",
        "sub_query_batch(['One', 'Two'], ['a', 'b', 'c'])",
    ],
)
async def test_slices_that_do_not_fit_are_told_in_the_round(kernel: KernelProcess, code: str) -> None:
    result = await run(kernel, code)
    assert result.error is not None and result.error.kind == "ValueError" and "; send " in result.error.message
