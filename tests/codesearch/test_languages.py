"""Languages by name and by first line."""

import pytest

from codewhale.codesearch.languages import Languages

LANGUAGES = Languages()


@pytest.mark.parametrize(
    ("path", "data", "lang"),
    [
        ("a/b.py", b"", "python"),
        ("A.JAVA", b"", "java"),
        ("x.d.ts", b"", "typescript"),
        ("x.R", b"", "r"),
        ("x.blade.php", b"", "template"),
        ("Makefile", b"", "make"),
        ("Gemfile", b"", "ruby"),
        ("a.h", b"int f(void);\n", "c"),
        ("a.h", b"namespace a {\n", "cpp"),
        ("a.h", b"@interface A\n", "objc"),
        ("run", b"#!/usr/bin/env python3\n", "python"),
        ("run", b"#!/bin/sh -e\n", "bash"),
        ("run", b"no first line", ""),
        ("a.unheard", b"", ""),
        (".hidden", b"", ""),
    ],
)
def test_the_language_of_a_file(path: str, data: bytes, lang: str) -> None:
    assert LANGUAGES.of(path, data) == lang


def test_twenty_languages_and_more_are_parsed() -> None:
    assert len(LANGUAGES.parsed) >= 20
