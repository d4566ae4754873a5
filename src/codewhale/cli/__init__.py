"""Argument parsing, sub-commands, choosing a frontend. Imports inside functions keep start-up lean: nothing but
what the sub-command at hand needs is loaded."""

import sys

_TUI_HELP = """usage: codewhale-tui [--version] [--help]

The full-screen interface is not part of this version. Give a prompt to the headless one:

  codewhale exec "fix the failing test"
  codewhale exec --help
"""


def main() -> int:
    """The `codewhale` program; returns its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        return _version("codewhale")
    try:
        from codewhale.cli.dispatch import run

        return run(arguments)
    except KeyboardInterrupt:
        return 130


def tui() -> int:
    """The `codewhale-tui` program; returns its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        return _version("codewhale-tui")
    if arguments in (["--help"], ["-h"]):
        sys.stdout.write(_TUI_HELP)
        return 0
    sys.stderr.write(_TUI_HELP.partition("\n\n")[2])
    return 2


def _version(program: str) -> int:
    from codewhale import __version__

    sys.stdout.write(f"{program} {__version__}\n")
    return 0
