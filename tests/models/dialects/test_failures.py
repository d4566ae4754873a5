"""What provider errors mean: the kind, the line, whether it is worth another try."""

import json
from typing import Any

import pytest

from codewhale.models.dialects.failures import from_error, from_status, page_line, retry_after


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (400, "This model's maximum context length is 65536 tokens.", "context_length", False),
        (400, {"code": "context_length_exceeded", "message": "Please reduce the length."}, "context_length", False),
        (400, "Content Exists Risk", "content_policy", False),
        (400, {"code": "invalid_prompt", "message": "flagged as violating our usage policy"}, "content_policy", False),
        (400, {"code": "content_filter", "message": "The response was filtered"}, "content_policy", False),
        (400, "Model Not Exist", "no_model", False),
        (400, {"code": "tool_use_failed", "message": "Failed to call a function."}, "lost_call", False),
        (400, {"code": "invalid_api_key", "message": "nope"}, "auth", False),
        (400, "The `reasoning_content` in the thinking mode must be passed back.", "bad_request", False),
        (401, "Authentication Fails", "auth", False),
        (402, "Insufficient Balance", "quota", False),
        (403, "You exceeded your current quota", "quota", False),
        (403, "no", "auth", False),
        (404, "The model `x` does not exist", "no_model", False),
        (408, "", "timeout", True),
        (413, "", "context_length", False),
        (422, "bad field", "bad_request", False),
        (429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}, "quota", False),
        (429, "Too Many Requests", "rate_limit", True),
        (500, "boom", "server", True),
        (500, {"code": 500, "type": "exceed_context_size_error", "message": "too long"}, "context_length", False),
        (503, "overloaded", "server", True),
        (529, "", "server", True),
    ],
)
def test_statuses(status: int, error: Any, kind: str, retryable: bool) -> None:
    failure = from_status(status, {"content-type": "application/json"}, json.dumps({"error": error}).encode())
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert failure.message.startswith(f"HTTP {status}")
    assert "\n" not in failure.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":{"message":"a\\nb"}}', "HTTP 422: a b"),
        (
            b'{"detail":[{"loc":["body"],"msg":"field required"}]}',
            'HTTP 422: [{"loc":["body"],"msg":"field required"}]',
        ),
        (b'{"message":"m","code":3}', "HTTP 422: m"),
        (b'[{"error":{"message":"in a list","status":"INVALID"}}]', "HTTP 422: in a list"),
        (b'{"error":{}}', 'HTTP 422: {"error":{}}'),
        (b"plain \x1b[31mtext\xff", "HTTP 422: plain \\x1b[31mtext\ufffd"),
        (b"", "HTTP 422"),
        (b"null", "HTTP 422: null"),
    ],
)
def test_lines(body: bytes, said: str) -> None:
    assert from_status(422, {}, body).message == said


def test_hints_for_a_person() -> None:
    assert from_status(404, {}, b"nothing here").message.endswith("(check base_url and path)")
    moved = from_status(307, {"location": "https://other.example/v1?key=secret"}, b"")
    assert moved.message == (
        "HTTP 307: the server redirects to https://other.example/v1; redirects are not followed, set base_url to the "
        "final address"
    )


def test_pages_become_one_line() -> None:
    page = b"<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body>" + b"x" * 5000
    assert page_line(page) == "502 Bad Gateway (an HTML page, not an API answer)"
    assert page_line(b"<p>Access <b>denied</b><script>x()</script></p>").startswith("Access denied (")
    failure = from_status(502, {"content-type": "text/html"}, page)
    assert failure.message == "HTTP 502: 502 Bad Gateway (an HTML page, not an API answer)"
    assert failure.kind == "server"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "x", "code": 429}, "rate_limit"),
        ({"message": "x", "code": "tool_use_failed", "failed_generation": "y"}, "lost_call"),
        ({"message": "x", "code": "503"}, "server"),
        ({"message": "x", "type": "overloaded_error"}, "server"),
        ({"message": "x", "code": 1301}, "server"),
        ({"message": "x", "code": "9" * 5000}, "server"),
        ({"message": "x", "type": "invalid_request_error"}, "bad_request"),
        ({"message": "unknown model x"}, "no_model"),
        ({}, "server"),
        (["odd"], "server"),
    ],
)
def test_errors_inside_an_answer(error: Any, kind: str) -> None:
    assert from_error(error).kind == kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "9" * 30}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, 60.0) == seconds


def test_a_blank_text_is_no_text() -> None:
    assert from_error(" ").message == "the provider reported an error without a message"
    assert from_status(500, {}, b" \n").message == "HTTP 500"
