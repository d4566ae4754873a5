"""A kernel that is killed, providers that refuse, and worked examples that a weak model can follow."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.protocol.events import CallFinished
from codewhale.protocol.ops import Interrupt
from codewhale.testing import harness
from support.corpora import answer, corpus
from support.patience import HANG
from support.recursive import Call, Models, evaluated, opened, parsed, rounds


async def test_a_killed_kernel_is_said_and_handles_stay_readable(home: Path, workspace: Path) -> None:
    (workspace / "source.txt").write_text("one\ntwo\n")
    calls: list[Call] = [
        opened(),
        evaluated("kept = 1\nfinalize('before')"),
        evaluated("sub_query('Which?', SOURCE[:3])\nfinalize('never')"),
        ("handle_read", {"handle": "s/final_0", "slice": {"start": 0}}),
        evaluated("kept"),
        evaluated("finalize('after')"),
    ]
    place: list[Any] = []

    def killing(prompt: str) -> str:
        (session,) = place[0].app.parts.recursion.sessions._open.values()
        os.kill(session._kernel._process[0], signal.SIGKILL)
        return "late"

    models = Models(calls, killing)
    async with harness(home, workspace, models) as stage:
        place.append(stage)
        events = await stage.turn("Go")
    found = [parsed(event) for event in events if isinstance(event, CallFinished)]
    assert found[2].get("had_error"), found[2]
    assert "variables are gone" in found[2]["state_lost"]
    assert found[3]["content"] == "before"
    assert found[4]["error"]["kind"] == "NameError" and "began without earlier variables" in found[4]["state_lost"]
    assert found[5]["final_value"] == "after" and found[5]["final"]["name"] == "final_1"
    assert "state_lost" not in found[5]


@pytest.mark.parametrize("way", ["replaced", "removed", "written"])
async def test_a_kernel_does_not_begin_anew_over_another_text(home: Path, workspace: Path, way: str) -> None:
    path = workspace / "source.txt"
    path.write_text("the old text")
    calls = [opened(), evaluated("sub_query('Which?', SOURCE[:3])"), evaluated("finalize(SOURCE)")]
    place: list[Any] = []

    def killing(prompt: str) -> str:
        (session,) = place[0].app.parts.recursion.sessions._open.values()
        os.kill(session._kernel._process[0], signal.SIGKILL)
        (workspace / "new.txt").write_text("the new text")
        if way == "replaced":
            (workspace / "new.txt").rename(path)
        elif way == "removed":
            path.unlink()
        else:
            path.write_text("the new text, longer")
        return "late"

    async with harness(home, workspace, Models(calls, killing)) as stage:
        place.append(stage)
        events = await stage.turn("Go")
    found = [parsed(event) for event in events if isinstance(event, CallFinished)]
    assert "variables are gone" in found[1]["state_lost"]
    assert "has changed since it was opened" in found[2]["error"] and "open it again" in found[2]["error"]


async def test_a_provider_that_refuses_every_third_leaves_no_slot_empty(home: Path, workspace: Path) -> None:
    corpus(workspace / "source.txt", 1)
    asked: list[str] = []

    class Refusing(Models):
        def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
            if request.get("tools"):
                return super().__call__(request)
            asked.append(request["messages"][-1]["content"])
            if len(asked) % 3 == 0:
                return {"error": {"kind": "bad_request", "message": "no", "retryable": False}}
            return {"text": "7"}

    code = (
        "answers = sub_query_all('A number.', chunk(20000))\n"
        "finalize([len(answers), len(answers.errors), list(answers)])"
    )
    models = Refusing([opened(), evaluated(code)], answer)
    async with harness(home, workspace, models) as stage:
        events = await stage.turn("Go")
    finished = [parsed(event) for event in events if isinstance(event, CallFinished)]
    slots, errors, answers = finished[1]["final_value"]
    assert slots == len(asked) == len(answers) and errors == slots // 3
    assert all(one == "7" or one.startswith("[sub-query failed: ") for one in answers)
    assert len(set(asked)) == len(asked)


async def test_after_a_quota_error_in_a_batch_nothing_more_is_sent(home: Path, workspace: Path) -> None:
    corpus(workspace / "source.txt", 1)
    asked = []

    class Empty(Models):
        def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
            if request.get("tools"):
                return super().__call__(request)
            asked.append(1)
            return {"error": {"kind": "quota", "message": "no money left", "retryable": False}}

    code = (
        "answers = sub_query_all('A number.', chunk(20000))\nfinalize([len(answers), [e.kind for e in answers.errors]])"
    )
    async with harness(home, workspace, Empty([opened(), evaluated(code)], answer)) as stage:
        events = await stage.turn("Go")
    finished = [parsed(event) for event in events if isinstance(event, CallFinished)]
    slots, kinds = finished[1]["final_value"]
    assert slots == len(kinds) > 40 and len(asked) <= 16 and "quota" in kinds


def examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls that descriptions show, by tool."""
    for name, row in Catalog.load().rows.items():
        if name.startswith(("rlm_", "handle_")):
            for tool, written in re.findall(
                r'(rlm_\w+ )?(\{"(?:name|handle)": .*?\})(?=[,.;)]| For|$)', row.description
            ):
                yield tool.strip() or name, json.loads(written.replace("}}", "}}"))


def test_each_description_that_works_with_code_shows_how() -> None:
    shown = [name for name, _ in examples()]
    assert {"rlm_open", "rlm_eval", "handle_read"} <= {*shown}


async def test_every_example_of_a_description_runs(home: Path, workspace: Path) -> None:
    (workspace / "build.log").write_text("error E12 at once\nfine\n" * 2_000)

    def said(prompt: str) -> str:
        return str(prompt.count("error E")) if "number" in prompt else "E12, E13"

    calls: list[Call] = list(examples())
    finals = evaluated("finalize([{'ok': False, 'name': 'a'}])", "log")
    order = [call for call in calls if call[0] == "rlm_open"]
    order += [call for call in calls if call[0] == "rlm_eval"] + [finals]
    last = sum(call[0] == "rlm_eval" for call in calls)
    for name, arguments in calls:
        if name == "handle_read":
            number = last if "jsonpath" in arguments else 0
            order.append((name, {**arguments, "handle": f"log/final_{number}"}))
    found, _, _ = await rounds(home, workspace, order, said)
    assert not any(one.get("error") or one.get("had_error") for one in found), found
    codes, counted = (one["final_value"] for one in found[1:3])
    assert counted == 2_000 and codes == ["E12", "E13"]
    assert found[-1]["matches"] == ["a"]


class WeakRoot:
    """A root that knows one worked example, and puts another question and another way to add up in its place."""

    def __init__(self, question: str, add: str) -> None:
        row = Catalog.load().rows["rlm_eval"]
        (written,) = re.findall(r"Example: (\{.*?\})\.", row.description)
        shown = json.loads(written)["code"].split("\n")
        asking = re.sub(r"'.*?'", repr(question), shown[1], count=1)
        self.code = "\n".join([shown[0], asking, add])


@pytest.mark.parametrize(
    ("question", "add", "field"),
    [
        (
            "How many records have each label? Answer as a JSON object.",
            "import json\ntotal = {}\nfor a in answers:\n"
            "  for k, v in json.loads(a).items(): total[k] = total.get(k, 0) + v\n"
            "finalize(total)",
            "labels",
        ),
        (
            "What users below 40 are there, with the label? Answer as JSON [[user, label]].",
            "import json\nwrote = {}\nfor a in answers:\n"
            "  for u, k in json.loads(a): wrote.setdefault(u, set()).add(k)\n"
            "n = sum({'crash', 'billing'} <= k for k in wrote.values())\nfinalize(n * (n - 1) // 2)",
            "pairs",
        ),
    ],
)
async def test_a_weak_root_that_follows_the_example_is_exact(
    question: str, add: str, field: str, home: Path, workspace: Path
) -> None:
    made = corpus(workspace / "source.txt", 1)
    root = WeakRoot(question, add)
    found, _, _ = await rounds(home, workspace, [opened(name="log"), evaluated(root.code, "log")], answer)
    assert found[1]["final_value"] == getattr(made, field), found
    assert found[1]["coverage"]["percent"] == 100.0


async def test_a_cancelled_round_asks_nothing_more_and_the_next_one_works(home: Path, workspace: Path) -> None:
    corpus(workspace / "source.txt", 1)
    asked = asyncio.Event()

    class Slow(Models):
        def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
            if request.get("tools"):
                return super().__call__(request)
            asked.set()
            return {"text": "late", "delay": 600}

    calls = [opened(), evaluated("sub_query_all('A number.', chunk(20000))"), evaluated("finalize(len(SOURCE))")]
    models = Slow(calls, answer)
    async with harness(home, workspace, models) as stage:
        session = await stage.open()
        turn = asyncio.ensure_future(stage.turn("Go", session))
        await asyncio.wait_for(asked.wait(), HANG)
        await stage.client.submit(Interrupt(session))
        await turn
        events = await stage.turn("Go on", session)
    (found,) = [parsed(event) for event in events if isinstance(event, CallFinished)]
    assert found["final"] is not None and not found["had_error"]
