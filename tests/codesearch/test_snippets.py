"""Snippets: where they begin, what they leave out, and files that cannot be shown."""

import os
from pathlib import Path

import pytest

from codewhale.codesearch.rank import Hit
from codewhale.codesearch.snippets import GAP, MOST_COLUMNS, MOST_LINES, snippets


def shown(folder: Path, text: str | bytes, first: int = 1, last: int | None = None, words: str = "") -> str:
    data = text.encode() if isinstance(text, str) else text
    (folder / "a.py").write_bytes(data)
    end = data.count(b"\n") + 1 if last is None else last
    (found,) = snippets(str(folder), [Hit("a.py", first, end, "block", "", 1.0, ())], words.split())
    return found


@pytest.mark.parametrize(
    "preamble",
    [
        "\n\n",
        "import os\nimport sys\n\n",
        "from a import b\n",
        "from a import (\n)\n",
        "#include <stdio.h>\n#pragma once\n",
        "use std::fmt;\n",
        "using System.Linq;\n",
        'package main\n\nimport (\n\t"fmt"\n)\n\n',
        "require 'json'\n",
        "\ufeffusing System;\n",
        "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n",
        "# frozen_string_literal: true\n\nrequire 'json'\n",
        "/**\n * @license\n * Copyright 2025 Walrus\n * SPDX-License-Identifier: MIT\n */\n\nimport a from 'b';\n",
    ],
)
def test_they_begin_with_what_says_something(tmp_path: Path, preamble: str) -> None:
    assert shown(tmp_path, preamble + "code = 1\nmore = 2\n\n") == "code = 1\nmore = 2"


def test_imports_alone_are_shown_all_the_same(tmp_path: Path) -> None:
    assert shown(tmp_path, "\nimport os\nimport sys\n") == "import os\nimport sys"
    assert shown(tmp_path, "\n\n \n") == shown(tmp_path, "") == ""


def test_of_a_long_place_its_head_and_its_best_lines_are_shown(tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(40)).replace("line 30", "walrus song")
    rows = shown(tmp_path, text, words="Walrus song").split("\n")
    assert rows[:5] == ["line 0", "line 1", "line 2", "line 3", GAP] and "walrus song" in rows[5:]
    assert len(rows) == MOST_LINES + 1


def test_no_gap_where_lines_follow_each_other(tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(40))
    assert shown(tmp_path, text).split("\n") == [f"line {number}" for number in range(MOST_LINES)]


def test_only_the_place_is_shown(tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(1, 40))
    assert shown(tmp_path, text, 5, 7) == "line 5\nline 6\nline 7"
    assert shown(tmp_path, text, 39, 39) == "line 39" and shown(tmp_path, text, 900, 950) == ""


def test_long_lines_are_cut_and_nothing_reaches_a_terminal(tmp_path: Path) -> None:
    rows = shown(tmp_path, "x" * 5000 + "\n\ta\x1b]52;c;evil\x07b\u2028c\n").split("\n")
    assert len(rows[0]) == MOST_COLUMNS and rows[0].endswith("…")
    assert rows[1].startswith("    a") and "\x1b" not in rows[1] and len(rows) == 2


def test_what_is_no_text_or_not_there_is_empty(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    os.mkfifo(tree / "pipe")
    (tree / "link").symlink_to(tmp_path / "secret")
    (tree / "binary").write_bytes(b"a\0b")
    (tree / "folder").mkdir()
    paths = ("pipe", "link", "binary", "folder", "absent", "../secret", str(tmp_path / "secret"))
    hits = [Hit(path, 1, 1, "block", "", 1.0, ()) for path in paths]
    assert snippets(str(tree), hits, []) == [""] * len(paths)


def test_bytes_that_are_no_text_of_ours_are_shown_as_far_as_they_can_be(tmp_path: Path) -> None:
    assert shown(tmp_path, b"caf\xe9 = 1\n") == "caf\ufffd = 1"
