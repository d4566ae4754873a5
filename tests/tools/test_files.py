"""The file tools as a model meets them: what comes back, what is refused, and that each suggested call works."""

import json
import os
import struct
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import ToolResult
from codewhale.tools.base import BoundTool, bound, specs
from codewhale.tools.files import FileTools
from codewhale.workspace.files import READ_LIMIT, Workspaces
from support.fixcheck import invoke, refused
from support.minipdf import pdf
from support.patchland import git, write_tree

Call = Callable[..., Awaitable[ToolResult]]
Refusal = Callable[..., Awaitable[ToolError]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_bytes(b"secret\n")
    return tmp_path / "w"


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "store"))


@pytest.fixture
def tools(store: ArtifactStore) -> dict[str, BoundTool]:
    return bound(FileTools(Workspaces(store)))


@pytest.fixture
def call(tools: dict[str, BoundTool], root: Path) -> Call:
    return lambda name, **values: invoke(tools, str(root), name, **values)


@pytest.fixture
def deny(tools: dict[str, BoundTool], root: Path) -> Refusal:
    return lambda name, **values: refused(tools, str(root), name, **values)


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % n for n in range(1, count + 1))


def test_declarations() -> None:
    rows = {row.name: row for row in specs(FileTools, "files")}
    assert sorted(rows) == ["edit_file", "list_dir", "read_file", "write_file"]
    assert [rows[name].parallel for name in sorted(rows)] == [False, True, True, False]
    assert sorted(rows["edit_file"].parameters["properties"]) == ["fuzz", "path", "replace", "replace_all", "search"]
    assert rows["edit_file"].parameters["required"] == ["path", "search", "replace"]


# ------------------------------------------------------------------ read_file


@pytest.mark.parametrize(
    "data", [b"a\nb\n", b"a\r\nb", b"\xef\xbb\xbfa\n", "naïve\n".encode(), b"nul \0 inside a text\n"]
)
async def test_read_file_gives_a_short_file_as_it_is(call: Call, root: Path, data: bytes) -> None:
    (root / "f").write_bytes(data)
    assert (await call("read_file", path="f")).content.encode() == data


async def test_read_file_reads_other_encodings(call: Call, root: Path) -> None:
    (root / "latin").write_bytes(b"caf\xe9\n")
    (root / "wide").write_bytes("wide ü\n".encode("utf-16"))
    assert (await call("read_file", path="latin")).content == "café\n"
    assert (await call("read_file", path="wide")).content.lstrip("\ufeff") == "wide ü\n"


async def test_read_file_windows(call: Call, root: Path) -> None:
    (root / "f").write_bytes(numbered(450))
    content = (await call("read_file", path="f")).content
    head, *body = content.splitlines()
    assert head == '<file path="f" total_lines="450" shown_lines="1-200" truncated="true" next_start_line="201">'
    assert body[0] == "     1│ line 1" and body[199] == "   200│ line 200"
    assert body[200] == '[more lines follow: read_file {"path": "f", "start_line": 201, "max_lines": 200}]'
    content = (await call("read_file", path="f", start_line=449)).content
    assert 'shown_lines="449-450" truncated="false">' in content and "more lines" not in content
    assert 'shown_lines="1-450"' in (await call("read_file", path="f", max_lines=9999)).content
    content = (await call("read_file", path="f", start_line=451)).content
    assert 'total_lines="450" shown_lines="none"' in content
    (root / "empty").write_bytes(b"")
    assert "(the file is empty)" in (await call("read_file", path="empty")).content


async def test_read_file_windows_lose_no_line(call: Call, root: Path) -> None:
    lines = [f"{n}:" + "é" * (n * 37 % 400) for n in range(1, 301)]
    (root / "f").write_text("\n".join(lines) + "\n")
    seen: list[str] = []
    at: int | None = 1
    while at is not None:
        content = (await call("read_file", path="f", start_line=at)).content
        assert len(content.encode()) <= 16_384
        seen += [row.split("│ ", 1)[1] for row in content.splitlines()[1:] if "│ " in row]
        at = int(content.split('next_start_line="')[1].split('"')[0]) if "next_start_line" in content else None
    assert seen == lines


async def test_read_file_cuts_a_huge_line_and_goes_on(call: Call, root: Path) -> None:
    (root / "f").write_bytes(b"x" * 5_000_000 + b"\nlast\n")
    content = (await call("read_file", path="f")).content
    assert len(content) <= 16_384 and "[line 1 is cut: it has 5,000,000 characters]" in content
    assert 'next_start_line="2"' in content
    assert "last" in (await call("read_file", path="f", start_line=2)).content


async def test_read_file_streams_what_is_too_large_to_hold(call: Call, deny: Refusal, root: Path) -> None:
    with open(root / "big", "wb") as stream:
        stream.write(numbered(2000))
        stream.seek(READ_LIMIT)
        stream.write(b"\nend\n")
    content = (await call("read_file", path="big", start_line=1999, max_lines=2)).content
    assert "  1999│ line 1999\n  2000│ line 2000\n[more lines follow" in content
    assert 'total_lines="unknown"' in content
    content = (await call("read_file", path="big", start_line=2002)).content
    assert "  2002│ end" in content and "more lines" not in content
    await deny("edit_file", path="big", search="line 1\n", replace="x")


async def test_read_file_refuses_binary(deny: Refusal, root: Path) -> None:
    (root / "elf").write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    with open(root / "sparse", "wb") as stream:
        stream.truncate(100 * 1024**3)
    assert "a binary file of 10,244 bytes" in (await deny("read_file", path="elf")).message
    assert "a binary file of 107,374,182,400 bytes" in (await deny("read_file", path="sparse")).message


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(width)) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def test_read_file_attaches_images(call: Call, deny: Refusal, root: Path, store: ArtifactStore) -> None:
    data = png(7, 5)
    (root / "p.png").write_bytes(data)
    result = await call("read_file", path="p.png")
    assert result.content == f"p.png: image/png, 7x5 pixels, {len(data):,} bytes. The image is attached."
    (image,) = result.images
    assert (image.media_type, image.bytes, store.get(image.artifact)) == ("image/png", len(data), data)
    (root / "big.gif").write_bytes(b"GIF89a" + b"\x01\0\x01\0" + bytes(6_000_000))
    await deny("read_file", path="big.gif")


async def test_read_file_reads_pdfs(call: Call, deny: Refusal, root: Path) -> None:
    (root / "d.pdf").write_bytes(pdf("first page", "second page", "third page"))
    content = (await call("read_file", path="d.pdf")).content
    assert content.startswith('<file path="d.pdf" pages="1-3" total_pages="3">\n[page 1]\nfirst page\n\n[page 2]')
    assert (await call("read_file", path="d.pdf", pages="2")).content.count("[page") == 1
    assert "third page" in (await call("read_file", path="d.pdf", pages="2-9")).content
    assert (await deny("read_file", path="d.pdf", pages="4")).field == "pages"
    assert (await deny("read_file", path="d.pdf", pages="3-2")).field == "pages"
    (root / "text").write_bytes(b"x\n")
    assert (await deny("read_file", path="text", pages="1")).field == "pages"
    (root / "broken.pdf").write_bytes(b"%PDF-1.4\ngarbage" * 10)
    assert "not a PDF that can be read" in (await deny("read_file", path="broken.pdf")).message


async def test_read_file_of_what_is_not_there(deny: Refusal, root: Path) -> None:
    write_tree(root, {"src/main.py": b"x\n"})
    error = await deny("read_file", path="src/mian.py")
    assert error.correction is not None and error.correction.arguments == {"path": "src/main.py"}
    await deny("read_file", path="nowhere/at/all.py")
    await deny("read_file", path="src")
    await deny("read_file", path="src/main.py/x")
    await deny("read_file", path="x" * 300)


# ------------------------------------------------------------------ list_dir


async def test_list_dir(call: Call, deny: Refusal, root: Path) -> None:
    write_tree(
        root, {"b.txt": b"", "a.txt": b"", "z/x": b"", "Dir/y": b"", "build/out.o": b"", ".gitignore": b"build/\n"}
    )
    (root / "link").symlink_to("z")
    (root / "dead").symlink_to("../out")
    git(root, "init", "-q")
    rows = json.loads((await call("list_dir")).content)
    assert [(row["name"], row["is_dir"]) for row in rows] == [
        ("Dir", True), ("link", True), ("z", True), (".gitignore", False), ("a.txt", False), ("b.txt", False),
        ("dead", False),
    ]  # fmt: skip
    rows = json.loads((await call("list_dir", path=".", include_ignored=True)).content)
    assert "build" in [row["name"] for row in rows]
    assert json.loads((await call("list_dir", path="link")).content) == [{"name": "x", "is_dir": False}]
    assert (await deny("list_dir", path="a.txt")).expected == "a folder"
    await deny("list_dir", path="nothing")
    await deny("list_dir", path="dead")
    (root / "none").mkdir()
    assert (await call("list_dir", path="none")).content == "[]"


async def test_list_dir_is_capped(call: Call, root: Path) -> None:
    for number in range(1100):
        (root / f"{number:04}").touch()
    result = await call("list_dir")
    array, _, note = result.content.rpartition("\n")
    assert len(json.loads(array)) == 1000 and note.startswith("[1,000 of 1,100 entries are shown")
    assert result.metadata["truncated"] is True


# ------------------------------------------------------------------ write_file


async def test_write_file(call: Call, root: Path) -> None:
    result = await call("write_file", path="new/b.txt", content="one\ntwo\n")
    assert (root / "new/b.txt").read_bytes() == b"one\ntwo\n"
    assert (
        result.content == "--- /dev/null\n+++ b/new/b.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\nCreated new/b.txt: 8 bytes."
    )
    (change,) = result.changes
    assert (change.path, change.before) == ("new/b.txt", None)
    result = await call("write_file", path="new/b.txt", content="one\n2")
    assert (
        "--- a/new/b.txt\n+++ b/new/b.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
        in result.content
    )
    assert isinstance(result.display[0], DiffBlock) and result.changes[0].before_artifact
    result = await call("write_file", path="new/b.txt", content="one\n2")
    assert result.content.endswith("(no changes)") and result.changes == () and result.display == ()
    (root / "bin").write_bytes(bytes(100))
    assert "Binary content: 100 bytes before" in (await call("write_file", path="bin", content="x")).content


async def test_write_file_refusals(deny: Refusal, root: Path) -> None:
    (root / "d").mkdir()
    (root / "file").write_bytes(b"x")
    (root / "ro").write_bytes(b"x")
    (root / "ro").chmod(0o444)
    for path in ("d", "d/", "new/", "file/x", "ro", ".git/config", "x" * 300):
        await deny("write_file", path=path, content="PWNED")
    assert sorted(os.listdir(root)) == ["d", "file", "ro"]
    assert (await deny("write_file", path="s", content="half \ud83d")).field == "content"
    assert (root / "s").read_text() == "half ?"


# ------------------------------------------------------------------ edit_file

EDITS = [
    (b"a\nb\nc\n", "b", "B", b"a\nB\nc\n", "exact"),
    (b"a\nb\nc", "c", "d\ne", b"a\nb\nd\ne", "exact"),
    (b"a\nb\nc\n", "b\n", "", b"a\nc\n", "exact"),
    (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n", "line ends"),
    (b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n", "exact"),
    (b"a\r\nb\nc\r\nd\n", "b\nc", "B\nC", b"a\r\nB\nC\r\nd\n", "exact"),
    (b"a\r\nb\r\n", "a\r\nb", "a\r\nB", b"a\r\nB\r\n", None),
    (b"a\r\nb\n", "a\r\n", "a\n", b"a\nb\n", "exact"),
    (b"a\nb\n", "a\r\nb\r\n", "A\r\nB\r\n", b"A\nB\n", "exact"),
    (b"a  \nb\t\nc\n", "a\nb\n", "A\nB\n", b"A\nB\nc\n", "trailing whitespace"),
    (b"if x:\n    a()\n    b()\nc\n", "a()\nb()", "a()\nif y:\n    b()",
     b"if x:\n    a()\n    if y:\n        b()\nc\n", "indentation"),
    (b"\tif x:\n\t\ta()\n", "if x:\n    a()", "if x:\n    b()\nelse:\n    a()",
     b"\tif x:\n\t\tb()\n\telse:\n\t\ta()\n", "indentation"),
    ("say “hi” – now\n".encode(), 'say "hi" - now', "bye", b"bye\n", "punctuation"),
    (b"\xef\xbb\xbfa\nb\n", "a\n", "A\n", b"\xef\xbb\xbfA\nb\n", "exact"),
    (b"\xef\xbb\xbfa\nb\n", "\ufeffa\n", "\ufeffA\n", b"\xef\xbb\xbfA\nb\n", "exact"),
    (b"caf\xe9\nx\n", "x", "é", b"caf\xe9\n\xe9\n", "exact"),
    (b"nul\0\nx\n", "x", "y", b"nul\0\ny\n", "exact"),
    (b"\xed\xa0\x80\nx\n", "x", "y", b"\xed\xa0\x80\ny\n", "exact"),
    ("a\nx\n".encode("utf-16"), "x", "ü", "a\nü\n".encode("utf-16"), "exact"),
    (b"x" * 5_000_000 + b"END", "END", "end", b"x" * 5_000_000 + b"end", "exact"),
    (b"one\ntwo\n", "     1│ one\n     2│ two\n", "     1│ ONE\n     2│ TWO\n", b"ONE\nTWO\n", "exact"),
    (b"a  \nlast", "a\nlast\n", "A\nLAST\n", b"A\nLAST", "trailing whitespace"),
]  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
async def test_edit_file(call: Call, root: Path, case: tuple[bytes, str, str, bytes, str | None]) -> None:
    data, search, replace, wanted, how = case
    (root / "f").write_bytes(data)
    result = await call("edit_file", path="f", search=search, replace=replace, fuzz=True)
    assert (root / "f").read_bytes() == wanted
    assert how is None or result.metadata["matched"] == how
    assert ("ignoring" in result.content) == (result.metadata["matched"] != "exact")
    assert result.changes[0].path == "f" and result.display


async def test_edit_file_replaces_all(call: Call, deny: Refusal, root: Path) -> None:
    (root / "f").write_bytes(b"x = 1\r\ny\r\nx = 1\r\n")
    error = await deny("edit_file", path="f", search="x = 1", replace="x = 2")
    assert "fits 2 places" in error.message and "lines 1, 3" in error.message
    result = await call("edit_file", path="f", search="x = 1\n", replace="x = 2\n", replace_all=True)
    assert (root / "f").read_bytes() == b"x = 2\r\ny\r\nx = 2\r\n" and result.metadata["replacements"] == 2
    (root / "g").write_bytes(b"  a\n\nb\n a\n")
    error = await deny("edit_file", path="g", search="a\n", replace="c\n")
    assert "fits 2 places" in error.message
    (root / "h").write_bytes(b"  a\n  k\nb\n    a\n    k\n")
    error = await deny("edit_file", path="h", search="a\nk", replace="c", replace_all=True)
    assert "fits 2 places in h (indentation): lines 1, 4" in error.message
    assert (root / "h").read_bytes() == b"  a\n  k\nb\n    a\n    k\n"


async def test_edit_file_miss_shows_the_nearest_lines(deny: Refusal, root: Path) -> None:
    (root / "f").write_bytes(b"def f():\n\treturn 1\n\ndef g():\n    total = compute(22)  \n    return total\n")
    error = await deny(
        "edit_file", path="f", search="def g():\n    total = compute(23)\n    return total\n", replace="x"
    )
    assert "     5│ ····total = compute(22)··" in error.message
    assert "Line 5 differs; search has: ····total = compute(23)" in error.message
    assert error.fix is None and error.look is not None and error.look.name == "read_file"
    error = await deny("edit_file", path="f", search="nothing like this at all", replace="x")
    assert "No line of it is like one" in error.message
    error = await deny("edit_file", path="f", search="total = compute( 22 )", replace="total = 1")
    assert error.fix is not None and error.fix.name == "edit_file"
    assert b"total = 1" in (root / "f").read_bytes()


async def test_edit_file_refusals(deny: Refusal, root: Path) -> None:
    write_tree(root, {"f": b"a\n", "bin": b"\x7fELF" + bytes(200), "latin": b"\xe9 x\n"})
    for values in (
        {"path": "f", "search": "", "replace": "x"},
        {"path": "f", "search": "a", "replace": "a"},
        {"path": "bin", "search": "ELF", "replace": "x"},
        {"path": "latin", "search": "x", "replace": "€"},
        {"path": "gone", "search": "x", "replace": "y"},
        {"path": ".", "search": "x", "replace": "y"},
        {"path": "f", "search": "a", "replace": "\ud83d"},
    ):
        await deny("edit_file", **values)


async def test_b9_edit_of_a_file_that_changed_since_it_was_read(call: Call, deny: Refusal, root: Path) -> None:
    (root / "f").write_bytes(b"a\nb\n")
    await call("read_file", path="f", start_line=1, max_lines=1)
    (root / "f").write_bytes(b"a\nb\nby another\n")
    error = await deny("edit_file", path="f", search="b", replace="B")
    assert "changed on disk" in error.message and "sha256" in error.received
    await call("edit_file", path="f", search="b\n", replace="B\n")
    await call("edit_file", path="f", search="B", replace="C")
    assert (root / "f").read_bytes() == b"a\nC\nby another\n"


# ------------------------------------------------------------------ hostile paths

BAD_PATHS = ["../out/f", "/etc/passwd", "a/../../out/f", "C:\\x", "\\\\s\\x", "//s/x", "x\0y", "x.", "x ", "..\\x",
             "~/x", "", "leaf", "dir/f", "dir/new", "dangling"]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("read_file", {}),
        ("list_dir", {}),
        ("write_file", {"content": "PWNED"}),
        ("edit_file", {"search": "secret", "replace": "PWNED"}),
    ],
)
async def test_b1_b2_paths_that_lead_out(
    deny: Refusal, root: Path, path: str, name: str, values: dict[str, Any]
) -> None:
    (root / "leaf").symlink_to("../out/f")
    (root / "dir").symlink_to("../out")
    (root / "dangling").symlink_to("../out/made")
    assert (await deny(name, path=path, **values)).kind == "path_escape"
    assert os.listdir(root.parent / "out") == ["f"]
    assert (root.parent / "out" / "f").read_bytes() == b"secret\n"


async def test_b6_special_files(deny: Refusal, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "zero").symlink_to("/dev/zero")
    (root / "mem").symlink_to("/proc/self/mem")
    for path in ("pipe", "zero", "mem"):
        await deny("read_file", path=path)
        await deny("list_dir", path=path)
        await deny("write_file", path=path, content="x")
        await deny("edit_file", path=path, search="a", replace="b")
