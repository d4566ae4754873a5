"""What of a transcript can be taken elsewhere: whole messages, code blocks, and the places in files that it names."""

import re

from codewhale.display.transcript.blocks import AskRecord, CallCard, NoteBlock, TextBlock, TranscriptBlock, Work
from codewhale.display.transcript.code import diff_rows
from codewhale.display.transcript.drawing import lines_of
from codewhale.display.transcript.model import TranscriptModel
from codewhale.display.transcript.splitting import Splitter
from codewhale.display.words import Words
from codewhale.lib.text import scrub_surrogates
from codewhale.protocol.blocks import Block as Display
from codewhale.protocol.blocks import ChecklistBlock, DiffBlock, MarkdownBlock, TableBlock, TerminalBlock

# Terminals take about 100,000 characters of base64 at once (OSC 52).
MOST_BYTES = 75_000
_PLACE = re.compile(r"(?<![\w/.])((?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9})(?::(\d{1,7}))?")


class Copier:
    """What can be taken out of a transcript."""

    def __init__(self, model: TranscriptModel, words: Words) -> None:
        self._model = model
        self._words = words

    def block(self, block: TranscriptBlock) -> tuple[str, str]:
        """(what it is, its text)."""
        text = whole_text(self._model, block) or "\n".join(lines_of(block, self._words))
        return ("call" if isinstance(block, CallCard) else "message"), text

    def last_words(self) -> TextBlock | None:
        """The latest words of the model."""
        for block in (*reversed(self._model.live), *reversed(self._model.settled)):
            if isinstance(block, TextBlock) and block.who == "model":
                return block
        return None

    def answer(self) -> str:
        words = self.last_words()
        return "" if words is None else whole_text(self._model, words)

    def code_blocks(self, block: TranscriptBlock) -> list[str]:
        return code_blocks(whole_text(self._model, block))

    @staticmethod
    def bounded(text: str) -> tuple[str, bool]:
        return bounded(text)

    def place_of(self, block: TranscriptBlock) -> tuple[str, int]:
        """The file that a block is about and the line, ("", 0) when it names none."""
        if isinstance(block, CallCard):
            for display in block.display:
                if isinstance(display, DiffBlock) and display.path not in ("", "."):
                    rows = diff_rows(display.diff, 200)
                    return display.path, next((row.number for row in rows if row.sign in "+-"), 0)
                if isinstance(display, TableBlock) and display.header[:2] == ("file", "line") and display.rows:
                    path, line = display.rows[0][:2]
                    return path, int(line) if line.isdigit() else 0
            if block.files:
                return block.files[-1], 0
        text = block.subject if isinstance(block, CallCard) else whole_text(self._model, block)
        match = _PLACE.search(text[:200_000])
        return (match[1], int(match[2] or 0)) if match else ("", 0)

    def searchable(self, block: TranscriptBlock) -> str:
        """The text of a block that is looked through."""
        if isinstance(block, TextBlock):
            return block.text
        if isinstance(block, CallCard):
            return f"{block.name} {block.subject}\n{card_text(block)}"
        return whole_text(self._model, block)


def whole_text(model: TranscriptModel, block: TranscriptBlock) -> str:
    """The text of a block as it came: all parts of its words, a call's result, or its line."""
    match block:
        case TextBlock():
            found = []
            for part in range(1_000_000):
                other = model.find(block.whole + (part if block.whole >= 0 else -part))
                if not isinstance(other, TextBlock) or other.whole != block.whole:
                    break
                found.append(other.text)
            return "".join(found) or block.text
        case CallCard():
            return card_text(block)
        case NoteBlock():
            return block.detail or block.text or " ".join(str(value) for value in block.values.values())
        case Work():
            return f"{block.name}: {block.text} {block.latest}".strip()
        case AskRecord():
            return "\n".join(text for row in block.rows for text in row if text)
    return ""


def card_text(card: CallCard) -> str:
    """A call's result: what it shows, or what the model was answered; its last lines while it runs."""
    shown = [display_text(display) for display in card.display]
    return "\n".join(text for text in shown if text) or card.said or "\n".join(card.tail) or card.subject


def display_text(display: Display) -> str:
    """A display as text."""
    match display:
        case DiffBlock(diff=diff):
            return diff
        case TerminalBlock(command=command, output=output):
            return f"$ {command}\n{output}" if command else output
        case TableBlock(header=header, rows=rows):
            return "\n".join("\t".join(row) for row in (header, *rows))
        case ChecklistBlock(items=items):
            return "\n".join(f"[{'x' if status == 'completed' else ' '}] {text}" for status, text in items)
        case MarkdownBlock(text=text):
            return text


def code_blocks(text: str) -> list[str]:
    """The fenced code of a text, each block whole."""
    splitter = Splitter()
    splitter.feed(text)
    found: list[str] = []
    joint = "\n"
    for piece in splitter.finish():
        if piece.code is not None and piece.goes_on and found:
            found[-1] += joint + piece.text
        elif piece.code is not None:
            found.append(piece.text)
        joint = "" if piece.broken else "\n"
    return found


def bounded(text: str) -> tuple[str, bool]:
    """What a terminal takes of a text, and whether that is all of it."""
    data = scrub_surrogates(text).encode()
    if len(data) <= MOST_BYTES:
        return data.decode(), True
    return data[:MOST_BYTES].decode(errors="ignore"), False
