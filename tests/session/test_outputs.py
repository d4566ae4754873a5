"""What a tool returned and what the model reads of it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.session.outputs import (
    INLINE_LIMIT,
    INLINE_LIMIT_LARGE,
    Outputs,
    error_metadata,
    inline_limit,
    render_error,
)
from codewhale.session.redaction import Redactor
from support.storage import FailingOps

SECRET = "sk-0123456789abcdef"


@pytest.fixture
def store(home: Path) -> ArtifactStore:
    """Artifacts in a home."""
    return ArtifactStore(str(home / "artifacts"))


@pytest.fixture
def outputs(store: ArtifactStore) -> Outputs:
    """The pipeline over that store."""
    return Outputs(store, Redactor({"API_KEY": SECRET}))


def lines(count: int) -> str:
    """Numbered lines of 20 bytes."""
    return "".join(f"line {number:013d}\n" for number in range(count))


@pytest.mark.parametrize(
    ("window", "limit"),
    [(0, INLINE_LIMIT), (128_000, 16_384), (499_999, 16_384), (500_000, 49_152), (1_000_000, INLINE_LIMIT_LARGE)],
)
def test_a_large_window_reads_more(window: int, limit: int) -> None:
    assert inline_limit(window) == limit


def test_what_fits_is_read_as_it_is(outputs: Outputs) -> None:
    text = "é" * (INLINE_LIMIT // 2)
    assert outputs.fit("s", "call_1", text, INLINE_LIMIT) == (text, {})


def test_what_does_not_fit_is_cut_at_lines_and_kept_whole(outputs: Outputs, store: ArtifactStore) -> None:
    text = lines(5000)
    content, metadata = outputs.fit("s", "call_1", text, INLINE_LIMIT)
    head, _, rest = content.partition("[... ")
    notice, _, tail = rest.partition(" ...]\n")
    assert len(content.encode()) <= INLINE_LIMIT
    assert text.startswith(head) and head.endswith("\n")
    assert text.endswith(tail) and tail.startswith("line ")
    assert 1.7 < len(head) / len(tail) < 2.3
    sha = metadata["artifact_sha256"]
    assert store.get(sha) == text.encode()
    assert metadata["artifact_id"] == f"art_{sha[:16]}"
    assert metadata["artifact_bytes"] == len(text)
    assert metadata["omitted_bytes"] == len(text) - len(head) - len(tail)
    assert f"{metadata['omitted_bytes']} of {len(text)} bytes" in notice
    assert f'retrieve_tool_result {{"ref": "{metadata["artifact_id"]}"' in notice
    assert store.recall("s", "call_1") == sha


def test_head_and_tail_are_read_also_where_the_whole_cannot_be_kept(home: Path) -> None:
    full = ArtifactStore(str(home / "artifacts"), ops=FailingOps(1, taken=100, lasting=True))
    text = lines(5000)
    content, metadata = Outputs(full, Redactor({})).fit("s", "call_1", text, INLINE_LIMIT)
    head, _, rest = content.partition("[... ")
    notice, _, tail = rest.partition(" ...]\n")
    assert len(content.encode()) <= INLINE_LIMIT
    assert text.startswith(head) and text.endswith(tail) and len(head) > len(tail) > 4000
    assert "could not be kept" in notice and "retrieve_tool_result" not in content
    assert metadata.pop("keep_error").startswith(f"cannot store an output of {len(text)} bytes")
    assert metadata == {"kept": False, "omitted_bytes": len(text) - len(head) - len(tail)}
    assert full.recall("s", "call_1") is None


def test_secrets_are_gone_before_anything_is_cut_or_kept(outputs: Outputs, home: Path) -> None:
    content, metadata = outputs.fit("s", "call_1", f"{SECRET}\n" + lines(5000) + SECRET, INLINE_LIMIT)
    assert SECRET not in content
    assert content.startswith("[redacted API_KEY]\n") and content.endswith("[redacted API_KEY]")
    assert metadata
    kept = [path.read_bytes() for path in (home / "artifacts").rglob("*") if path.is_file()]
    assert len(kept) == 1
    assert SECRET.encode() not in kept[0]


@settings(max_examples=40)
@given(st.text(max_size=50), st.integers(1, 3000))
def test_any_text_stays_within_the_limit(piece: str, times: int) -> None:
    kept: list[bytes] = []

    class Kept:
        """A keeper in memory."""

        def put(self, data: bytes) -> str:
            """Keep."""
            kept.append(data)
            return "0" * 64

        def remember(self, session: str, call_id: str, sha: str) -> None:
            """Nothing to remember."""

    text = piece * times
    content, metadata = Outputs(Kept(), Redactor({})).fit("s", "c", text, INLINE_LIMIT)
    assert len(content.encode()) <= INLINE_LIMIT
    assert kept == ([text.encode()] if metadata else [])
    assert metadata or content == text


def test_lone_surrogates_become_readable(outputs: Outputs) -> None:
    assert outputs.fit("s", "c", "a\ud800b", INLINE_LIMIT) == ("a\ufffdb", {})


def test_an_error_tells_kind_tool_reason_and_the_next_call() -> None:
    error = ToolError(
        "invalid_input",
        "`limit` must be an integer; got the string '5'.",
        field="limit",
        expected="an integer",
        received="the string '5'",
        fix=NextCall("read_file", {"path": "a"}),
    )
    error.metadata["total"] = 3
    assert render_error("read_file", error) == (
        "Error (invalid_input) in read_file: `limit` must be an integer; got the string '5'.\n"
        'Next call: read_file {"path":"a"}'
    )
    assert error_metadata(error) == {
        "total": 3,
        "error": {
            "code": "invalid_input",
            "message": "`limit` must be an integer; got the string '5'.",
            "field": "limit",
            "expected": "an integer",
            "received": "the string '5'",
            "fix": {"name": "read_file", "arguments": {"path": "a"}},
        },
    }


def test_what_a_message_leaves_out_is_told_beside_it() -> None:
    error = ToolError("execution_failed", "no such file: b", field="path", expected="an existing file", received="b")
    assert render_error("read_file", error).endswith(": no such file: b\n`path`: wanted an existing file, got b.")
    error = ToolError("invalid_input", "search is empty", field="search", expected="text of the file")
    assert render_error("edit_file", error).endswith("\n`search`: wanted text of the file, got an empty string.")
    assert error_metadata(error)["error"]["received"] == "an empty string"
    assert render_error("x", ToolError("not_available", "Gone.")) == "Error (not_available) in x: Gone."


def test_a_timeout_advises_a_narrower_scope() -> None:
    text = render_error("grep_files", ToolError("timeout", "It did not end within 5 seconds."))
    assert text.endswith("Narrow the scope or raise the timeout.")
