"""Answers that hold a call as text, in eight formats and twelve languages, through the whole application: at a model
with a native channel nothing runs that was not meant, at one whose channel is text what a server's parser takes."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.textcases import FORMATS, LANGUAGES, MEANT, NOT_MEANT, play, texts
from support.textscore import Judged, score

CASES = list(texts())
# What SGLang's own parsers take of each text, recorded by `make text-calls`.
JUDGED: Judged = {
    name: [(tool, arguments) for tool, arguments in calls]
    for name, calls in json.loads(Path(__file__).with_name("served.json").read_text(encoding="utf-8")).items()
}


def test_the_texts_are_as_many_and_as_different_as_they_should_be() -> None:
    assert len(CASES) == len({case.text for case in CASES}) == len(JUDGED) == 300
    parts = [case.id.split("/") for case in CASES]
    for place, wanted in enumerate(((*MEANT, *NOT_MEANT), LANGUAGES, FORMATS)):
        assert {part[place] for part in parts} == set(wanted)


@pytest.mark.parametrize("kind", [*MEANT, *NOT_MEANT])
async def test_with_a_native_channel_no_change_runs_that_was_not_meant(kind: str, tmp_path: Path) -> None:
    await _hold(kind, tmp_path, native=True)


@pytest.mark.parametrize("kind", [*MEANT, *NOT_MEANT])
async def test_where_text_is_the_channel_what_runs_is_what_a_server_would_take(kind: str, tmp_path: Path) -> None:
    await _hold(kind, tmp_path, native=False)


async def _hold(kind: str, folder: Path, *, native: bool) -> None:
    """A third of the texts of a kind; `make text-calls` plays them all."""
    some = [case for case in CASES if case.kind == kind][::3]
    played = [(case, await play(case, folder / str(n), native=native)) for n, case in enumerate(some)]
    total = score(played, JUDGED, native=native)
    broken: Mapping[str, list[str]] = {
        name: getattr(total, name) for name in ("unmeant", "silent", "judged", "failed", "unseen")
    }
    assert not any(broken.values()), broken
    assert total.done >= 90 and total.texts == 17
