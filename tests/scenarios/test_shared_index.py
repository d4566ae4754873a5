"""Two programs that search one folder over one index: what either has taken in is what the other answers by."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codewhale.codesearch.search import CodeSearch


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[CodeSearch, CodeSearch]]:
    """Two searches over the same state."""
    both = CodeSearch(str(tmp_path / "state")), CodeSearch(str(tmp_path / "state"))
    yield both
    for search in both:
        await search.aclose()


def write(tree: Path, name: str, word: str) -> None:
    """A file that holds one word that no other file does."""
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(f"def {word}_keeper(tide):\n    return tide\n")


async def paths(search: CodeSearch, tree: Path, word: str) -> list[str]:
    """The files that hold a word, as a search says."""
    answer = await search.search(str(tree), f"{word}_keeper", patience=None)
    assert answer.coverage == 1.0 and answer.notes == ()
    return [hit.path for hit in answer.hits if hit.symbol == f"{word}_keeper"]


async def test_what_one_takes_in_the_other_answers_by(two: tuple[CodeSearch, CodeSearch], tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree, "first.py", "walrus")
    one, other = two
    for search in (one, other):
        assert await paths(search, tree, "walrus") == ["first.py"]
    write(tree, "second.py", "narwhal")
    assert await paths(other, tree, "narwhal") == ["second.py"]
    assert await paths(one, tree, "narwhal") == ["second.py"]
    write(tree, "first.py", "porpoise")
    assert await paths(one, tree, "porpoise") == ["first.py"]
    assert await paths(other, tree, "walrus") == [] and await paths(other, tree, "porpoise") == ["first.py"]
    (tree / "second.py").unlink()
    assert await paths(other, tree, "narwhal") == []
    assert await paths(one, tree, "narwhal") == []
    write(tree, "second.py", "narwhal")
    for search in (one, other):
        assert await paths(search, tree, "narwhal") == ["second.py"]


async def test_whoever_asks_after_whatever_change_is_told_what_is_there(
    two: tuple[CodeSearch, CodeSearch], tmp_path: Path
) -> None:
    chance, tree, held = random.Random(5), tmp_path / "tree", {"part0/keep.py": "walrus"}
    write(tree, "part0/keep.py", "walrus")
    for step in range(40):
        for number in range(chance.choice((1, 1, 2, 5))):
            name = f"part{chance.randrange(3)}/unit{chance.randrange(6)}.py"
            if name in held and chance.random() < 0.4:
                (tree / name).unlink()
                del held[name]
            else:
                held[name] = f"whale{'abcdefghij'[step % 10]}{'klmnopqrst'[step // 10]}{'uvwxyz'[number]}"
                write(tree, name, held[name])
        search = chance.choice(two)
        for name, word in chance.sample(sorted(held.items()), min(3, len(held))):
            assert await paths(search, tree, word) == [name], step
    for search in two:
        assert {name: await paths(search, tree, word) for name, word in held.items()} == {name: [name] for name in held}
