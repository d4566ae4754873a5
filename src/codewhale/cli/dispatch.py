"""From the command line to a sub-command and from what it raises to an exit code."""

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from codewhale.cli.stdio import keep_standard_descriptors, put, say
from codewhale.cli.usage import BROKEN_PIPE, INTERRUPTED, USAGE, UsageError, exit_code
from codewhale.protocol.errors import CodeWhaleError

if TYPE_CHECKING:
    import argparse

    from codewhale.cli.parser import Parser

COMMANDS = {
    "exec": "run one prompt without the interface and print the answer",
    "review": "review a change, print what is wrong with it",
    "sessions": "list, show, replay, import and remove sessions",
    "stats": "what model calls used: tokens, cache hits, cost",
    "provider": "list model providers, test what one supports",
    "model": "list known models, show the facts of one",
    "login": "store a provider's API key",
    "logout": "delete a stored API key",
    "config": "read and change the configuration",
    "skills": "check skills against the open standard",
    "mcp": "list, add, approve and check MCP servers, or be one",
    "memory": "list, check and promote what is remembered",
    "trust": "choose which project files may configure codewhale",
    "policy": "show what the permissions decide about a command",
    "sandbox": "check the sandbox of this machine, run a command in it",
    "doctor": "check the machine, the configuration and the provider settings",
    "apply": "apply a patch from stdin to files",
    "search": "find code by what it does",
    "symbols": "find where a name is defined, used, called or imported",
    "history": "find commits by what they say and change",
    "index": "build or inspect the code search index",
    "tools": "list the tools, print exactly what a model is sent",
    "completion": "print the completion script of a shell",
    "tasks": "list, show, cancel and resume durable tasks",
    "automations": "list, show, pause, resume, run and delete automations",
    "work": "run durable tasks and automations until it is told to stop",
    "worktree": "list the checkouts that --worktree made",
    "web": "the terminal interface in a browser on this machine",
}


class Command(Protocol):
    """The module of a sub-command: its first words say what it does."""

    __doc__: str | None

    def build(self, parser: "argparse.ArgumentParser", /) -> None:
        """Declare the arguments."""
        ...

    def run(self, args: "argparse.Namespace", /) -> int:
        """Run it; returns the exit code."""
        ...


def overview() -> str:
    """What `codewhale --help` says."""
    rows = "\n".join(f"  {name:<12}{summary}" for name, summary in COMMANDS.items())
    return (
        "usage: codewhale [options]\n       codewhale COMMAND [options]\n\n"
        "A terminal coding agent whose harness helps weaker models succeed.\n\n"
        "Without a command it opens the terminal interface (options: codewhale-tui --help).\n\n"
        f"commands:\n{rows}\n  {'help':<12}show this help, or that of a command: codewhale help exec\n\n"
        'example:\n  codewhale exec "why does test_login fail?"\n\n'
        "options:\n  --version  print the version\n  --help     show this help; after a command, that of the command\n"
    )


def run(arguments: list[str]) -> int:
    """Run the sub-command, or without one the interface; returns the exit code and never raises."""
    return _told(lambda: _run(arguments), f"codewhale {arguments[0]}" if _is_command(arguments) else "codewhale")


def run_tui(arguments: list[str]) -> int:
    """Run the interface; returns the exit code and never raises."""
    from codewhale.cli.tui import main

    return _told(lambda: main(arguments, "codewhale-tui"), "codewhale-tui")


def _told(doing: Callable[[], int], program: str) -> int:
    try:
        keep_standard_descriptors()
        return doing()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except UsageError as error:
        say(f"{program}: {error}; try: {program} --help")
        return USAGE
    except CodeWhaleError as error:
        first, *more = str(error).splitlines() or [type(error).__name__]
        say(f"codewhale: {first}")
        for line in more:
            say(line)
        return exit_code(error)
    except OSError as error:
        say(f"codewhale: {error}")
        return 1


def _run(arguments: list[str]) -> int:
    if _for_the_interface(arguments):
        from codewhale.cli.tui import main

        return main(arguments)
    name, rest = arguments[0], arguments[1:]
    if name == "help" and rest and not rest[0].startswith("-"):
        name, rest = rest[0], ["--help"]
    if name in ("help", "--help", "-h"):
        put(overview())
        return 0
    if (name, rest[:1]) == ("completion", ["--words"]):
        from codewhale.cli.completion import SubCommands, complete

        return complete(rest[1:], SubCommands(COMMANDS, build))
    module = _module(name)
    if module is None:
        say(_unknown(name))
        return USAGE
    from codewhale.cli.parser import Parser

    parser = Parser(prog=f"codewhale {name}", description=module.__doc__)
    module.build(parser)
    gc.enable()
    return module.run(parser.parse_args(rest))


def _is_command(arguments: list[str]) -> bool:
    return bool(arguments) and not arguments[0].startswith("-")


def _for_the_interface(arguments: list[str]) -> bool:
    if not arguments:
        return True
    if not arguments[0].startswith("-"):
        return False
    from codewhale.cli.tui import OPTIONS

    name = arguments[0].partition("=")[0]
    return name in OPTIONS or (name.startswith("-w") and not name.startswith("--"))


def build(name: str, parser: "Parser") -> bool:
    """Declare the arguments of a sub-command; whether there is one of that name."""
    module = _module(name)
    if module is not None:
        module.build(parser)
    return module is not None


def _module(name: str) -> Command | None:
    return _working(name) or _configuring(name)


def _working(name: str) -> Command | None:
    """Commands that do the work, or look at it."""
    module: Command
    match name:
        case "exec":
            from codewhale.cli import exec as module
        case "review":
            from codewhale.cli import review as module
        case "sessions":
            from codewhale.cli import sessions as module
        case "stats":
            from codewhale.cli import stats as module
        case "apply":
            from codewhale.cli import apply as module
        case "search":
            from codewhale.cli import search as module
        case "symbols":
            from codewhale.cli import symbols as module
        case "history":
            from codewhale.cli import history as module
        case "index":
            from codewhale.cli import index as module
        case "tools":
            from codewhale.cli import tools as module
        case "tasks":
            from codewhale.cli import tasks as module
        case "automations":
            from codewhale.cli import automations as module
        case "work":
            from codewhale.cli import work as module
        case "worktree":
            from codewhale.cli import worktree as module
        case "completion":
            from codewhale.cli import completion as module
        case "web":
            from codewhale.cli import web as module
        case _:
            return None
    return module


def _configuring(name: str) -> Command | None:
    """Commands that set the program up, or check how it is."""
    module: Command
    match name:
        case "provider":
            from codewhale.cli import provider as module
        case "model":
            from codewhale.cli import models as module
        case "login":
            from codewhale.cli import login as module
        case "logout":
            from codewhale.cli import logout as module
        case "config":
            from codewhale.cli import config as module
        case "skills":
            from codewhale.cli import skills as module
        case "memory":
            from codewhale.cli import memory as module
        case "trust":
            from codewhale.cli import trust as module
        case "policy":
            from codewhale.cli import policy as module
        case "sandbox":
            from codewhale.cli import sandbox as module
        case "doctor":
            from codewhale.cli import doctor as module
        case "mcp":
            from codewhale.cli import mcp as module
        case _:
            return None
    return module


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"codewhale: no option {name} here; options follow a command; try: codewhale --help"
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    if near:
        return f"codewhale: no command {name!r}; did you mean: codewhale {near[0]}"
    return f'codewhale: no command {name!r}; to run a prompt: codewhale exec "..."; all commands: codewhale --help'
