"""Filling in the middle: which gap, what is shown, what is written, and what is refused."""

import asyncio
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.blocks import DiffBlock, MarkdownBlock
from codewhale.protocol.errors import ToolError
from codewhale.protocol.ports import Infilled
from codewhale.protocol.tools import Preview, ToolResult
from codewhale.tools.base import BoundTool, bound, specs
from codewhale.tools.files import FileTools
from codewhale.tools.fim import FimTools
from codewhale.workspace.files import Workspaces
from support.fixcheck import arguments, context, run_fix

CODE = b"def add(a, b):\n    pass\n\n\ndef sub(a, b):\n    return a - b\n"
GOOD = {"path": "a.py", "prefix_anchor": "def add(a, b):\n", "suffix_anchor": "\n\n\ndef sub"}


class Fills:
    """A model that always says the same, and remembers what it was asked."""

    def __init__(self, filled: Infilled) -> None:
        self.filled = filled
        self.asked: list[tuple[str, str, int]] = []

    async def complete(self, session: str, prompt: str, *, max_tokens: int) -> str:
        """Not asked here."""
        raise NotImplementedError

    async def infill(self, session: str, prefix: str, suffix: str, *, max_tokens: int) -> Infilled:
        """Always the same."""
        self.asked.append((prefix, suffix, max_tokens))
        return self.filled


class Bench:
    """The tool over a folder, and what its model says."""

    def __init__(self, home: Path, root: Path) -> None:
        self.root = root
        self.workspaces = Workspaces(ArtifactStore(str(home / "artifacts")))
        self.model = Fills(Infilled("    return a + b"))
        self.tools: dict[str, BoundTool] = {
            **bound(FileTools(self.workspaces)),
            **bound(FimTools(self.workspaces, self.model)),
        }

    def says(self, text: str, **facts: Any) -> None:
        """What the model says from now on."""
        self.model.filled = Infilled(text, **facts)

    async def preview(self, **values: Any) -> Preview:
        """What a call would do."""
        tool = self.tools["fim_edit"]
        shown = await tool.run(arguments(tool, {**GOOD, **values}), context(str(self.root)))
        assert isinstance(shown, Preview)
        return shown

    async def fill(self, **values: Any) -> ToolResult:
        """What a call does."""
        return await (await self.preview(**values)).run()

    async def refused(self, **values: Any) -> ToolError:
        """The error of a call, once its next call was seen to work."""
        with pytest.raises(ToolError) as caught:
            await self.preview(**values)
        await run_fix(self.tools, str(self.root), caught.value)
        return caught.value


@pytest.fixture
def bench(home: Path, workspace: Path) -> Bench:
    """A bench with one file."""
    (workspace / "a.py").write_bytes(CODE)
    return Bench(home, workspace)


def test_the_row_is_gated_and_shows_first() -> None:
    (row,) = specs(FimTools, "fim")
    assert row.parameters["required"] == ["path", "prefix_anchor", "suffix_anchor"]
    assert row.parameters["properties"]["max_tokens"]["default"] == 1024
    assert (row.gate, row.previews, row.parallel, list(row.effects)) == ("fim", True, False, ["writes"])


async def test_the_gap_between_the_anchors_is_filled(bench: Bench) -> None:
    result = await bench.fill()
    assert bench.model.asked == [("def add(a, b):\n", "\n\n\ndef sub(a, b):\n    return a - b\n", 1024)]
    written = (bench.root / "a.py").read_bytes()
    assert written == CODE.replace(b"    pass", b"    return a + b")
    report = json.loads(result.content)
    assert list(report) == ["success", "path", "generated_text", "prefix_end", "suffix_start", "message"]
    assert report["success"] is True and report["path"] == "a.py" and report["generated_text"] == "    return a + b"
    assert CODE[: report["prefix_end"]] == b"def add(a, b):\n"
    assert CODE[report["suffix_start"] :].startswith(b"\n\n\ndef sub")
    assert report["message"] == "Filled in a.py from line 2: 16 bytes in place of 8."
    (change,) = result.changes
    assert bench.workspaces.artifacts.get(change.before_artifact or "") == CODE
    assert result.metadata["sha256"] == change.after and result.metadata["cut"] is False


async def test_the_diff_is_shown_before_anything_is_written(bench: Bench) -> None:
    shown = await bench.preview()
    (diff,) = shown.display
    assert isinstance(diff, DiffBlock) and diff.path == "a.py"
    assert "-    pass\n+    return a + b\n" in diff.diff
    assert (bench.root / "a.py").read_bytes() == CODE
    result = await shown.run()
    assert result.display == shown.display
    assert (bench.root / "a.py").read_bytes() != CODE


async def test_what_changed_since_it_was_shown_is_not_written_over(bench: Bench) -> None:
    shown = await bench.preview()
    (bench.root / "a.py").write_bytes(CODE + b"# more\n")
    with pytest.raises(ToolError, match="changed on disk") as caught:
        await shown.run()
    await run_fix(bench.tools, str(bench.root), caught.value)
    assert (bench.root / "a.py").read_bytes() == CODE + b"# more\n"


async def test_a_file_that_changed_since_it_was_read_is_refused_before_the_model_is_asked(bench: Bench) -> None:
    reader = bench.tools["read_file"]
    await reader.run(arguments(reader, {"path": "a.py"}), context(str(bench.root)))
    (bench.root / "a.py").write_bytes(CODE + b"# more\n")
    error = await bench.refused()
    assert "changed on disk" in error.message and bench.model.asked == []


async def test_the_first_prefix_and_the_first_suffix_after_it_count(bench: Bench) -> None:
    (bench.root / "b.txt").write_text("end\n<one>\nend\n<one>\nend\n")
    bench.says("middle\n")
    report = json.loads((await bench.fill(path="b.txt", prefix_anchor="<one>\n", suffix_anchor="end\n")).content)
    assert (report["prefix_end"], report["suffix_start"]) == (10, 10)
    assert (bench.root / "b.txt").read_text() == "end\n<one>\nmiddle\nend\n<one>\nend\n"
    assert report["message"] == "Filled in b.txt from line 3: 7 bytes."


@pytest.mark.parametrize(
    ("before", "after", "encoding"),
    [
        ("é\U0001f40b(", ")ü", "utf-8"),
        ("é(", ")ü", "latin-1"),
        ("é\U0001f40b(", ")ü", "utf-8-sig"),
        ("é\U0001f40b(", ")ü", "utf-16"),
    ],
)
async def test_offsets_are_bytes_of_the_file_in_its_own_encoding(
    bench: Bench, before: str, after: str, encoding: str
) -> None:
    data = f"{before}{after}".encode(encoding)
    (bench.root / "b.txt").write_bytes(data)
    bench.says("ö")
    result = await bench.fill(path="b.txt", prefix_anchor="(", suffix_anchor=")")
    report = json.loads(result.content)
    start, end = report["prefix_end"], report["suffix_start"]
    size = result.metadata["bytes"]
    written = (bench.root / "b.txt").read_bytes()
    assert written.decode(encoding) == f"{before}ö{after}"
    assert written[:start] + written[start + size :] == data and start == end == len(before.encode(encoding))


WORDS = st.text(st.sampled_from("ab \n\r\u00e9\u6f22\U0001f40b"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(WORDS, WORDS, WORDS, WORDS, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_nothing_but_the_gap_changes(before: str, old: str, after: str, new: str, encoding: str) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder, "w")
        root.mkdir()
        bench = Bench(Path(folder, "h"), root)
        data = f"{before}<{old}>{after}".encode(encoding)
        (root / "b.txt").write_bytes(data)
        bench.says(new + "x")
        result = asyncio.run(bench.fill(path="b.txt", prefix_anchor="<", suffix_anchor=">"))
        written = (root / "b.txt").read_bytes()
    report = json.loads(result.content)
    start, end, size = report["prefix_end"], report["suffix_start"], result.metadata["bytes"]
    assert data[:start].decode(encoding) == f"{before}<"
    assert written[:start] + written[start + size :] == data[:start] + data[end:]
    assert written.decode(encoding) == f"{before}<{report['generated_text']}>{after}"
    assert re.sub(r"\r+\n", "\n", report["generated_text"]) == re.sub(r"\r+\n", "\n", f"{new}x")


async def test_line_ends_stay_as_the_file_has_them(bench: Bench) -> None:
    (bench.root / "a.py").write_bytes(CODE.replace(b"\n", b"\r\n"))
    bench.says("    total = a + b\n    return total")
    await bench.fill()
    changed = CODE.replace(b"    pass", b"    total = a + b\n    return total")
    assert (bench.root / "a.py").read_bytes() == changed.replace(b"\n", b"\r\n")


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"prefix_anchor": "def mul"}, "prefix_anchor", "prefix_anchor is not in a.py"),
        ({"suffix_anchor": "def mul"}, "suffix_anchor", "suffix_anchor is not in a.py"),
        ({"prefix_anchor": "def sub", "suffix_anchor": "def add"}, "suffix_anchor", "only before prefix_anchor"),
        ({"prefix_anchor": "def add(a, b)", "suffix_anchor": "add(a, b):"}, "suffix_anchor", "overlap"),
        ({"prefix_anchor": ""}, "prefix_anchor", "prefix_anchor is empty"),
        ({"suffix_anchor": ""}, "suffix_anchor", "suffix_anchor is empty"),
    ],
)
async def test_anchors_that_enclose_nothing_are_refused(
    bench: Bench, values: dict[str, str], field: str, words: str
) -> None:
    error = await bench.refused(**values)
    assert (error.kind, error.field) == ("invalid_input", field) and words in error.message
    assert error.expected and bench.model.asked == []


@pytest.mark.parametrize("path", ["nowhere.py", "../a.py", "sub", "raw.bin", ".git/config"])
async def test_a_file_that_cannot_be_filled_is_refused_before_the_model_is_asked(bench: Bench, path: str) -> None:
    (bench.root / "sub").mkdir()
    (bench.root / ".git").mkdir()
    (bench.root / ".git/config").write_bytes(CODE)
    (bench.root / "raw.bin").write_bytes(bytes(range(32)) * 9)
    error = await bench.refused(path=path)
    assert error.field == "path" and bench.model.asked == []


async def test_nothing_to_put_there_changes_nothing(bench: Bench) -> None:
    bench.says("")
    error = await bench.refused()
    assert error.kind == "execution_failed" and "edit_file" in error.message


async def test_what_the_file_cannot_hold_changes_nothing(bench: Bench) -> None:
    (bench.root / "b.txt").write_bytes("é()".encode("latin-1"))
    bench.says("\u20ac")
    error = await bench.refused(path="b.txt", prefix_anchor="(", suffix_anchor=")")
    assert "U+20AC" in error.message and "latin-1" in error.message
    assert (bench.root / "b.txt").read_bytes() == "é()".encode("latin-1")


async def test_what_stood_there_already_is_no_change(bench: Bench) -> None:
    bench.says("    pass")
    result = await bench.fill()
    assert (result.changes, result.display) == ((), ())
    assert json.loads(result.content)["message"].endswith("(no changes).")


async def test_a_cut_answer_and_an_unseen_part_are_told_to_all(bench: Bench) -> None:
    bench.says("    return a +", cut=True, left_out=12_345)
    shown = await bench.preview(max_tokens=7)
    note = shown.display[1]
    assert isinstance(note, MarkdownBlock)
    assert "limit of 7 tokens" in note.text and "12,345 bytes" in note.text
    result = await shown.run()
    assert json.loads(result.content)["message"].endswith(note.text) and result.metadata["cut"] is True


async def test_a_refusal_of_the_model_names_a_next_call(home: Path, bench: Bench) -> None:
    class Unable(Fills):
        """A model that cannot."""

        async def infill(self, session: str, prefix: str, suffix: str, *, max_tokens: int) -> Infilled:
            """Say so."""
            raise ToolError("not_available", "it cannot")

    bench.tools |= bound(FimTools(bench.workspaces, Unable(Infilled(""))))
    assert (await bench.refused()).message == "it cannot"
