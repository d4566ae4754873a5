"""Calls written as text: read by their form alone, whole and in order, whatever words stand before them."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.repair.repairer import CallRepairer
from support.writtencalls import READ, STANDING, WHOLE, Sample, meant, shown

REPAIR = CallRepairer(Catalog.load())
MEANT = list(meant())
SHOWN = list(shown())
# Damaged, unclosed and cut calls: a text, and what each call in it comes to; null for one that must be refused.
BROKEN = json.loads(Path(__file__).with_name("textchannel.json").read_text())
# What stands before a call: words in many languages that mean, show or refuse it, and what leaves a quotation open.
LEADS = json.loads(Path(__file__).with_name("leads.json").read_text())


def by_format(samples: list[Sample]) -> list[list[Sample]]:
    return [list(group) for _, group in groupby(samples, key=lambda sample: sample.id.split("/")[0])]


# Frames of shown calls that end with the call, unmarked: nothing in their form tells them from one that is meant.
ENDING = frozenset(
    "unfenced-tutorial example example-word such-as the-format heading never instead-of you-would what-it-means "
    "chinese prompt pasted would-send readme-tail".split()
)


def named(samples: list[Sample]) -> str:
    return samples[0].id.split("/")[0]


def test_there_are_samples_enough() -> None:
    assert len(MEANT) >= 250
    assert len(SHOWN) >= 500
    assert len(by_format(MEANT)) >= 20
    assert len({sample.text for sample in (*MEANT, *SHOWN)}) == len(MEANT) + len(SHOWN)


@pytest.mark.parametrize("samples", by_format(MEANT), ids=named)
def test_calls_that_are_meant_are_found(samples: list[Sample]) -> None:
    for sample in samples:
        found = REPAIR.find_calls(sample.text)
        assert found is not None, sample.text
        verdicts = [REPAIR.judge(call.name, call.arguments) for call in found.calls]
        assert [(verdict.name, verdict.arguments) for verdict in verdicts] == list(sample.calls), sample.id
        assert not any(verdict.lossy or verdict.error for verdict in verdicts), sample.id
        assert sample.before is None or found.before.rstrip() == sample.before, sample.id


@pytest.mark.parametrize("samples", by_format(SHOWN), ids=named)
def test_calls_that_are_quoted_or_have_words_behind_them_are_left_alone(samples: list[Sample]) -> None:
    for sample in samples:
        found = REPAIR.find_calls(sample.text)
        assert found is None or (found.form == "ending" and sample.id.split("/")[1] in ENDING), sample.text


@pytest.mark.parametrize("name", ["hermes", "dsml", "qwen-coder", "kimi"])
def test_the_words_before_a_call_decide_nothing(name: str) -> None:
    for lead in LEADS["words"]:
        found = REPAIR.find_calls(lead + STANDING[name]([READ]))
        assert found is not None and (found.form, found.before) == ("ending", lead), lead


@pytest.mark.parametrize("lead", LEADS["quoting"])
def test_a_call_in_a_quotation_that_was_left_open_is_none(lead: str) -> None:
    for name in ("hermes", "dsml", "qwen-coder", "kimi"):
        assert REPAIR.find_calls(lead + STANDING[name]([READ])) is None, name


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("{}", "alone"),
        ("<think>Hm.</think>\n{}", "alone"),
        ("First.\n\n{}\n{}", "ending"),
        ("{}\n<tool_response>done</tool_response>", "served"),
        ("First.\n\n{}\n\nThen.\n\n{}", None),
        ("{}\n\nI'll wait for the result.", None),
        ("First.\n\n```\n{}\n```", None),
        ("First.\n\n> {}", None),
        ("First.\n\n    {}", None),
    ],
)
def test_the_form_of_calls(text: str, form: str | None) -> None:
    found = REPAIR.find_calls(text.replace("{}", STANDING["hermes"]([READ])))
    assert (found and found.form) == form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}', "cut"),
        ("<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</parameter>", "cut"),
        ('[TOOL_CALLS] [{"name": "read_file", "arguments": {"path": "a.py"}}]', "ending"),
        ('<|python_tag|>{"name": "read_file", "parameters": {"path": "a.py"}}', "ending"),
    ],
)
def test_behind_words_a_call_must_end_as_its_format_ends_it(text: str, form: str) -> None:
    found = REPAIR.find_calls("First.\n\n" + text)
    assert found is not None and found.form == form


def test_a_call_alone_in_a_fence_is_one_only_for_a_server_that_reads_it_so() -> None:
    forms = {}
    for label in ("", "json", "xml", "tool_call", "tool_code"):
        found = REPAIR.find_calls(f"```{label}\n[{WHOLE['pythonic']([READ])[1:-1]}]\n```")
        forms[label] = found and found.form
    assert forms == {"": None, "json": None, "xml": None, "tool_call": "served", "tool_code": "served"}


@pytest.mark.parametrize("sample", BROKEN, ids=[sample["id"] for sample in BROKEN])
def test_damage_in_calls_is_judged_like_damage_elsewhere(sample: dict[str, Any]) -> None:
    found = REPAIR.find_calls(sample["text"])
    assert found is not None, sample["text"]
    verdicts = [REPAIR.judge(call.name, call.arguments) for call in found.calls]
    told = [None if verdict.error else [verdict.name, verdict.arguments] for verdict in verdicts]
    assert told == sample["calls"]


@pytest.mark.parametrize("samples", by_format(MEANT), ids=named)
def test_a_call_that_is_cut_off_never_runs_as_another(samples: list[Sample]) -> None:
    for sample in samples:
        wanted = [json.dumps(call) for call in sample.calls]
        for end in range(len(sample.text) - 1, 0, -7):
            found = REPAIR.find_calls(sample.text[:end])
            for place, call in enumerate(found.calls if found else ()):
                verdict = REPAIR.judge(call.name, call.arguments)
                ran = json.dumps((verdict.name, verdict.arguments))
                assert verdict.error or ran == wanted[place], (sample.text[:end], ran)


def test_unknown_names_alone_are_no_calls() -> None:
    assert REPAIR.find_calls('<tool_call>{"name": "frobnicate", "arguments": {}}</tool_call>') is None
    both = "".join(
        f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>' for name in ("frobnicate", "list_dir")
    )
    found = REPAIR.find_calls(both)
    assert found is not None
    assert [REPAIR.judge(call.name, call.arguments).error is None for call in found.calls] == [False, True]


def test_foreign_names_are_known_in_text() -> None:
    text = '<tool_call>{"name": "str_replace_editor", "arguments": {"command": "view", "path": "a.py"}}</tool_call>'
    found = REPAIR.find_calls(text)
    assert found is not None
    verdict = REPAIR.judge(found.calls[0].name, found.calls[0].arguments)
    assert (verdict.name, verdict.arguments) == ("read_file", {"path": "a.py"})


@pytest.mark.parametrize(
    "piece",
    ["<tool_call>\n{", '<tool_call>{"name"', '\n<tool_call>{"a":"', "\n<function=a>", ". <function=a><parameter=b>",
     '\n<｜DSML｜invoke name="read_file">', "</parameter>", "\n<read_file><path>", "```\n", "<think>", "<", "{", "\n",
     " ", "[TOOL_CALLS]a{", "> <tool_call>{}</tool_call> ", "read_file(", "Thought:\nAction"],
)  # fmt: skip
def test_hostile_text_is_read_to_its_end(piece: str) -> None:
    assert REPAIR.find_calls(piece * (1_048_576 // len(piece))) is None
    assert REPAIR.find_calls(piece * 2_000_000) is None
