"""Exact answers over whole corpora, through a session's tools, with a model that is a function of its prompt. How large
they are is RLM_CORPORA, in megabytes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.corpora import Corpus, answer, corpus
from support.recursive import Call, evaluated, opened, rounds

SIZES = [int(size) for size in os.environ.get("RLM_CORPORA", "1,8").split(",")]
# What a question may hold bounds how few of them a source needs.
PART = {1: 20_000, 8: 200_000}
MERGE = "total = {}\nfor one in answers:\n    for k, v in json.loads(one).items(): total[k] = total.get(k, 0) + v\n"


@pytest.fixture(params=SIZES, ids=lambda size: f"{size}MB")
def made(request: pytest.FixtureRequest, workspace: Path) -> Corpus:
    return corpus(workspace / "source.txt", request.param)


async def test_a_needle_counts_pairs_and_a_join_are_exact_and_every_byte_is_seen(
    made: Corpus, home: Path, workspace: Path
) -> None:
    megabytes = made.bytes >> 20
    size = PART.get(megabytes, 350_000)
    (home / "config.toml").write_text("[rlm]\nsub_queries = 2000\nround_queries = 2000\n")
    codes = [
        "answers = sub_query_all('What opens the vault? Answer with it alone, or none.', parts)\n"
        "finalize([a for a in answers if a != 'none'])",
        "answers = sub_query_all('How many records have each label? Answer as a JSON object.', parts)\n"
        f"{MERGE}finalize(total)",
        "answers = sub_query_all('What users below 40 are there, with the label? Answer as JSON [[user, label]].',"
        " parts)\nwrote = {}\nfor one in answers:\n    for user, label in json.loads(one):"
        " wrote.setdefault(user, set()).add(label)\n"
        "both = [u for u, kinds in wrote.items() if {'crash', 'billing'} <= kinds]\n"
        "finalize(len(both) * (len(both) - 1) // 2)",
        "answers = sub_query_all('Sum the amount of each label. Answer as a JSON object.', parts)\n"
        f"{MERGE}finalize(total)",
        "joined = all(a.end == b.start for a, b in zip(parts, parts[1:]))\n"
        "finalize([parts[0].start, parts[-1].end, joined, chunk_coverage(parts)['covered'],"
        " len(search('\\U0001f511'))])",
    ]
    calls: list[Call] = []
    for number, code in enumerate(codes):  # a session each: one asks at most 2,000
        begin = f"import json\nparts = chunk({size})\n"
        calls += [opened(name=f"s{number}"), evaluated(begin + code, f"s{number}")]
    found, models, _ = await rounds(home, workspace, calls, answer)
    assert not any(one.get("had_error") or "error" in one for one in found), found
    finals: list[Any] = [one.get("final_value") for one in found[1::2]]
    assert finals[0] == ["7391-KITE"]
    assert finals[1] == made.labels and finals[2] == made.pairs and finals[3] == made.amounts
    assert finals[4] == [0, made.bytes, True, 1.0, 1]
    assert found[1]["coverage"] == {"seen_bytes": made.bytes, "of_bytes": made.bytes, "percent": 100.0, "gaps": []}
    assert max(map(len, models.questions)) <= 400_000


async def test_one_line_without_an_end_is_cut_and_counted_whole(home: Path, workspace: Path) -> None:
    (workspace / "source.txt").write_bytes(b"ab " * (2 << 20))
    code = (
        "parts = chunk(300000)\n"
        "answers = sub_query_all('How many letters a are there? Answer with a number alone.', parts)\n"
        "finalize(sum(map(int, answers)))"
    )
    counted = lambda prompt: str(prompt.partition("\n\n")[2].count("a"))  # noqa: E731
    found, _, _ = await rounds(home, workspace, [opened(), evaluated(code)], counted)
    assert found[1]["final_value"] == 2 << 20 and found[1]["coverage"]["percent"] == 100.0


async def test_the_same_seed_gives_the_same_results_and_events(tmp_path: Path) -> None:
    told = []
    for number in range(2):
        home, workspace = tmp_path / f"home{number}", tmp_path / f"workspace{number}"
        home.mkdir()
        workspace.mkdir()
        corpus(workspace / "source.txt", 1)
        code = (
            "answers = sub_query_all('How many records have each label? Answer as a JSON object.', chunk(20000))\n"
            "print(sorted({'b', 'a', 'c'}), {'x', 'y', 'z', 'w'}, answers)\nfinalize(list(answers))"
        )
        found, _, events = await rounds(home, workspace, [opened(), evaluated(code)], answer)
        kinds = sorted(type(event).__name__ for event in events)
        told.append((json.dumps(_lasting(found), sort_keys=True), kinds))
    assert told[0] == told[1]


def _lasting(value: Any) -> Any:
    """A result without its times, memory and the ids that are made anew."""
    if isinstance(value, dict):
        left = {"duration_ms", "seconds", "memory_bytes", "id", "session_id"}
        return {key: _lasting(one) for key, one in value.items() if key not in left}
    return [_lasting(one) for one in value] if isinstance(value, list) else value
