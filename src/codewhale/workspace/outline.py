"""What the paths of a workspace's files say of it, a line each: what builds it, its languages, its folders."""

import os
from collections import Counter
from collections.abc import Sequence

_LANGUAGES = dict(
    pair.split(":")
    for pair in """py:Python js:JavaScript jsx:JavaScript mjs:JavaScript ts:TypeScript tsx:TypeScript rs:Rust go:Go
    java:Java kt:Kotlin c:C h:C cc:C++ cpp:C++ hpp:C++ cs:C# rb:Ruby php:PHP swift:Swift sh:Shell sql:SQL html:HTML
    css:CSS scala:Scala lua:Lua hs:Haskell""".split()
)
_BUILD = frozenset(
    """pyproject.toml setup.py setup.cfg requirements.txt uv.lock poetry.lock tox.ini noxfile.py package.json
    package-lock.json pnpm-lock.yaml yarn.lock bun.lock tsconfig.json Cargo.toml go.mod Makefile GNUmakefile makefile
    justfile CMakeLists.txt meson.build pom.xml build.gradle Gemfile composer.json mix.exs Dockerfile""".split()
)


def build_files(files: Sequence[str]) -> str:
    return ", ".join(name for name in files if name in _BUILD)


def languages(files: Sequence[str]) -> str:
    counted = Counter(_LANGUAGES.get(os.path.splitext(file)[1][1:].lower(), "") for file in files)
    counted.pop("", None)
    return ", ".join(f"{name} ({n} file{'s' * (n > 1)})" for name, n in counted.most_common(8))


def folders(files: Sequence[str]) -> list[tuple[str, str]]:
    """Each folder at the top with what it holds."""
    inside: dict[str, list[str]] = {}
    for file in files:
        inside.setdefault(file.partition("/")[0], []).append(file)
    return [
        (name, languages(paths) or f"{len(paths)} files") for name, paths in sorted(inside.items()) if "/" in paths[0]
    ]
