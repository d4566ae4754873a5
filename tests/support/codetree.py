"""Trees to index, and random things that happen to them."""

import os
import random
import shutil
import subprocess
from pathlib import Path

from codewhale.codesearch.build import CodeIndex, refresh
from support.likeness import likeness

WORDS = "open close read write parse render cache token user order price whale harbour engine signal".split()
ENDINGS = ("py", "py", "rs", "go", "ts", "md", "c", "txt")


def grammars(index: CodeIndex, folder: Path) -> CodeIndex:
    """The same index, with grammars that were unpacked before."""
    index.grammar_folder = str(folder / "grammars")
    return index


async def same_as_rebuilt(index: CodeIndex, scratch: Path) -> None:
    """Whether the index says what one made from nothing says. Raises AssertionError."""
    anew = CodeIndex(index.root, str(scratch / "anew"))
    anew.grammar_folder = index.grammar_folder
    anew.discard()
    await refresh(anew)
    one, other = index.open(), anew.open()
    try:
        ours, theirs = likeness(one), likeness(other)
        assert ours.keys() == theirs.keys(), sorted(set(ours) ^ set(theirs))
        assert ours == theirs, sorted(path for path in ours if ours[path] != theirs[path])
        commits = "SELECT number, data FROM commits ORDER BY number"
        assert one.rows(commits) == other.rows(commits)
    finally:
        one.close()
        other.close()


def git(root: Path, *args: str) -> str:
    """Run git for a test, with an identity of its own."""
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    env = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *args], cwd=root, env=env, capture_output=True, text=True, check=True)
    return done.stdout


class Happenings:
    """Random edits, renames, deletions and branch switches of one repository."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.branches = ["main"]
        root.mkdir(parents=True, exist_ok=True)
        git(root, "init", "-q", "-b", "main")
        (root / ".gitignore").write_text("ignored/\n*.tmp\n")
        for _ in range(8):
            self.write(self.name())
        self.commit()

    def name(self) -> str:
        """Some path, new or not."""
        some = self.random
        folder = "/".join(some.choice(WORDS[:5]) for _ in range(some.randrange(3)))
        name = f"{some.choice(WORDS)}.{some.choice(ENDINGS)}"
        return f"{folder}/{name}" if folder else name

    def text(self, path: str) -> str:
        """Some source."""
        some = self.random
        names = [some.choice(WORDS) for _ in range(some.randrange(1, 6))]
        if path.endswith(".py"):
            return "".join(
                f'def {a}_{b}(x):\n    """{b} {a}."""\n    return {b}(x)\n\n\n'
                for a, b in zip(names, names[1:] + names, strict=False)
            )
        if path.endswith(".rs"):
            return "".join(f"// {a}\nfn {a}() -> u8 {{ {some.randrange(99)} }}\n\n" for a in names)
        return "\n".join(f"{a} {some.choice(WORDS)} {some.randrange(1000)}" for a in names) + "\n"

    def files(self) -> list[str]:
        """What is there, .git left out."""
        found = (
            path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()
        )
        return sorted(path.as_posix() for path in found if path.parts[0] != ".git")

    def write(self, path: str) -> None:
        """Write some source there, unless something stands in the way."""
        target = self.root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.text(path))
        except OSError:
            return

    def commit(self) -> None:
        """Commit everything."""
        git(self.root, "add", "-A")
        git(
            self.root,
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            f"Change the {self.random.choice(WORDS)} of the {self.random.choice(WORDS)}",
        )

    def switch(self) -> None:
        """To another branch, or to a new one."""
        self.commit()
        if len(self.branches) < 4 and self.random.random() < 0.4:
            self.branches.append(f"branch-{len(self.branches)}")
            git(self.root, "switch", "-q", "-c", self.branches[-1])
        else:
            git(self.root, "switch", "-q", self.random.choice(self.branches))

    def step(self) -> str:
        """Let something happen; returns what."""
        what = self.random.choices(
            ["edit", "add", "delete", "rename", "move", "switch", "commit", "ignore", "touch", "empty"],
            [30, 15, 8, 8, 4, 6, 6, 3, 5, 3],
        )[0]
        files = [path for path in self.files() if path != ".gitignore"]
        if what in ("add", "edit") or not files:
            self.write(self.random.choice(files) if files and what == "edit" else self.name())
        elif what == "switch":
            self.switch()
        elif what == "commit":
            self.commit()
        else:
            self._to_one(what, self.root / self.random.choice(files))
        return what

    def _to_one(self, what: str, path: Path) -> None:
        if what == "delete":
            path.unlink()
        elif what == "rename":
            os.replace(path, path.with_name(f"{self.random.choice(WORDS)}_{path.name}"[-60:]))
        elif what == "move" and path.parent != self.root:
            target = self.root / f"moved_{self.random.randrange(20)}"
            if not target.exists():
                shutil.move(path.parent, target)
        elif what == "ignore":
            rules = self.root / ".gitignore"
            rules.write_text(f"ignored/\n*.tmp\n{self.random.choice(WORDS)}.*\n")
        elif what == "touch":
            os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000_000))
        elif what == "empty":
            path.write_bytes(b"")
