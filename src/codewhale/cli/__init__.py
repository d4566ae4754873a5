"""Argument parsing, sub-commands, choosing a frontend. Imports inside functions keep start-up lean: nothing but
what the sub-command at hand needs is loaded."""

import sys


def main() -> int:
    """The `codewhale` program; returns its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        return _version("codewhale")
    try:
        _narrow()
        from codewhale.cli.dispatch import run

        return run(arguments)
    except KeyboardInterrupt:
        return 130


def tui() -> int:
    """The `codewhale-tui` program; returns its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        return _version("codewhale-tui")
    try:
        _narrow()
        from codewhale.cli.dispatch import run_tui

        return run_tui(arguments)
    except KeyboardInterrupt:
        return 130


def _narrow() -> None:
    """The process is the program's own, and nothing of the current folder is imported from here on."""
    from codewhale.process.lean import load_lean

    load_lean()
    from codewhale.display.leaving import IS_PROGRAM
    from codewhale.process.itself import narrow

    IS_PROGRAM.set(True)
    narrow()


def _version(program: str) -> int:
    from codewhale import __version__

    sys.stdout.write(f"{program} {__version__}\n")
    return 0
