"""Calls written as text: those that are meant are found whole and in order, those that are shown are left alone."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.repair.face import Repair
from support.writtencalls import READ, STANDING, Sample, meant, shown

REPAIR = Repair(Catalog.load())
MEANT = list(meant())
SHOWN = list(shown())
# Damaged, unclosed and cut calls: a text, and what each call in it comes to; null for one that must be refused.
BROKEN = json.loads(Path(__file__).with_name("textchannel.json").read_text())
# What stands before a call: words that lead to making it, and words that lead to showing one.
LEADS = json.loads(Path(__file__).with_name("leads.json").read_text())


def by_format(samples: list[Sample]) -> list[list[Sample]]:
    return [list(group) for _, group in groupby(samples, key=lambda sample: sample.id.split("/")[0])]


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
        assert sample.before is None or found.before == sample.before, sample.id


@pytest.mark.parametrize("samples", by_format(SHOWN), ids=named)
def test_calls_that_are_shown_are_left_alone(samples: list[Sample]) -> None:
    for sample in samples:
        assert REPAIR.find_calls(sample.text) is None, sample.text


@pytest.mark.parametrize("lead", LEADS["meant"])
def test_words_that_lead_to_doing(lead: str) -> None:
    for name in ("hermes", "dsml", "qwen-coder", "kimi"):
        assert REPAIR.find_calls(lead + STANDING[name]([READ])) is not None, name


@pytest.mark.parametrize("lead", LEADS["shown"])
def test_words_that_lead_to_showing(lead: str) -> None:
    for name in ("hermes", "dsml", "qwen-coder", "kimi"):
        assert REPAIR.find_calls(lead + STANDING[name]([READ])) is None, name


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
