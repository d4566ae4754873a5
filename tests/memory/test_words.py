"""The words of facts and queries."""

import pytest

from codewhale.memory.words import everyday, slips, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("createStore in src/api", ["create", "store", "createstore", "in", "src", "api"]),
        ("MAX_RETRY_COUNT=3", ["max", "retry", "count", "maxretrycount", "3"]),
        ("Café déjà vu", ["cafe", "deja", "vu"]),
        ("部署前先测试", ["部署", "署前", "前先", "先测", "测试"]),
        ("use C++ and C#", ["use", "cpp", "and", "csharp"]),
        ("tabs in Go, then go on", ["tabs", "in", "golang", "then", "go", "on"]),
        ('"NEAR(*" \x00\x1b[31m', ["near", "31", "m", "31m"]),
        ("x" * 10_000, []),
    ],
)
def test_text_is_taken_apart(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("deploy", "depoly", True), ("postgres", "postgrse", True), ("test", "tests", True), ("port", "branch", False),
     ("npm", "rpm", False)],
)  # fmt: skip
def test_a_slip_is_one_letter_or_two_that_changed_places(one: str, other: str, expected: bool) -> None:
    assert slips(one, other) is expected


def test_everyday_words_stand_for_each_other() -> None:
    assert "postgresql" in everyday().kin("postgres")
    assert "ci" in everyday().kin("continuous", "integration")
    assert "pnpm" in everyday().members("dependencies")
    assert everyday().kinds(["github", "actions"]) == {"ci"}
