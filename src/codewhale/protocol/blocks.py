"""Display blocks: a tool result's face for people. No frontend parses what the model reads."""

from msgspec import Struct


class DiffBlock(Struct, frozen=True, tag="diff"):
    """A unified diff of one file; `path` is workspace-relative."""

    path: str
    diff: str


class TableBlock(Struct, frozen=True, tag="table"):
    """Rows of cells under a header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class TerminalBlock(Struct, frozen=True, tag="terminal"):
    """A command and what it printed; `exit_code` is None while it runs or when it was killed."""

    command: str
    output: str
    exit_code: int | None = None


class ChecklistBlock(Struct, frozen=True, tag="checklist"):
    """Items as (status, text) pairs; status is pending, in_progress or completed."""

    items: tuple[tuple[str, str], ...]


class MarkdownBlock(Struct, frozen=True, tag="markdown"):
    """Prose for a person."""

    text: str


Block = DiffBlock | TableBlock | TerminalBlock | ChecklistBlock | MarkdownBlock
