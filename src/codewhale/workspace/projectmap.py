"""A bounded picture of a project: its folders as a tree, what it is made of, and the files to read first."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from codewhale.lib.text import counted

MOST_LINES = 300
_MOST_IN_FOLDER = 40
_MOST_KEY_FILES = 40
_KEY_DEPTH = 2
_KINDS_SHOWN = 8
_KEY_NAMES = frozenset(
    """
    readme readme.md readme.rst readme.txt agents.md claude.md contributing.md architecture.md changelog.md license
    pyproject.toml setup.py setup.cfg requirements.txt pipfile tox.ini pytest.ini conftest.py manage.py
    cargo.toml go.mod package.json tsconfig.json deno.json pnpm-workspace.yaml pom.xml build.gradle build.gradle.kts
    settings.gradle gemfile composer.json mix.exs build.sbt project.clj package.swift cmakelists.txt meson.build
    configure.ac makefile justfile taskfile.yml dockerfile docker-compose.yml compose.yaml flake.nix build.bazel
    main.py __main__.py app.py main.go main.rs lib.rs main.c main.cpp main.ts index.ts index.js main.js app.ts app.js
    """.split()
)


class ProjectMap(Struct, frozen=True):
    tree: str
    summary: str
    key_files: list[str]


class _Folder(Struct):
    folders: dict[str, "_Folder"] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    count: int = 0


def build_map(files: Sequence[str], max_depth: int, *, truncated: bool = False) -> ProjectMap:
    """The map of `files` (relative POSIX paths), folders shown to `max_depth` levels. `truncated`: there are more."""
    top = _Folder()
    for path in sorted(files):
        *folders, name = path.split("/")
        folder = top
        folder.count += 1
        for step in folders:
            folder = folder.folders.setdefault(step, _Folder())
            folder.count += 1
        folder.files.append(name)
    lines: list[str] = []
    _draw(top, 0, max_depth, lines)
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"… {len(lines) - MOST_LINES} more lines; a smaller max_depth shows less"]
    return ProjectMap("\n".join(lines), _summary(files, top, truncated), _key_files(files))


def _draw(folder: _Folder, depth: int, max_depth: int, lines: list[str]) -> None:
    indent = "  " * depth
    for name, inner in list(folder.folders.items())[:_MOST_IN_FOLDER]:
        if depth + 1 < max_depth:
            lines.append(f"{indent}{_printable(name)}/")
            _draw(inner, depth + 1, max_depth, lines)
        else:
            lines.append(f"{indent}{_printable(name)}/ ({counted(inner.count, 'file')})")
    if len(folder.folders) > _MOST_IN_FOLDER:
        lines.append(f"{indent}… {len(folder.folders) - _MOST_IN_FOLDER} more folders")
    lines.extend(indent + _printable(name) for name in folder.files[:_MOST_IN_FOLDER])
    if len(folder.files) > _MOST_IN_FOLDER:
        lines.append(f"{indent}… {len(folder.files) - _MOST_IN_FOLDER} more files")


def _summary(files: Sequence[str], top: _Folder, truncated: bool) -> str:
    if not files:
        return "No files."
    kinds = Counter(_kind(path) for path in files)
    named = ", ".join(
        f"{kind} {count}" for kind, count in sorted(kinds.items(), key=lambda k: (-k[1], k[0]))[:_KINDS_SHOWN]
    )
    folders = len({path.rpartition("/")[0] for path in files} - {""})
    more = "more than " if truncated else ""
    return f"{more}{counted(len(files), 'file')} in {counted(folders, 'folder')}; by kind: {named}"


def _kind(path: str) -> str:
    name = path.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and stem else "no extension"


def _key_files(files: Sequence[str]) -> list[str]:
    near = [path for path in files if path.count("/") < _KEY_DEPTH and path.rpartition("/")[2].lower() in _KEY_NAMES]
    return sorted(near, key=lambda path: (path.count("/"), path))[:_MOST_KEY_FILES]


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)[1:-1]
