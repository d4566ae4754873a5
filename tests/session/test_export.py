"""A session as a document: what is in it in each format, what is kept out, and where it may be written."""

import json
import os
from html.parser import HTMLParser
from pathlib import Path

import pytest

from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import CallFinished, Event, MessageAdded, Rewound, TurnStarted
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall
from codewhale.protocol.views import SessionSummary
from codewhale.session.export import FORMATS, Format, exported, format_of, write_export
from codewhale.session.redaction import Redactor

KEY = "k-very-secret-value-42"
HIDE = Redactor({"API_KEY": KEY}).text
SUMMARY = SessionSummary(
    "s1", f"A <b>title</b> {KEY}", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "/w", 2, 4, "m", "idle", ""
)
HOSTILE = f"<script>alert(1)</script> ![x](http://a.example/p.png) [y](javascript:alert(1)) {KEY} \x1b[2J \ud800"
LOG: tuple[Event, ...] = (
    TurnStarted(1),
    MessageAdded(Message("user", (Text(f"Please: {HOSTILE}"), Text("The date is known.", "harness")))),
    MessageAdded(
        Message(
            "assistant",
            (
                Reasoning("I think."),
                Text(f"# Sure\n\n`code` {HOSTILE}\n\n```py\nx < 1\n```", "model"),
                ToolCall("c1", "read_file", json.dumps({"path": f"a``` {KEY}"})),
                ToolCall("c2", "grep_files", "{}"),
            ),
        )
    ),
    CallFinished("c1", "read_file", False, f"no file\n```\n{HOSTILE}"),
    TurnStarted(2),
    MessageAdded(Message("user", (Text("Taken back."),))),
    Rewound(2),
)


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.seen.append((tag, dict(attrs)))


@pytest.mark.parametrize("form", FORMATS)
def test_everything_that_stands_is_there_and_no_secret(form: Format) -> None:
    data = exported(SUMMARY, LOG, form, HIDE)
    text = data.decode()
    assert KEY not in text and "[redacted API_KEY]" in text and "\x1b" not in text
    for shown in ("Please:", "The date is known.", "I think.", "read_file", "no file", "(no result)", "s1"):
        assert shown in text, shown
    assert "Taken back." not in text


def test_html_loads_and_runs_nothing() -> None:
    page = exported(SUMMARY, LOG, "html", HIDE).decode()
    tags = Tags(page).seen
    assert not {"script", "img", "link", "iframe", "object", "b"} & {tag for tag, _ in tags}
    assert not [value for _, attrs in tags for name, value in attrs.items() if name in ("src", "onload", "style")]
    assert not [attrs for tag, attrs in tags if tag == "a" and str(attrs.get("href")).startswith("javascript")]
    assert "<code>code</code>" in page and "x &lt; 1" in page and "default-src 'none'" in page


def test_json_is_told_by_fields() -> None:
    whole = json.loads(exported(SUMMARY, LOG, "json", HIDE))
    assert (whole["version"], whole["session"]["id"]) == (1, "s1")
    assert [entry["role"] for entry in whole["entries"]] == [
        "user", "harness", "thought", "assistant", "tool", "tool"
    ]  # fmt: skip
    assert whole["entries"][4]["failed"] and whole["entries"][4]["name"] == "read_file"


def test_markdown_fences_hold_what_is_in_them() -> None:
    lines = exported(SUMMARY, LOG, "md", HIDE).decode().splitlines()
    assert lines[0].startswith("# A <b>title</b>")
    start = lines.index("### Tool: read_file (failed)")
    assert lines[start + 2] == "````" and "````" in lines[start + 4 :]


def test_a_format_is_named_by_the_ending_or_said() -> None:
    assert [format_of(name, "") for name in ("a.md", "a.JSON", "a.htm")] == ["md", "json", "html"]
    assert format_of("a.txt", "html") == "html"
    for path, wanted in (("a.txt", ""), ("a", ""), ("a.md", "pdf")):
        with pytest.raises(SessionError, match=r"\.md, \.json or \.html"):
            format_of(path, wanted)


def test_what_is_there_is_replaced_only_by_force_and_only_a_file(tmp_path: Path) -> None:
    target = tmp_path / "out.md"
    write_export(str(target), b"one", force=False)
    with pytest.raises(SessionError, match="--force"):
        write_export(str(target), b"two", force=False)
    assert target.read_bytes() == b"one"
    write_export(str(target), b"two", force=True)
    assert target.read_bytes() == b"two"
    (tmp_path / "link.md").symlink_to(target)
    (tmp_path / "dangling.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(tmp_path / "pipe.md")
    refused = {
        "link.md": "symbolic link",
        "dangling.md": "symbolic link",
        "pipe.md": "not a regular file",
        "": "folder",
        "none/out.md": "folder does not exist",
        "out.md/x.md": "Not a directory",
        "nul\0.md": "null",
        "n" * 300: "too long",
    }
    for name, why in refused.items():
        with pytest.raises(SessionError, match=why):
            write_export(f"{tmp_path}/{name}", b"three", force=True)
    assert target.read_bytes() == b"two" and not (tmp_path / "nowhere.md").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling.md", "link.md", "out.md", "pipe.md"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if os.access(closed, os.W_OK):
        pytest.skip("whoever runs this may write everywhere")
    with pytest.raises(SessionError, match="Permission denied"):
        write_export(str(closed / "a.md"), b"x", force=False)
