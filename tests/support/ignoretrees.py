"""Random trees with nasty ignore rules, each path judged by our walker in a plain folder and by git in a repository."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from codewhale.workspace.walk import Walker
from support.repos import raw_git

NAMES = [*(
    "a b ab foo foobar bar.txt x.py x.pyc build .hid A1 9 _ - ] [ [x] ] !a #a é ü.py 日本 日本.txt ñandú Ab aB ~ ^ {a} "
    "*a a*b ? \\ \\b a\\ -] z-a"
).split(" "), "a b", " lead", "trail ", "tab\t", "\t", "v\x0b", "f\x0c", "del\x7f", "line\nfeed", "cr\r"]  # fmt: skip
CLASSES = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit bogus".split()
SETS = (
    "[ab] [!a] [^a] [a-z] [!a-z] []a] [!]a] [a-] [-a] [\\]] [\\a-\\c] [a\\-z] [[:%s:]] [![:%s:]] [a[:%s:]9] [[:%s] "
    "[[:%s:] [] [! [a [a/b] [!/] [\\\\] [é] [^é] [A-z] [z-a] [[] [[:] [*] [?] [.] [--0] [a-b-c] [[:%s:]-z]"
).split(" ")
ATOMS = [*(
    "* ** *** ? ?? / // /**/ **/ /** ***/ /*** \\* \\? \\[ \\a \\\\ \\/ **\\/ a b foo .py .* *.py é 日 ! # x* *x a** "
    "**b {a,b} ~ ^ $ + ( ) | . - ]"
).split(" "), " ", "\t", "\r"]  # fmt: skip
ENDINGS = (
    "",
    "",
    "",
    "",
    "",
    "",
    "/",
    "/",
    " ",
    "  ",
    "\t",
    "\\ ",
    " \\ ",
    "\\",
    "/*",
    "/**",
    "\r",
    "\r\r",
    "\0x",
    "//",
)
BEGINNINGS = ("", "", "", "", "", "!", "!", "/", "**/", "!/", "\\!", "\\#", "#", "***/", "./", "*", " ")


class Verdicts(Struct):
    """How many paths were judged, how many of them git ignores, and those judged otherwise than by git: (tree, path,
    ours, its rule files)."""

    judged: int = 0
    ignored: int = 0
    differing: list[tuple[str, str, bool, str]] = []

    @property
    def rate(self) -> float:
        """The share that differs."""
        return len(self.differing) / max(1, self.judged)


def rules(chance: random.Random, paths: list[str]) -> str:
    """The text of one rule file; most of its rules are paths of the tree with parts of them made general."""
    lines = [_rule(chance, paths) for _ in range(chance.randint(1, 6))]
    text = chance.choice(["\n", "\n", "\n", "\r\n"]).join(lines)
    return chance.choice(["", "", "", "\ufeff"]) + text + chance.choice(["\n", "\n", ""])


def _rule(chance: random.Random, paths: list[str]) -> str:
    if chance.random() < 0.25:
        body = "".join(_atom(chance) for _ in range(chance.randint(1, 5)))
    else:
        steps = chance.choice(paths).split("/")
        begin = chance.randrange(len(steps))
        body = "/".join(_general(chance, step) for step in steps[begin : begin + chance.randint(1, 3)])
        if chance.random() < 0.3:
            body = "/".join(_general(chance, step) for step in steps)
    return chance.choice(BEGINNINGS) + body + chance.choice(ENDINGS)


def _atom(chance: random.Random) -> str:
    atom = chance.choice(SETS if chance.random() < 0.4 else ATOMS)
    return atom.replace("%s", chance.choice(CLASSES))


def _general(chance: random.Random, step: str) -> str:
    if chance.random() < 0.15:
        return chance.choice(["*", "**", "***", "?", "*.*", ""])
    return "".join(_wider(chance, char) if chance.random() < 0.3 else char for char in step)


def _wider(chance: random.Random, char: str) -> str:
    octets = len(char.encode())
    ways = ["*", "**", "?" * octets, "?", f"\\{char}", f"[{char}]", f"[!{char}]", f"*{char}", f"{char}*", _atom(chance)]
    return chance.choice(ways)


def lay(top: Path, chance: random.Random) -> list[str]:
    """A tree beneath `top` with up to three rule files; its paths, folders ending in a slash."""
    paths: list[str] = []
    for _ in range(chance.randint(6, 16)):
        path = "/".join(chance.choice(NAMES) for _ in range(chance.choice([1, 1, 2, 2, 3, 4])))
        target = top / path
        if not target.exists() and not any(parent.is_file() for parent in target.parents):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
            paths.append(path)
    folders = sorted({os.path.dirname(path) for path in paths} - {""})
    for folder in ["", *chance.sample(folders, min(len(folders), 2))]:
        inner = [path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/" if folder else "")]
        (top / folder / ".gitignore").write_bytes(rules(chance, inner).encode("utf-8", "surrogateescape"))
    return sorted(_paths(top))


def _paths(top: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(top):
        inner = os.path.relpath(folder, top)
        prefix = "" if inner == "." else inner + "/"
        yield from (prefix + name for name in files)
        yield from (f"{prefix}{name}/" for name in folders)


async def shown(top: Path) -> set[str]:
    """Every path the walker does not hide, by listing one folder after another."""
    walker, found, todo = Walker(str(top)), set(), [""]
    while todo:
        folder = todo.pop()
        for entry in await walker.entries(folder or "."):
            path = f"{folder}{entry.name}" + ("/" if entry.is_dir else "")
            found.add(path)
            todo += [path] if entry.is_dir else []
    return found


async def judge(scratch: Path, seeds: range, verdicts: Verdicts) -> None:
    """Judge a tree for each seed. The trees are plain folders while we walk them, and one repository after that."""
    ours: dict[str, bool] = {}
    for seed in seeds:
        top = scratch / f"t{seed}"
        top.mkdir()
        paths = lay(top, random.Random(seed))
        seen = await shown(top)
        files = set((await Walker(str(top)).files()).files)
        assert files == {path for path in seen if not path.endswith("/")}, f"seed {seed}: a walk differs from listings"
        ours.update((f"t{seed}/{path}", path not in seen) for path in paths)
    raw_git(scratch, "init", "-q", "--template=")
    asked = "".join(f"./{path.rstrip('/')}\0" for path in ours).encode()
    told = raw_git(scratch, "check-ignore", "--no-index", "-z", "--stdin", stdin=asked, check=False)
    ignored = {path.removeprefix("./") for path in told.decode().split("\0")}
    for path, hidden in ours.items():
        verdicts.judged += 1
        verdicts.ignored += path.rstrip("/") in ignored
        if hidden is not (path.rstrip("/") in ignored):
            tree = path.partition("/")[0]
            files = sorted((scratch / tree).rglob(".gitignore"))
            held = "; ".join(f"{file.relative_to(scratch)}: {file.read_bytes()!r}" for file in files)
            verdicts.differing.append((tree, path, hidden, held))
