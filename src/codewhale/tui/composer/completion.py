"""What can be completed: which character asks for what, where it may stand, and who knows. Answers that come too late
for the text are dropped."""

import asyncio
import re
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.requests import Ask
from codewhale.protocol.views import Choice, CommandRow, CompleteCommand, FileMatch, FindFiles, ListCommands

MOST_ROWS = 50
# While letters still come, files are not looked for.
DEBOUNCE_SECONDS = 0.06
ANSWER_SECONDS = 10.0
_WORD_BEFORE = re.compile(r'(?:(?<=\s)|(?<=[("\'\[])|^)([@$])("[^"\n]*|[^\s"]*)$')
_COMMAND_LINE = re.compile(r"/(?:[^\W\d_][\w-]*)?(?:[ \t][^\n]*)?$")


class Trigger(Struct, frozen=True):
    """A row: the `character` that asks the completion `source` of this name. It stands at the beginning of the text
    (`line`) or of a word."""

    character: str
    source: str
    line: bool


# An extension is a row here and a source of its name in SOURCES.
TRIGGERS = (
    Trigger("/", "commands", line=True),
    Trigger("@", "files", line=False),
    Trigger("$", "skills", line=False),
)


class CompletionRequest(Struct, frozen=True):
    """What stands before the cursor and can be completed: the `word` behind the trigger, at the offsets `start` (the
    trigger's) to `end`; `line` is all of a command line. In a `message` a path keeps its trigger: the file goes
    along."""

    trigger: Trigger
    word: str
    start: int
    end: int
    line: str = ""
    message: bool = True


class Completion(Struct, frozen=True):
    """A line of the list. `insert` takes the place of the offsets `start` to `end`; `more` says that what was inserted
    can be completed further; `path` is the file it mentions."""

    label: str
    detail: str
    insert: str
    start: int
    end: int
    more: bool = False
    path: str = ""


class CompletionRows(Struct, frozen=True):
    """What the list shows: `header` is the usage of the command at hand."""

    wanted: CompletionRequest
    rows: tuple[Completion, ...]
    header: str = ""


def wanted(text: str, cursor: int) -> CompletionRequest | None:
    """What can be completed where the cursor stands, None for nothing."""
    before = text[:cursor]
    if before.startswith("/") and _COMMAND_LINE.fullmatch(before):
        word = before.rpartition(" ")[2] if " " in before else before[1:]
        return CompletionRequest(TRIGGERS[0], word, cursor - len(word) if " " in before else 0, cursor, before)
    match = _WORD_BEFORE.search(before[-1024:])
    if match is None:
        return None
    trigger = next(row for row in TRIGGERS if row.character == match[1])
    message = not text.startswith(("/", "!"))
    return CompletionRequest(trigger, match[2].lstrip('"'), cursor - len(match[0]), cursor, message=message)


class CompletionSource(Protocol):
    """Who knows how a word goes on."""

    async def rows(self, wanted: CompletionRequest, session: str, ask: Ask) -> tuple[tuple[Completion, ...], str]:
        """The rows, best first, and the header of the list. Raises what `ask` raises."""
        ...


class CommandSource:
    """Slash commands and their arguments."""

    def __init__(self) -> None:
        self._rows: tuple[CommandRow, ...] = ()
        self._session = ""

    async def known(self, session: str, ask: Ask, again: bool = False) -> tuple[CommandRow, ...]:
        """The commands of the session, kept until they are asked for `again`."""
        if again or not self._rows or self._session != session:
            self._rows, self._session = tuple(await ask(ListCommands(session))), session
        return self._rows

    async def rows(self, wanted: CompletionRequest, session: str, ask: Ask) -> tuple[tuple[Completion, ...], str]:
        commands = await self.known(session, ask, again=wanted.line == "/")
        if " " not in wanted.line:
            fitting = _fitting(wanted.word, commands)
            return tuple(_command_row(row, wanted) for row in fitting[:MOST_ROWS]), ""
        name = wanted.line.split(maxsplit=1)[0]
        command = next((row for row in commands if row.name == name), None)
        if command is None:
            return (), ""
        choices: tuple[Choice, ...] = tuple(await ask(CompleteCommand(session, wanted.line)))
        rows = [Completion(c.value, c.detail, c.value + " ", wanted.start, wanted.end) for c in choices[:MOST_ROWS]]
        return tuple(rows), f"{command.name} {command.usage}  {command.summary}"


class PathSource:
    """Files of the workspace."""

    async def rows(self, wanted: CompletionRequest, session: str, ask: Ask) -> tuple[tuple[Completion, ...], str]:
        await asyncio.sleep(DEBOUNCE_SECONDS)
        found: tuple[FileMatch, ...] = tuple(await ask(FindFiles(session, wanted.word, MOST_ROWS)))
        return tuple(_file_row(match.path, wanted) for match in found[:MOST_ROWS]), ""


class SkillSource:
    """Skills, as the completion of /skills names them."""

    def __init__(self, commands: CommandSource) -> None:
        self._commands = commands

    async def rows(self, wanted: CompletionRequest, session: str, ask: Ask) -> tuple[tuple[Completion, ...], str]:
        if all(row.name != "/skills" for row in await self._commands.known(session, ask)):
            return (), ""
        choices: tuple[Choice, ...] = tuple(await ask(CompleteCommand(session, f"/skills {wanted.word}")))
        # A word of the command's own usage has no detail; a skill says what it is for, and has no capitals.
        named = [c for c in choices if c.detail and c.value == c.value.lower()]
        rows = [Completion(f"${c.value}", c.detail, f"${c.value} ", wanted.start, wanted.end) for c in named]
        return tuple(rows[:MOST_ROWS]), ""


def sources() -> dict[str, CompletionSource]:
    commands = CommandSource()
    return {
        "commands": commands,
        "files": PathSource(),
        "skills": SkillSource(commands),
    }


class CompletionSearch:
    """Asks for the text of the moment and tells `show` what was found (None: nothing). What was asked for an earlier
    text is given up."""

    def __init__(self, ask: Ask, show: Callable[[CompletionRows | None], None]) -> None:
        self._ask = ask
        self._show = show
        self._sources = sources()
        self._task: asyncio.Task[None] | None = None
        self._last: CompletionRequest | None = None
        self._refused: str | None = None
        self.session = ""

    def look(self, text: str, cursor: int) -> None:
        """The text has changed, or the cursor has moved."""
        if text != self._refused:
            self._refused = None
        now = wanted(text, cursor) if self.session and self._refused is None else None
        if now == self._last:
            return
        self.stop()
        self._last = now
        if now is None:
            self._show(None)
        else:
            self._task = asyncio.get_running_loop().create_task(self._find(now))

    @property
    def asking(self) -> bool:
        """Whether an answer is still out."""
        return self._task is not None and not self._task.done()

    def stop(self) -> None:
        """Give up what is being asked."""
        self._last = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def refuse(self, text: str) -> None:
        """Offer nothing for this text; for the next one again."""
        self.stop()
        self._refused = text
        self._show(None)

    async def _find(self, now: CompletionRequest) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                rows, header = await self._sources[now.trigger.source].rows(now, self.session, self._ask)
        except (CodeWhaleError, OSError, TimeoutError, KeyError):
            rows, header = (), ""
        if self._last == now:
            self._show(CompletionRows(now, rows, header) if rows or header else None)


def _fitting(word: str, commands: tuple[CommandRow, ...]) -> list[CommandRow]:
    """Commands whose name begins with the word, then those that have it inside, then those that say it."""
    low = word.lower()

    def place(row: CommandRow) -> int:
        name = row.name[1:].lower()
        if name.startswith(low):
            return 0
        return 1 if low in name else 2 if len(low) > 2 and low in row.summary.lower() else 3

    return sorted((row for row in commands if place(row) < 3), key=lambda row: (place(row), row.name))


def _command_row(row: CommandRow, at: CompletionRequest) -> Completion:
    label = f"{row.name} {row.usage}".rstrip()
    return Completion(label, row.summary, row.name + " ", at.start, at.end, more=bool(row.usage))


def _file_row(path: str, at: CompletionRequest) -> Completion:
    if path.endswith("/"):
        return Completion(path, "", f'@"{path}' if " " in path else f"@{path}", at.start, at.end, more=True)
    named = f'"{path}" ' if " " in path else f"{path} "
    return Completion(path, "", f"@{named}" if at.message else named, at.start, at.end, path=path)
