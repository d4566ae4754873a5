"""Servers of the Model Context Protocol.

`codewhale mcp serve` offers this workspace to other programs.
"""

import argparse

from codewhale.cli import mcpserve


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = __doc__
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    mcpserve.build(actions.add_parser("serve", help="offer this workspace's tools to other programs"))


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    return mcpserve.run(args)
