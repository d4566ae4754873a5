"""What may stand at the end of a slash command line: the names of commands, the words that their usage allows, and what
takes the place of the names in it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from codewhale.commands.base import CommandSpec, OwnCommand
from codewhale.lib.text import one_line
from codewhale.protocol.children import ListChildren
from codewhale.protocol.requests import Ask
from codewhale.protocol.tasks import ListTasks
from codewhale.protocol.usage import expected
from codewhale.protocol.views import (
    Choice,
    CompleteCommand,
    FindFiles,
    GetSettings,
    ListJobs,
    ListModels,
    ListProviders,
    PreviewUndo,
)

MOST = 50
FILES_OFFERED = 20
Source = Callable[[str, Sequence[str]], Awaitable[Sequence[Choice]]]


async def complete_command(
    op: CompleteCommand, specs: Sequence[CommandSpec], ask: Ask, skills: Source
) -> tuple[Choice, ...]:
    """Ways to go on with a command line, best first; `skills` gives those that the words are about."""
    sources: dict[str, Source] = {
        "COMMAND": lambda session, words: _commands(specs),
        "SKILL": skills,
    }
    sources |= {name: partial(source, ask) for name, source in _SOURCES.items()}
    return tuple(await complete(op.line, specs, sources, op.session))


async def _commands(specs: Sequence[CommandSpec]) -> Sequence[Choice]:
    return [Choice(spec.name, spec.summary) for spec in specs]


async def _models(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    return [Choice(row.model, row.provider) for row in await ask(ListModels(session)) if row.ready]


async def _providers(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    return [Choice(row.name, row.why or row.base_url) for row in await ask(ListProviders(session))]


async def _setting_keys(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    return [Choice(row.key, f"{row.shown}  ({row.origin})") for row in await ask(GetSettings(session))]


async def _setting_values(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    rows = await ask(GetSettings(session))
    return [Choice(choice) for row in rows if row.key == words[-2] for choice in row.choices]


async def _jobs(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    return [Choice(row.id, f"{row.status}: {row.command}") for row in await ask(ListJobs(session))]


async def _agents(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    views = await ask(ListChildren(session)) if words[:1] == ["/agents"] else ()
    return [Choice(view.name, f"{view.role}, {view.status}") for view in views]


async def _files(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    return [Choice(row.path) for row in await ask(FindFiles(session, words[-1], FILES_OFFERED))]


async def _turns(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    return [Choice(str(number), line) for number, line in (await ask(PreviewUndo(session))).rows]


async def _tasks(ask: Ask, session: str, words: Sequence[str]) -> Sequence[Choice]:
    board = await ask(ListTasks())
    return [Choice(view.id, f"{view.status}: {one_line(view.prompt, 80)}") for view in board.tasks]


_SOURCES = {
    "MODEL": _models,
    "PROVIDER": _providers,
    "KEY": _setting_keys,
    "VALUE": _setting_values,
    "ID": _jobs,
    "NAME": _agents,
    "TASK": _tasks,
    "FILE": _files,
    "PATH": _files,
    "N": _turns,
}


async def complete(
    line: str, specs: Sequence[CommandSpec], sources: Mapping[str, Source], session: str
) -> list[Choice]:
    """Ways to go on with `line`, best first. `sources` give choices for a name in capitals, from the
    session and the words of the line."""
    words = line.split()
    typed = "" if not words or line[-1:].isspace() else words[-1]
    before = words[: len(words) - bool(typed)]
    if not before:
        rows = [Choice(spec.name, spec.summary) for spec in specs]
        return _fitting(rows, typed)
    spec = next((spec for spec in specs if spec.name == before[0]), None)
    if spec is None or isinstance(spec, OwnCommand):  # whose hint is free text
        return []
    found: list[Choice] = []
    for word in expected(spec.usage, before[1:]):
        if not word.isupper():
            found.append(Choice(word))
        elif word in sources:
            found += await sources[word](session, (*before, typed))
    return _fitting(found, typed)


def _fitting(choices: Sequence[Choice], typed: str) -> list[Choice]:
    low = typed.lower()
    first = [one for one in choices if one.value.lower().startswith(low)]
    other = [one for one in choices if low in one.value.lower() and one not in first]
    unique = {one.value: one for one in reversed([*first, *other])}
    return [one for one in dict.fromkeys([*first, *other]) if unique[one.value] is one][:MOST]
