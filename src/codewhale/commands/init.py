"""/init: an AGENTS.md of facts, without a model. Its tests run once a person says so, and what is there is never
overwritten unasked."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.files import atomic_write
from codewhale.lib.text import counted, one_line, sanitise
from codewhale.protocol.errors import ToolError
from codewhale.protocol.ops import CommandOutput
from codewhale.services.testruns.runners import Runner, find_runner, node_manager, read_text, run_tests_held, scripts
from codewhale.services.testruns.summary import summarise
from codewhale.workspace.patching import unified_diff
from codewhale.workspace.walk import Walker

NAME, MOST, TEST_SECONDS, DIFF_ROOM = "AGENTS.md", 14, 600.0, 16_384
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
_TARGET = re.compile(r"^([A-Za-z0-9][\w.-]*)[ \t]*:(?!=)", re.MULTILINE)


class InitCommand:
    """/init."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    @command("/init", "[run] [replace]")
    async def init(self, args: str, context: CommandContext) -> CommandOutput:
        """Write an AGENTS.md from facts of this repository; run: its tests first; replace: one that is there."""
        root, words = context.workspace, args.split()
        if set(words) - {"run", "replace"}:
            return misuse("Use /init, /init run (runs the tests) or /init replace (replaces AGENTS.md).")
        try:
            runner = await find_runner(root)
            tests = shlex.join([os.path.basename(runner.argv[0]), *runner.argv[1:]])
            if "run" in words:
                self._seen[root] = await _tested(root, runner)
        except ToolError as error:
            if "run" in words:
                return CommandOutput(f"The tests cannot be run: {error}", ok=False)
            tests = ""
        seen = self._seen.get(root, "")
        hint = "/init run runs the tests." if tests else "No tests were found."
        note = f"Only the tests were run: {seen.lstrip('!')}." if seen else f"None of its commands was run. {hint}"
        new = _text(root, (await Walker(root).files()).files, tests, seen)
        try:
            return _written(os.path.join(root, NAME), new, "replace" in words, note)
        except OSError as error:
            return CommandOutput(f"{NAME} was not written: {error.strerror or error}.", ok=False)


def _written(path: str, new: str, replace: bool, note: str) -> CommandOutput:
    """Raises OSError, also for a link and a folder in its place."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(os.open(path, os.O_RDONLY | flags), "rb") as file:
            old = file.read(1 << 20)
    except FileNotFoundError:
        if os.path.exists(os.path.join(os.path.dirname(path), "CLAUDE.md")) and not replace:
            text = f"{new}\nNot written: CLAUDE.md would no longer be read beside it. To write it: /init replace"
            return CommandOutput(text, ok=False)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o644), "wb") as file:
            file.write(new.encode())
        return CommandOutput(f"Wrote {NAME}. {note}")
    if old == new.encode():
        return CommandOutput(f"{NAME} says this already. {note}")
    if not replace:
        diff = sanitise(unified_diff(NAME, old, new.encode(), DIFF_ROOM))
        return CommandOutput(f"{diff}\nNot written: {NAME} is there. To replace it: /init replace", ok=False)
    atomic_write(path, new.encode())
    return CommandOutput(f"Replaced {NAME}. {note}")


def _text(root: str, files: tuple[str, ...], tests: str, seen: str) -> str:
    row = f"- Tests: `{tests}`" + (f" ({seen.lstrip('!')})" if seen else "")
    works, others = ([row], []) if seen and seen[0] != "!" else ([], [row] if tests else [])
    rows = [f"make {name}" for name in dict.fromkeys(_TARGET.findall(read_text(root, "Makefile")))]
    rows += [f"{node_manager(root)} run {shlex.quote(name)}" for name in scripts(root)]
    others += [f"- `{_code(line)}`" for line in rows]
    layout = [f"- `{_code(name)}/`: {holds}" for name, holds in _folders(files)]
    parts = {
        "Commands seen to work": works, "Not verified": others, "Build files": [_build_files(files)],
        "Languages": [_languages(files)], "Layout": layout,
    }  # fmt: skip
    text = "# AGENTS.md\n\nFacts of this repository, written by /init. Correct them, and add what only people know.\n"
    for title, lines in parts.items():
        more = [f"- {len(lines) - MOST} more"] if len(lines) > MOST else []
        text += "\n".join(["", f"## {title}", *lines[:MOST], *more, ""]) if any(lines) else ""
    return text


def _code(text: str) -> str:
    return one_line(text, 80).replace("`", "'")


async def _tested(root: str, runner: Runner) -> str:
    """What came of the tests, behind a "!" where they did not pass."""
    try:
        done = await run_tests_held(root, runner, TEST_SECONDS)
    except OSError as error:
        return f"!{one_line(str(error), 200)}"
    tests = summarise(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
    result = "timed out" if done.timed_out else tests.line() or f"exit code {done.exit_code}"
    good = done.exit_code == 0 and not done.timed_out and not tests.none_ran
    return one_line(f"{result}, {done.seconds:.1f} s" if good else f"!{result}", 200)


def _build_files(files: Sequence[str]) -> str:
    return ", ".join(name for name in files if name in _BUILD)


def _languages(files: Sequence[str]) -> str:
    by_language = Counter(_LANGUAGES.get(os.path.splitext(file)[1][1:].lower(), "") for file in files)
    by_language.pop("", None)
    return ", ".join(f"{name} ({counted(n, 'file')})" for name, n in by_language.most_common(8))


def _folders(files: Sequence[str]) -> list[tuple[str, str]]:
    inside: dict[str, list[str]] = {}
    for file in files:
        inside.setdefault(file.partition("/")[0], []).append(file)
    rows = ((name, _languages(paths) or f"{len(paths)} files", paths[0]) for name, paths in sorted(inside.items()))
    return [(name, holds) for name, holds, first in rows if "/" in first]
