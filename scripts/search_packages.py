"""A data folder made of pinned packages, for machines that hold no repositories: what is said of public definitions are
the questions, taken out of the files that are searched, and names of types that stand once are looked up.

None of these packages is among those that the weights of the package were fitted on.
"""

import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from search_docs import Told, bared

# From PyPI, and with their TypeScript and JavaScript sources from the registry of npm: (name, version, SHA-256).
WHEELS = (
    ("httpx", "0.28.1", "d909fcccc110f8c7faf814ca82a9a4d816bc5a6dbfea25d6591d6985b8ba59ad"),
    ("rich", "13.9.4", "6049d5e6ec054bf2779ab3358186963bac2ea89175919d699e378b99738c2a90"),
    ("networkx", "3.4.2", "df5d4365b724cf81b8c6a7312509d0c22386097011ad1abe274afd5e9d3bbc5f"),
)
TARBALLS = (
    ("rxjs", "7.8.2", "2312f8ffd9726ffd7bd53ea12c5f13663d09a3dc3326f448c70b88f5ef6fac82"),
    ("three", "0.177.0", "65b5eaf9cc4c07a038a61d31b59b303b666e94a5b8e36831773b52d880d38aa9"),
)
MOST_SENTENCES, MOST_NAMES = 80, 20  # questions a package
_FEWEST_WORDS, _MOST_WORDS = 5, 30
_LARGEST = 64 << 20
_SECONDS = 120
_SOURCES = re.compile(r"package/(src/.+\.(?:ts|js))$")
_WORD = re.compile(r"[A-Za-z]\w+")


def made(folder: Path) -> None:
    """Fetch the packages, write their trees without what is said of definitions, and the questions. Raises
    CalledProcessError where pip cannot have one, OSError where the registry cannot be read, ValueError where it has
    another file than was pinned."""
    packages = (*WHEELS, *TARBALLS)
    for name, _, _ in packages:
        shutil.rmtree(folder / "trees" / name, ignore_errors=True)
    _wheels(folder)
    _tarballs(folder)
    told = {name: list(bared(folder / "trees" / name)) for name, _, _ in packages}
    questions = [_question(name, version, *one) for name, version, _ in packages for one in _asked(told[name])]
    (folder / "packages.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions), "utf-8")
    rows = [{"repo": name, "slug": name, "commit": version, "root": ""} for name, version, _ in packages]
    (folder / "repos.json").write_text(json.dumps(rows) + "\n", "utf-8")


def _wheels(folder: Path) -> None:
    fetched = folder / "wheels"
    fetched.mkdir(parents=True, exist_ok=True)
    pins = "".join(f"{name}=={version} --hash=sha256:{sha}\n" for name, version, sha in WHEELS)
    (fetched / "pins.txt").write_text(pins, "utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--require-hashes", "-r", "pins.txt", "-d", "."], cwd=fetched, check=True)
    for name, version, _ in WHEELS:
        with zipfile.ZipFile(next(fetched.glob(f"{name}-{version}-*.whl"))) as wheel:
            wheel.extractall(folder / "trees" / name)


def _tarballs(folder: Path) -> None:
    for name, version, sha in TARBALLS:
        url = f"https://registry.npmjs.org/{name}/-/{name}-{version}.tgz"
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            data = answer.read(_LARGEST)
        if hashlib.sha256(data).hexdigest() != sha:
            raise ValueError(f"{url} is not the file that was pinned")
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                source = archive.extractfile(member) if member.isfile() else None
                found = _SOURCES.match(member.name)
                if source is not None and found is not None:
                    target = folder / "trees" / name / found[1]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(source.read())


def _asked(told: list[Told]) -> Iterator[tuple[str, str, Told]]:
    """(kind, query, what answers it): sentences of one definition alone that name neither it nor its file, and types
    that are called so once; which ones is a matter of their hash."""
    often = Counter(one.sentence for one in told)
    names = Counter(one.name for one in told)
    sayings = [one for one in told if often[one.sentence] == 1 and _asks(one)]
    for one in sorted(sayings, key=_hash)[:MOST_SENTENCES]:
        yield "docstring" if one.path.endswith(".py") else "comment", one.sentence, one
    types = [one for one in told if one.name[0].isupper() and names[one.name] == 1]
    for one in sorted(types, key=_hash)[:MOST_NAMES]:
        yield "name", one.name, one


def _asks(one: Told) -> bool:
    words = [word.lower() for word in _WORD.findall(one.sentence)]
    stem = Path(one.path).stem.strip("_").lower()
    plain = _FEWEST_WORDS <= len(words) <= _MOST_WORDS and "://" not in one.sentence
    return plain and not {one.name.lower(), stem} & set(words)


def _hash(one: Told) -> str:
    return hashlib.sha256(f"{one.path}:{one.name}".encode()).hexdigest()


def _question(repo: str, version: str, kind: str, query: str, one: Told) -> dict[str, object]:
    target = {"path": one.path, "start": one.start, "end": one.end}
    return {
        "id": f"{repo}:{kind}:{one.path}:{one.start}", "repo": repo, "slug": repo, "commit": version, "pinned": False,
        "root": "", "lang": "", "query": query, "expected_paths": [one.path], "primary_paths": [one.path],
        "targets": [target], "kind": kind, "source": "package",
    }  # fmt: skip
