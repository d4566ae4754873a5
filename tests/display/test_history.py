"""What was sent before: in the file, on the walk, by its letters."""

import random
import stat
import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from codewhale.display.attachments import Folder
from codewhale.display.drafts import MOST_BYTES, MOST_ENTRIES, Draft, HistoryEntry, HistoryWalk, PromptHistory, fact_of


def history(tmp_path: Path) -> PromptHistory:
    """The history of a workspace."""
    return PromptHistory(Folder(str(tmp_path / "home"), str(tmp_path)))


def texts(found: list[HistoryEntry]) -> list[str]:
    """Their texts."""
    return [entry.text for entry in found]


def test_it_lasts_without_repeating_itself(tmp_path: Path) -> None:
    first = history(tmp_path)
    for text in ("one", "one", "two\nlines", "one", "   "):
        first.add(Draft(text), "s")
    assert texts(history(tmp_path).entries) == ["one", "two\nlines", "one"]
    [file] = (tmp_path / "home").rglob("history.jsonl")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_another_workspace_has_another(tmp_path: Path) -> None:
    history(tmp_path).add(Draft("here"))
    assert PromptHistory(Folder(str(tmp_path / "home"), str(tmp_path / "other"))).entries == []


def test_what_was_said_to_memory_is_walked_to_and_in_no_file(tmp_path: Path) -> None:
    here = history(tmp_path)
    told = ["# xyzzy", "/memory add xyzzy", " /memory take 1a2b xyzzy", "/memory\nsearch xyzzy"]
    for text in (*told, "a message", "#xyz", "# a heading\nand more", " # behind a blank", "/memory", "/memoryless x"):
        here.add(Draft(text), fact=bool(fact_of(Draft(text))))
    assert texts(here.entries)[:4] == told and here.withholds(Draft(told[0]))
    assert not here.withholds(Draft("a message")) and not history(tmp_path).withholds(Draft(told[0]))
    kept = texts(history(tmp_path).entries)
    assert kept == ["a message", "#xyz", "# a heading\nand more", " # behind a blank", "/memory", "/memoryless x"]
    for number in range(3):  # the file is written anew where it has grown
        here.add(Draft(f"{number}" + "x" * 900_000))
    [file] = (tmp_path / "home").rglob("history.jsonl")
    assert b"xyzzy" not in file.read_bytes()


def test_damage_costs_a_line(tmp_path: Path) -> None:
    here = history(tmp_path)
    here.add(Draft("one"))
    [file] = (tmp_path / "home").rglob("history.jsonl")
    with file.open("ab") as more:
        more.write(b'{"text": 5}\n\xff\xfe\n{"text":"cut off')
    after = history(tmp_path)
    assert texts(after.entries) == ["one"]
    after.add(Draft("next"))
    after.add(Draft("last"))
    assert texts(history(tmp_path).entries) == ["one", "next", "last"]


def test_it_is_bounded(tmp_path: Path) -> None:
    here = history(tmp_path)
    for number in range(14):
        here.add(Draft(f"{number} " + "x" * 700_000))
    assert sum(len(entry.text) for entry in here.entries) <= MOST_BYTES
    [file] = (tmp_path / "home").rglob("history.jsonl")
    assert file.stat().st_size <= 2 * MOST_BYTES + 1_000_000
    assert texts(history(tmp_path).entries)[-1].startswith("13 ")
    file.write_bytes(b"".join(b'{"text":"%d"}\n' % number for number in range(MOST_ENTRIES + 50)))
    assert len(history(tmp_path).entries) == MOST_ENTRIES


def test_processes_do_not_lose_each_others_lines(tmp_path: Path) -> None:
    def add(name: str) -> None:
        here = history(tmp_path)
        for number in range(50):
            here.add(Draft(f"{name} {number}"))

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(history(tmp_path).entries) == 200


def test_words_are_found_whatever_their_case(tmp_path: Path) -> None:
    here = history(tmp_path)
    for text in ("Fix the parser", "fix tests", "Fix the parser", "unrelated"):
        here.add(Draft(text))
    assert texts(here.search("FIX")) == ["Fix the parser", "fix tests"]
    assert texts(here.search("parser fix")) == ["Fix the parser"]
    assert texts(here.search("")) == ["unrelated", "Fix the parser", "fix tests"]
    assert len(here.search("", limit=2)) == 2


STEPS = st.lists(st.one_of(st.sampled_from(["up", "down"]), st.text("abc", min_size=1, max_size=3)), max_size=60)


@given(st.lists(st.text("xyz", min_size=1, max_size=3), max_size=5), STEPS)
def test_no_walk_loses_what_was_typed(sent: list[str], steps: list[str]) -> None:
    entries = [HistoryEntry(text) for text in sent]
    walk = HistoryWalk(lambda: entries)
    now = Draft("begun")
    typed = {"begun"}
    for step in steps:
        if step in ("up", "down"):
            now = (walk.up if step == "up" else walk.down)(now) or now
        else:
            typed.discard(now.text)
            now = Draft(now.text + step)
            typed.add(now.text)
    kept = {now.text, *(draft.text for draft in walk.end()), *sent}
    assert typed <= kept


def test_down_comes_back_to_the_draft(tmp_path: Path) -> None:
    walk = HistoryWalk(lambda: [HistoryEntry("one"), HistoryEntry("two")])
    assert walk.down(Draft("mine")) is None
    two = walk.up(Draft("mine"))
    assert two is not None and two.text == "two" and walk.untouched(two) and walk.walking
    one = walk.up(two)
    assert one is not None and walk.up(one) is None
    assert walk.down(one) == two and walk.down(two) == Draft("mine") and not walk.walking
    random.seed(0)
    assert walk.end() == []
