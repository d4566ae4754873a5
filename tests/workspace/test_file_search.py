"""Files found by a few letters: what fits, what fits better, and what is looked at again."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from codewhale.testing import FakeClock
from codewhale.workspace import file_search
from codewhale.workspace.file_search import FileFinder, FrecencyStore, best, fits
from support.patience import HANG

PATHS = (
    "README.md",
    "src/shop/basket.py",
    "src/shop/",
    "src/basket_view/render.py",
    "tests/test_basket.py",
    "docs/backs/kept.md",
    "src/shop/Überweisung.py",
)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("basket", "src/shop/basket.py"),
        ("basket.py", "src/shop/basket.py"),
        ("tbasket", "tests/test_basket.py"),
        ("readme", "README.md"),
        ("shop/bas", "src/shop/basket.py"),
        ("ssb", "src/shop/basket.py"),
        ("überw", "src/shop/Überweisung.py"),
        ("render", "src/basket_view/render.py"),
    ],
)
def test_the_best_fit_comes_first(text: str, first: str) -> None:
    assert best(fits(PATHS, text), text, {}, 5)[0].path == first


def test_letters_must_stand_in_order_and_use_lifts_a_file() -> None:
    assert fits(PATHS, "zzz") == () and fits(PATHS, "yp.t") == ()
    assert best(fits(PATHS, "basket"), "basket", {"tests/test_basket.py": 9.0}, 2)[0].path == "tests/test_basket.py"
    assert [one.path for one in best(PATHS, "", {"docs/backs/kept.md": 1.0}, 1)] == ["docs/backs/kept.md"]
    assert best(PATHS, "", {}, 0) == ()


def test_many_paths_are_ranked_without_trying_them_all_twice() -> None:
    many = tuple(f"src/module_{number:05}/{'a' * 40}_file.py" for number in range(20_000))
    assert len(fits(many, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")) == 0
    assert len(best(fits(many, "module00042"), "module00042", {}, 50)) == 1


async def test_a_new_file_is_found_a_moment_later(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("")
    found = FileFinder(FrecencyStore(str(tmp_path / "home"), FakeClock()))
    assert [one.path for one in await found.find(str(tmp_path), "one", 5)] == ["one.py"]
    (tmp_path / "oneness.py").write_text("")
    assert [one.path for one in await found.find(str(tmp_path), "onen", 5)] == []
    deadline = time.monotonic() + file_search.FRESH_SECONDS + HANG
    while not await found.find(str(tmp_path), "onen", 5):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    await found.aclose()


async def test_what_lies_outside_is_not_remembered(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    store = FrecencyStore(str(home), FakeClock())
    found = FileFinder(store)
    await found.note(str(work), "../elsewhere.py")
    await found.note(str(work), str(work / "inside.py"))
    assert store.scores(os.path.realpath(work)) == {"inside.py": 1.0}
