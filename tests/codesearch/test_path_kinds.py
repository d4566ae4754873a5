"""Kinds of paths."""

import pytest

from codewhale.codesearch.path_kinds import DOCS, ENTRY, EXAMPLES, SCRIPTS, TESTS, PathKinds


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("src/auth/token.py", 0),
        ("tests/test_token.py", TESTS),
        ("src/token_test.go", TESTS),
        ("lib/a/__tests__/b.ts", TESTS),
        ("src/Main/FooTests.cs", TESTS),
        ("src/token.spec.ts", TESTS),
        ("examples/basic/main.rs", EXAMPLES),
        ("docs/guide.md", DOCS),
        ("README", DOCS),
        ("scripts/release.sh", SCRIPTS),
        ("src/pkg/__init__.py", ENTRY),
        ("src/net/mod.rs", ENTRY),
        ("docs/examples/test_a.py", DOCS | EXAMPLES | TESTS),
        ("latest/contest.py", 0),
    ],
)
def test_kinds_of_a_path(path: str, kinds: int) -> None:
    assert PathKinds().of(path) == kinds


def test_a_folder_counts_however_deep_the_file_is() -> None:
    kinds = PathKinds()
    assert kinds.of("tests/a/b/c/d.py") == kinds.of("x/y/tests/d.py") == TESTS
    assert kinds.of("/".join(["deep"] * 5_000) + "/a.py") == 0
