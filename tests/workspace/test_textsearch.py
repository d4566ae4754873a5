"""One engine decides what matches: with ripgrep and without, on every kind of file, to the end or honestly not."""

import asyncio
import random
from pathlib import Path

import pytest

from codewhale.process.programs import find_program
from codewhale.workspace.textsearch import PatternTooSlow, TextMatches, TextQuery, portable, search
from codewhale.workspace.walk import Walker
from support.patience import HANG, Moment
from support.repos import write

needs_rg = pytest.mark.skipif(find_program("rg") is None, reason="ripgrep is not installed")

WORDS = ("alpha", "Beta", "gamma_1", "délta", "ΩMEGA", "x", "42", "()", "[z]", "a.b", "\t", " ", "--", '"q"', "end")
PATTERNS = (
    "alpha", "beta", r"\bx\b", r"^alpha", r"end$", r"\d+", r"\w+_\d", r"[A-Z]\w+", r"a\.b", r"\(\)", r"\[z\]", "délta",
    "ω", "^$", r"^\s+\S", r"\s+$", r"(alpha|x).*end", r"x{2,}", r"x{1,3} ", r"[^a-z]x", r"(?:x|42)+", r"(?i)OMEGA|beta",
    r".", r"x*", r"(?<=x)alpha", r"(?!alpha)\w+", r"(\w)\1", r"\p{Lu}", r"x++", r"[[:digit:]]", r"a|\Bx", r"[a&&b]",
    r"\x41", r"\Aalpha", r"é", r"\W\W\W", r"alpha\s+Beta", r"[^\n]*end", r"--", r"\"q\"", r"(x|$)+", r"\r", r"[$x]a",
)  # fmt: skip  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 files of every line end and mark, some binary, some broken."""
    top = tmp_path_factory.mktemp("corpus")
    chance = random.Random(7)
    for number in range(400):
        ending = chance.choice(["\n", "\n", "\r\n", "\r", "\n\n"])
        lines = ["".join(chance.choices(WORDS, k=chance.randint(0, 6))) for _ in range(chance.randint(0, 12))]
        data = ending.join(lines).encode(chance.choice(["utf-8", "utf-8", "utf-8", "utf-16"]))
        data = chance.choice([b"", b"", b"", b"\xef\xbb\xbf"]) + data + chance.choice([b"", b"\n", b"\xff\n", b"\0"])
        path = top / f"d{number % 7}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return top


@needs_rg
@pytest.mark.parametrize("ignore_case", [False, True])
async def test_ripgrep_changes_nothing_but_the_time(corpus: Path, ignore_case: bool) -> None:
    files = (await Walker(str(corpus)).files()).files
    some = 0
    for pattern in PATTERNS:
        query = TextQuery(pattern, ignore_case, limit=50)
        plain = await search(str(corpus), files, query, seconds=HANG, rg=None)
        assert await search(str(corpus), files, query, seconds=HANG, rg=find_program("rg")) == plain, pattern
        some += plain.total > 0
        assert plain == await by_hand(corpus, files, query), pattern
    assert some > len(PATTERNS) * 0.7


async def by_hand(corpus: Path, files: tuple[str, ...], query: TextQuery) -> TextMatches:
    """The same search line by line, for which every pattern is taken as one of its own kind."""
    query = TextQuery(f"(?:{query.pattern})(?=)" if not query.pattern.startswith("(?i)") else query.pattern + "(?=)",
                  query.ignore_case, query.context, query.limit)  # fmt: skip
    assert portable(query.pattern) is None
    return await search(str(corpus), files, query, seconds=HANG, rg=None)


async def test_a_broken_ripgrep_is_done_without(corpus: Path, tmp_path: Path) -> None:
    files = (await Walker(str(corpus)).files()).files
    plain = await search(str(corpus), files, TextQuery("alpha"), seconds=HANG, rg=None)
    broken = tmp_path / "rg"
    broken.write_text("#!/bin/sh\nexit 2\n")
    broken.chmod(0o755)
    for rg in (str(broken), str(tmp_path / "absent")):
        assert await search(str(corpus), files, TextQuery("alpha"), seconds=HANG, rg=rg) == plain


@pytest.mark.parametrize(
    ("script", "total"),
    [
        ("printf '1.txt\\0'; echo 'rg: 7.txt: Permission denied (os error 13)' >&2; exit 2", 1),
        ("printf '1.txt\\0'; echo 'rg: 7.txt: Permission denied (os error 13)\nregex error' >&2; exit 2", 400),
        ("printf '1.txt\\0'; exit 2", 400),
        ("printf '1.txt\\0'; exec sleep 60", 400),
    ],
)
async def test_ripgrep_is_believed_where_it_could_not_read_a_file_alone(
    workspace: Path, tmp_path: Path, script: str, total: int
) -> None:
    files = [f"{n}.txt" for n in range(400)]
    write(workspace, dict.fromkeys(files, "x\n"))
    rg = tmp_path / "rg"
    rg.write_text(f"#!/bin/sh\n{script}\n")
    rg.chmod(0o755)
    found = await search(
        str(workspace), files, TextQuery("x", limit=1), seconds=10 if "sleep" in script else HANG, rg=str(rg)
    )
    assert (found.total, found.complete) == (total, True)


async def test_ripgrep_is_not_given_what_is_too_large_to_search(workspace: Path, tmp_path: Path) -> None:
    files = [f"{n}.txt" for n in range(400)]
    write(workspace, dict.fromkeys(files, "x\n"))
    with open(workspace / "huge.bin", "wb") as file:
        file.truncate(3 << 30)  # ripgrep reads seconds in a file of this size that is named to it
    rg = tmp_path / "rg"
    rg.write_text('#!/bin/sh\ncase "$*" in *huge.bin*) exit 2;; esac\nprintf "1.txt\\0"\n')
    rg.chmod(0o755)
    found = await search(str(workspace), [*files, "huge.bin"], TextQuery("x"), seconds=HANG, rg=str(rg))
    assert (found.total, found.searched) == (1, 400)


@needs_rg
async def test_a_file_that_is_gone_changes_nothing(corpus: Path) -> None:
    files = [*(await Walker(str(corpus)).files()).files, "gone.txt"]
    plain = await search(str(corpus), files, TextQuery("alpha"), seconds=HANG, rg=None)
    assert await search(str(corpus), files, TextQuery("alpha"), seconds=HANG, rg=find_program("rg")) == plain


@pytest.mark.parametrize(
    "pattern", [r"(?=a)", r"\1", r"a++", r"a{2}+", r"[[a]]", r"[a--b]", r"\<a", r"a{,3}", r"\Ba", "a\nb"]
)
def test_patterns_that_engines_read_differently_stay_here(pattern: str) -> None:
    assert portable(pattern) is None


async def test_a_search_can_be_cancelled(workspace: Path) -> None:
    write(workspace, {f"{n}.txt": "a" * 60 + "b\n" for n in range(20)})
    files = (await Walker(str(workspace)).files()).files
    task = asyncio.create_task(search(str(workspace), files, TextQuery("(a|aa)+$"), seconds=HANG, rg=None))
    await asyncio.sleep(0)
    started = Moment()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not started.hung


async def test_a_pattern_that_is_made_ready_for_minutes_is_given_up(workspace: Path) -> None:
    write(workspace, {"a.txt": "[" * 20_000})
    started = Moment()
    with pytest.raises(PatternTooSlow):
        await search(str(workspace), ["a.txt"], TextQuery("a" * 9_000), seconds=0.5, rg=None)
    assert not started.hung


async def test_when_the_time_is_up_it_says_so(workspace: Path) -> None:
    write(workspace, {f"{n}.txt": "x\n" for n in range(50)})
    files = (await Walker(str(workspace)).files()).files
    found = await search(str(workspace), files, TextQuery("x"), seconds=0, rg=None)
    assert not found.complete and found.total < 50


async def test_a_file_swapped_for_a_link_is_not_read(workspace: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret.txt": "needle\n"})
    (workspace / "a.txt").symlink_to(tmp_path / "secret.txt")
    (workspace / "dir").symlink_to(tmp_path)
    names = ["a.txt", "dir/secret.txt"] * 100
    for rg in (None, find_program("rg")):
        found = await search(str(workspace), names, TextQuery("needle"), seconds=HANG, rg=rg)
        assert found.total == 0
