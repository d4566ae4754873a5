"""Known values that were cut through."""

import pytest

from codewhale.session.remains import Remains

KEY = "sk-proj-A1b2C3d4E5f6G7h8"


@pytest.mark.parametrize("kept", [8, 9, 15, len(KEY) - 1])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x ", ""),
        ("x ", "\n[... 99 bytes left out ...]\n"),
        ("x ", " … [9 characters left out]"),
        ("x ", "…"),
        ("x ", "\n[line 1 is cut: it has 9,999 characters]"),
        ("got '", "'."),
        ("got ", ". Nothing was run"),
    ],
)
def test_what_a_cut_left_of_a_value_is_found(kept: int, before: str, after: str) -> None:
    remains = Remains({KEY: "[A_KEY]"})
    part = KEY[:kept]
    if not any(char.isdigit() for char in part):
        part = KEY[:10]
    assert remains.sub(before + part + after) == f"{before}[A_KEY]{after}"
    rest = KEY[-kept:]
    assert remains.sub(f"... 9 bytes left out ...]\n{rest} y") == "... 9 bytes left out ...]\n[A_KEY] y"
    assert remains.sub(f"[9 characters left out] … {rest} y") == "[9 characters left out] … [A_KEY] y"


@pytest.mark.parametrize(
    "text",
    [
        "password\n",
        '{"password": 1}',
        f"{KEY[:15]} and more of the line",
        f"in a line {KEY[-15:]}",
        KEY[:9].lower() + "\n",
        "sk-proj\n",
    ],
)
def test_words_and_middles_of_lines_stay(text: str) -> None:
    assert Remains({KEY: "[A_KEY]", "password123": "[DB]"}).sub(text) == text


def test_parts_are_found_in_linear_time() -> None:
    text = f"{KEY[:15]}\n" * 5_000
    assert Remains({KEY: "[A_KEY]"}).sub(text) == "[A_KEY]\n" * 5_000
