"""Which file of the tree an import means, by the customs of its language: a path beside it, a module's dotted name, a
crate's or package's own path. What is not of this tree comes to nothing."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

MOST_TARGETS = 3
_SCRIPT = ("", *".ts .tsx .d.ts .js .jsx .mjs .cjs .vue .svelte /index.ts /index.tsx /index.js".split())
_HEADERS = frozenset({"c", "cpp", "objc"})
_SCRIPTS = frozenset({"javascript", "typescript", "tsx", "vue", "svelte"})
_BESIDE = frozenset({"ruby", "bash", "zig", "dart", "solidity", "proto", "php"})
_STEPS = re.compile(r"::|[./\\:]")
_WORDS = re.compile(r"[\w./\\:@-]+")


class Resolver:
    """Resolves imports among `paths` (POSIX, from the root)."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._known = {path: number for number, path in enumerate(paths)}
        self._own: dict[int, list[str]] = {}
        self._resolved: dict[tuple[str, str], list[int]] = {}
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        self._by_folder: dict[str, list[int]] = defaultdict(list)
        for number, path in enumerate(paths):
            folder, _, name = path.rpartition("/")
            stem = name.partition(".")[0]
            self._by_stem[stem.lower()].append(number)
            if stem in ("__init__", "mod", "index", "lib", "init"):
                self._by_stem[folder.rpartition("/")[2].lower()].append(number)
            self._by_folder[folder.rpartition("/")[2]].append(number)

    def targets(self, number: int, lang: str, written: str) -> list[int]:
        """The files that `written` in file `number` means: at most three, or all of a Go package."""
        found = list(dict.fromkeys(self._targets(self._paths[number], lang, written)))
        return found if len(found) <= MOST_TARGETS or lang == "go" else []

    def _targets(self, path: str, lang: str, written: str) -> Iterator[int]:
        folder = path.rpartition("/")[0]
        if lang in _HEADERS:
            yield from self._beside(folder, written, ("",)) or self._ending(written)
        elif lang in _SCRIPTS:
            if written.startswith("."):
                yield from self._beside(folder, written, _SCRIPT)
        elif lang == "python" and written.startswith("."):
            yield from self._python(folder, written)
        elif lang == "python":
            yield from self._once(lang, written, lambda: self._python("", written))
        elif lang == "go":
            yield from self._once(lang, written, lambda: self._package(written))
        elif lang in _BESIDE and ("/" in written or "." in written) and "\\" not in written:
            yield from self._beside(folder, written, ("", ".rb", ".sh", ".zig")) or self._ending(written)
        else:
            ending = path.rpartition(".")[2]
            yield from self._once(ending, written, lambda: self._named(ending, written))

    def _once(self, kind: str, written: str, resolve: Callable[[], list[int]]) -> list[int]:
        """What means the same wherever it is written is found out once."""
        found = self._resolved.get((kind, written))
        if found is None:
            found = self._resolved[kind, written] = resolve()
        return found

    def _beside(self, folder: str, written: str, endings: Sequence[str]) -> list[int]:
        base = posixpath.normpath(posixpath.join(folder, written))
        bases = (base, base.rpartition(".")[0]) if written.endswith((".js", ".jsx", ".mjs")) else (base,)
        found = (self._known.get(base + ending) for base in bases for ending in endings)
        return [number for number in found if number is not None][:1]

    def _ending(self, written: str) -> list[int]:
        """Files whose path ends so."""
        wanted = "/" + written.lstrip("./")
        stem = written.rpartition("/")[2].partition(".")[0].lower()
        return [number for number in self._by_stem.get(stem, ()) if ("/" + self._paths[number]).endswith(wanted)]

    def _python(self, folder: str, written: str) -> list[int]:
        dots = len(written) - len(written.lstrip("."))
        steps = [step for step in written.split(".") if step]
        if dots:
            base = folder.split("/") if folder else []
            base = base[: len(base) - (dots - 1)] if dots > 1 else base
            return self._module("/".join([*base, *steps]))
        exact = self._module("/".join(steps))
        if exact or not steps:
            return exact
        wanted = "/" + "/".join(steps)
        ends = (wanted + ".py", wanted + "/__init__.py", wanted + ".pyi")
        return [number for number in self._by_stem.get(steps[-1].lower(), ()) if self._paths[number].endswith(ends)]

    def _module(self, base: str) -> list[int]:
        base = base + "/" if base else base
        tries = (base.rstrip("/") + ".py", base + "__init__.py", base.rstrip("/") + ".pyi")
        return [self._known[path] for path in tries if path in self._known][:1]

    def _package(self, written: str) -> list[int]:
        """Go: the files of the folder whose path the import ends with; its tests do not count."""
        steps = written.split("/")
        for take in range(min(len(steps), 4), 0, -1):
            wanted = "/".join(steps[-take:])
            found = [
                number
                for number in self._by_folder.get(steps[-1], ())
                if self._paths[number].endswith(".go")
                and not self._paths[number].endswith("_test.go")
                and ("/" + self._paths[number].rpartition("/")[0]).endswith("/" + wanted)
            ]
            if found and (take > 1 or len(steps) == 1):
                return found
        return []

    def _named(self, ending: str, written: str) -> list[int]:
        """Dotted or colonned names: the file whose last folders and stem are the last steps of the name, or, for a
        name of something in a file, the steps before."""
        match = _WORDS.search(written.removeprefix("import ").removeprefix("static "))
        written = match[0] if match else ""
        steps = [step for step in _STEPS.split(written) if step not in ("", "crate", "self", "super", "*")]
        for drop in (0, 1):
            name = steps[: len(steps) - drop]
            if not name or (drop and len(name) < 2 and ending != "rs"):
                break
            found = self._by_steps(name, ending)
            if found:
                return found
        return []

    def _by_steps(self, steps: Sequence[str], ending: str) -> list[int]:
        best: list[int] = []
        most = 0
        for number in self._by_stem.get(_snake(steps[-1]), ()) or self._by_stem.get(steps[-1].lower(), ()):
            path = self._paths[number]
            if path.rpartition(".")[2] != ending:
                continue
            own = self._steps(number)
            agree = 0
            for mine, theirs in zip(reversed(own), reversed(steps), strict=False):
                if mine != _snake(theirs):
                    break
                agree += 1
            if agree >= most and agree >= min(2, len(steps)):
                best = [number] if agree > most else [*best, number]
                most = agree
        return best

    def _steps(self, number: int) -> list[str]:
        """The folders and the stem of a file, as names are compared."""
        found = self._own.get(number)
        if found is None:
            steps = [_snake(step) for step in self._paths[number].rpartition(".")[0].split("/")]
            found = self._own[number] = steps[:-1] if steps[-1] in ("mod", "index", "lib", "init") else steps
        return found


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")
