"""Answers as they are told: within their bytes, with the keys that are promised, and filters in words."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from codewhale.codesearch.rank import Hit
from codewhale.codesearch.reasons import Reason
from codewhale.codesearch.render import MOST_BYTES, BadFilter, filter_of, render_json, render_text
from codewhale.codesearch.search import SearchAnswer


def hits(count: int, reasons: int = 2) -> tuple[Hit, ...]:
    made = tuple(Reason(f"signal{number}", 1.0 + number, "why " * 20) for number in range(reasons))
    return tuple(Hit(f"folder/file{number}.py", 1, 9, "fn", f"f{number}", 9.5, made) for number in range(count))


def planted(folder: Path, count: int) -> str:
    (folder / "folder").mkdir()
    for number in range(count):
        (folder / f"folder/file{number}.py").write_text("def walrus(): return 'song'\n" * 9)
    return str(folder)


def test_every_promised_key_is_there(tmp_path: Path) -> None:
    text, shown = render_json(
        planted(tmp_path, 2), "walrus", SearchAnswer(hits(2), "lexical+path", 1, 12.34, 0.5, ("Note.",))
    )
    found = json.loads(text)
    assert shown == 2 and found["notes"] == ["Note."] and "left_out" not in found
    assert set(found["results"][0]) == {"path", "line", "end_line", "symbol", "snippet", "score", "reasons"}
    assert (found["backend"], found["fallback_grep_hits"], found["index_age_s"], found["coverage"]) == (
        "lexical+path", 1, 12.3, 0.5
    )  # fmt: skip
    assert found["results"][0]["reasons"][0].startswith("signal1 +2.000: why")


def test_nothing_found_is_an_answer(tmp_path: Path) -> None:
    answer = SearchAnswer((), "path+text", 0, None, 0.0)
    text, shown = render_json(str(tmp_path), "walrus", answer)
    assert (json.loads(text)["results"], json.loads(text)["index_age_s"], shown) == ([], None, 0)
    assert render_text(str(tmp_path), "walrus", answer) == "no matches"


def test_the_weakest_are_left_out_beyond_the_bytes_and_it_is_said(tmp_path: Path) -> None:
    text, shown = render_json(planted(tmp_path, 60), "walrus", SearchAnswer(hits(60, 5), "lexical", 0, 1.0, 1.0))
    found = json.loads(text)
    assert len(text.encode()) <= MOST_BYTES and shown == len(found["results"]) < 60
    assert found["left_out"].startswith(f"{60 - shown} weaker results")
    assert [row["path"] for row in found["results"]] == [f"folder/file{number}.py" for number in range(shown)]


def test_people_read_places_with_lines_and_the_weightiest_reasons(tmp_path: Path) -> None:
    reasons = (Reason("prior", 9.0, "at the top"), Reason("path", 1.0, "[a]"), Reason("lexical", 2.0, "[b]"))
    (tmp_path / "a.py").write_text("}\ndef walrus():\n    ...\n    return 1\n")
    hit = Hit("a.py", 1, 4, "fn", "walrus\x1b[2J", 12.0, reasons)
    rows = render_text(str(tmp_path), "walrus", SearchAnswer((hit,), "lexical", 0, 1.0, 1.0)).split("\n")
    assert rows[0].split()[:2] == ["12.00", "a.py:1-4"] and "\x1b" not in rows[0]
    assert [row.strip() for row in rows[1:]] == ["| def walrus():", "|     return 1", "lexical +2.000: [b]",
                                                 "path +1.000: [a]"]  # fmt: skip


def test_people_read_the_first_line_and_those_that_answer(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def dive(depth):\n    a = 1\n    b = 2\n    walrus = 3\n    c = 4\n    seal = 5\n")
    hit = Hit("a.py", 1, 6, "fn", "dive", 1.0, ())
    rows = render_text(str(tmp_path), "Walrus and seal", SearchAnswer((hit,), "lexical", 0, 1.0, 1.0)).split("\n")
    assert [row.strip() for row in rows[1:]] == ["| def dive(depth):", "|     walrus = 3", "|     seal = 5"]


def test_filters_are_read_from_words() -> None:
    only = filter_of("src/**", " Python ", "CLASS")
    assert only.paths is not None and only.paths("src/a.py") and not only.paths("lib/a.py")
    assert (only.lang, only.kind) == ("python", "class")
    assert filter_of("", "", "").paths is None


@pytest.mark.parametrize(
    ("given", "field"),
    [(("a" * 2000, "", ""), "path_glob"), (("", "klingon", ""), "lang"), (("", "", "walrus"), "kind")],
)
def test_a_filter_that_cannot_be_says_which_and_what_can(given: tuple[str, str, str], field: str) -> None:
    with pytest.raises(BadFilter) as caught:
        filter_of(*given)
    assert (
        caught.value.field == field and str(caught.value).startswith(f"{field} ") and "it must be " in str(caught.value)
    )


def test_a_path_with_a_line_break_stays_on_its_line(tmp_path: Path) -> None:
    (hit,) = hits(1, 1)
    odd = replace(hit, path="a\x1b[31m\nred.py")
    text = render_text(str(tmp_path), "walrus", SearchAnswer((odd,), "lexical", 0, 1.0, 1.0))
    assert r"a\x1b[31m\x0ared.py:" in text.split("\n")[0] and "\x1b" not in text
