"""From the command line to a sub-command and from what it raises to an exit code."""

import importlib
from collections.abc import Callable
from typing import Any

from codewhale.cli.stdio import InputError, keep_standard_descriptors, put, say
from codewhale.cli.usage import ChoiceError, UsageError
from codewhale.protocol.errors import CodeWhaleError, ConfigError, ProviderError, SessionBusyError, StorageFullError

USAGE, INTERRUPTED, RETRYABLE, BROKEN_PIPE = 2, 130, 75, 141
# Sub-command: module of this room and what it does.
COMMANDS = (
    ("exec", "run", "run one prompt without a screen and print the answer"),
    ("sessions", "sessions", "list, show, replay, import and remove sessions"),
    ("stats", "stats", "what model calls took: tokens, cache hits, money"),
    ("provider", "provider", "list the model providers, test what one of them does"),
    ("model", "models", "list the known models, tell what holds for one"),
    ("login", "login", "keep the key of a provider"),
    ("logout", "logout", "forget it"),
    ("config", "configuration", "read and change the configuration"),
    ("trust", "trust", "which of a project's own files may steer codewhale"),
    ("policy", "policy", "tell what would be decided about a command line"),
    ("sandbox", "sandbox", "what holds commands on this machine; run one in it"),
    ("doctor", "checkup", "check the machine, the configuration and the provider settings"),
    ("apply", "patch", "apply a patch from stdin to files"),
    ("search", "search", "find code by what it does"),
    ("symbols", "symbols", "who defines, uses, calls or imports a name"),
    ("history", "history", "find commits by what they say and change"),
    ("index", "index", "build or look at the index that code search answers from"),
    ("tools", "tools", "list the tools and the bytes that a model is sent"),
    ("web", "web", "the terminal interface in a browser on this machine"),
)


def overview() -> str:
    """What `codewhale --help` says."""
    rows = "\n".join(f"  {name:<10}{summary}" for name, _, summary in COMMANDS)
    return (
        "usage: codewhale [options]\n       codewhale COMMAND [options]\n\n"
        "A terminal coding agent whose harness lets a weaker model succeed.\n\n"
        "Without a command it opens the terminal interface; its options: codewhale-tui --help\n\n"
        f"commands:\n{rows}\n  {'help':<10}this text, or that of a command: codewhale help exec\n\n"
        'example:\n  codewhale exec "why does test_login fail?"\n\n'
        "options:\n  --version  print the version\n  --help     this text; after a command, that of the command\n"
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


def exit_code(error: CodeWhaleError) -> int:
    """What the program ends with when this stops it."""
    if isinstance(error, ChoiceError | InputError | ConfigError | ProviderError):
        return USAGE
    if isinstance(error, SessionBusyError | StorageFullError) or isinstance(error.__cause__, StorageFullError):
        return RETRYABLE
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
    module = _module(name)
    if module is None:
        say(_unknown(name))
        return USAGE
    from codewhale.cli.parser import Parser

    parser = Parser(prog=f"codewhale {name}", description=module.__doc__)
    module.build(parser)
    result = module.run(parser.parse_args(rest))
    return int(result)


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


def _module(name: str) -> Any:
    for command, module, _ in COMMANDS:
        if command == name:
            return importlib.import_module(f"codewhale.cli.{module}")
    return None


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"codewhale: no option {name} here; options follow a command; try: codewhale --help"
    import difflib

    near = difflib.get_close_matches(name, [command for command, _, _ in COMMANDS], n=1)
    if near:
        return f"codewhale: no command {name!r}; did you mean: codewhale {near[0]}"
    return f'codewhale: no command {name!r}; to run a prompt: codewhale exec "..."; all commands: codewhale --help'
