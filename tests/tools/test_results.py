from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.tools.results import ResultTools
from support.calls import call, context, payload, refused

LINES = [f"line {number}" for number in range(1, 201)]
LINES[49] = "ERROR: it broke"
LINES[120] = ""
TEXT = "\n".join(LINES) + "\n"


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "artifacts"))


@pytest.fixture
def sha(store: ArtifactStore) -> str:
    found = store.put(TEXT.encode())
    store.remember("s", "call_9", found)
    return found


def ask(store: ArtifactStore, ref: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = payload(call(ResultTools(store), "retrieve_tool_result", {"ref": ref, **arguments}))
    assert found.pop("ref") == ref
    assert found.pop("path").startswith("artifacts/")
    return found


def test_every_form_of_a_handle(store: ArtifactStore, sha: str) -> None:
    forms = [f"art_{sha[:16]}", "call_9", f"sha:{sha}", sha, f"artifacts/{sha}", f"artifacts/art_{sha[:16]}.txt"]
    for form in [*forms, *(f"tool_result:{form}" for form in forms), store.path(sha)]:
        assert ask(store, form, mode="head", line_count=1)["excerpt"] == "1: line 1"


def test_retrieve_tool_result_sums_up(store: ArtifactStore, sha: str) -> None:
    found = ask(store, "call_9")
    assert found["mode"] == "summary"
    summary = found["summary"]
    assert (summary["total_bytes"], summary["total_lines"], summary["non_empty_lines"]) == (len(TEXT), 200, 199)
    assert summary["signal_lines"] == [{"line": 50, "text": "ERROR: it broke"}]
    assert summary["head"].startswith("1: line 1\n2: line 2\n")
    assert summary["head"].endswith("40: line 40")
    assert summary["tail"].startswith("161: line 161\n")
    assert summary["tail"].endswith("200: line 200")
    assert "lines" in summary["hint"]


def test_head_and_tail(store: ArtifactStore, sha: str) -> None:
    assert ask(store, sha, mode="head", line_count=2) == {
        "mode": "head",
        "total_lines": 200,
        "line_count": 2,
        "excerpt": "1: line 1\n2: line 2",
    }
    assert ask(store, sha, mode="tail", line_count=2)["excerpt"] == "199: line 199\n200: line 200"
    assert ask(store, sha, mode="tail", max_bytes=30)["excerpt"] == "199: line 199\n200: line 200"
    assert ask(store, sha, mode="head", max_bytes=25)["line_count"] == 2


def test_lines(store: ArtifactStore, sha: str) -> None:
    found = {"mode": "lines", "total_lines": 200, "start_line": 49, "end_line": 50}
    excerpt = "49: line 49\n50: ERROR: it broke"
    assert ask(store, sha, mode="lines", lines="49-50") == {**found, "excerpt": excerpt}
    assert ask(store, sha, start_line=49, end_line=50) == {**found, "excerpt": excerpt}
    assert ask(store, sha, lines="7")["excerpt"] == "7: line 7"
    assert ask(store, sha, mode="lines", start_line=190)["end_line"] == 200
    assert ask(store, sha, mode="lines")["end_line"] == 40
    beyond = ask(store, sha, lines="900-950")
    assert beyond["excerpt"] == ""
    assert "200 lines" in beyond["note"]


def test_reading_on_from_next_start_line_gives_every_line_once(store: ArtifactStore, sha: str) -> None:
    start, read = 1, []
    while start:
        found = ask(store, sha, mode="lines", start_line=start, end_line=200, max_bytes=300)
        assert len(found["excerpt"].encode()) <= 300
        read += [line.partition(": ")[2] for line in found["excerpt"].split("\n")]
        start = found.get("next_start_line", 0)
    assert read == LINES


def test_query(store: ArtifactStore, sha: str) -> None:
    found = ask(store, sha, query="error")
    assert found == {
        "mode": "query",
        "query": "error",
        "total_lines": 200,
        "matched_lines": 1,
        "matches_returned": 1,
        "results": [{"line": 50, "excerpt": "49: line 49\n50: ERROR: it broke\n51: line 51"}],
    }
    many = ask(store, sha, query="LINE", max_matches=3, context_lines=0)
    assert (many["matched_lines"], many["matches_returned"]) == (198, 3)
    assert ask(store, sha, query="nowhere")["results"] == []
    assert ask(store, sha, query="line", max_bytes=40)["matches_returned"] == 1


def test_one_endless_line_and_bytes_that_are_no_text(store: ArtifactStore) -> None:
    wide = store.put(b"\xff\x00" + "é".encode() * 50_000)
    found = ask(store, wide, mode="head", max_bytes=1000)
    assert len(found["excerpt"].encode()) <= 1000
    assert "line cut: 1000" in found["excerpt"]
    empty = store.put(b"")
    assert ask(store, empty)["summary"]["total_lines"] == 0
    assert ask(store, empty, mode="tail")["excerpt"] == ""


def test_an_unknown_handle_lists_what_was_tried_and_the_next_call_works(store: ArtifactStore, sha: str) -> None:
    tools = ResultTools(store)
    for ref in ("nope", "art_0123456789abcdef", "../../etc/passwd", "/etc/passwd", "sha:" + "0" * 64):
        error = refused(tools, "retrieve_tool_result", {"ref": ref})
        assert "Tried: call id" in error.message
        assert "art_" in error.message
        assert error.fix is not None
        assert call(tools, error.fix.name, error.fix.arguments).ok
    other = refused(tools, "retrieve_tool_result", {"ref": "call_9"}, context(session="another"))
    assert other.fix is None


def test_a_damaged_output_is_said_to_be_gone(store: ArtifactStore, sha: str) -> None:
    Path(store.path(sha)).write_bytes(b"spoilt")
    assert "no longer whole" in refused(ResultTools(store), "retrieve_tool_result", {"ref": sha}).message


def test_bad_ranges_and_modes(store: ArtifactStore, sha: str) -> None:
    tools = ResultTools(store)
    assert refused(tools, "retrieve_tool_result", {"ref": sha, "mode": "query"}).fix is None
    for arguments in ({"lines": "5-2"}, {"lines": "0"}, {"start_line": 5, "end_line": 2}):
        error = refused(tools, "retrieve_tool_result", {"ref": sha, **arguments})
        assert error.fix is not None
        assert call(tools, error.fix.name, error.fix.arguments).ok
    for arguments in ({"mode": "all"}, {"lines": "x"}, {"line_count": 501}, {"max_bytes": 131_073}):
        with pytest.raises(msgspec.ValidationError):
            call(tools, "retrieve_tool_result", {"ref": sha, **arguments})
