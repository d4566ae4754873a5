"""A range of lines said by its first and last line, under whatever names: those lines are read, or none."""

from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished
from support.jail import call, played

FIRST = ("start_line", "startLine", "StartLine", "line_start", "from_line", "fromLine", "start")
LAST = (
    "end_line", "endLine", "EndLine", "end-line", "endline", "line_end", "lineEnd", "to_line", "toLine", "end", "last",
)  # fmt: skip


async def read(home: Path, workspace: Path, *ranges: dict[str, Any]) -> list[CallFinished]:
    """The results of reading these ranges of files of 40 rows, one for each."""
    calls = []
    for number, given in enumerate(ranges):
        (workspace / f"{number}.txt").write_text("".join(f"row{number}\n" for number in range(1, 41)))
        calls.append(call("read_file", path=f"{number}.txt", **given))
    return await played(home, workspace, *calls)


def rows(result: CallFinished) -> list[int]:
    """The numbers of the rows that a result shows."""
    return [int(word.removeprefix("row")) for word in result.content.split() if word.startswith("row")]


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize(("begin", "end"), [(10, 20), ("10", "20"), (10, 10), (1, 30)])
async def test_the_lines_of_a_range_are_read_and_no_others(
    begin: Any, end: Any, last: str, home: Path, workspace: Path
) -> None:
    results = await read(home, workspace, *({first: begin, last: end} for first in FIRST))
    wanted = list(range(int(begin), int(end) + 1))
    wrong = {first: result.content for first, result in zip(FIRST, results, strict=True) if rows(result) != wanted}
    assert wrong == {}


@pytest.mark.parametrize("end", [9, 0, -3, "soon", True, None, 10.5])
async def test_where_the_last_line_is_none_what_is_read_begins_at_the_first(
    end: Any, home: Path, workspace: Path
) -> None:
    results = await read(home, workspace, *({"start_line": 10, last: end} for last in LAST))
    for last, result in zip(LAST, results, strict=True):
        assert rows(result) in ([], list(range(10, 41))), (last, result.content)
