"""Declaring slash commands and finding them: lazily, by name, with their words."""

import pytest

from codewhale.commands.base import CommandContext, CommandRegistry, bound, command
from codewhale.protocol.ops import CommandOutput

HERE = CommandContext("session", "/work")


class EchoCommands:
    """Two commands."""

    @command("/echo", "TEXT")
    async def echo(self, args: str, context: CommandContext) -> CommandOutput:
        """Say it again.

        Not shown in help.
        """
        return CommandOutput(f"{args}|{context.session}|{context.workspace}")

    @command("/quiet")
    async def quiet(self, args: str, context: CommandContext) -> CommandOutput:
        """Say nothing."""
        return CommandOutput("", ok=False)


def registry(built: list[str]) -> CommandRegistry:
    """The two commands; `built` notes each time a family is asked for."""

    def family() -> object:
        built.append("echo")
        return EchoCommands()

    return CommandRegistry({"/quiet": "echo", "/echo": "echo"}, lambda: {"echo": family})


def test_a_family_declares_its_commands() -> None:
    found = bound(EchoCommands())
    assert sorted(found) == ["/echo", "/quiet"]
    spec = found["/echo"].spec
    assert (spec.name, spec.usage, spec.summary) == ("/echo", "TEXT", "Say it again.")


async def test_all_commands_are_listed_by_name() -> None:
    assert [spec.name for spec in await registry([]).specs("/work")] == ["/echo", "/quiet"]


@pytest.mark.parametrize(
    ("line", "said"),
    [("/echo", ""), ("/echo a  b", "a  b"), ("  /echo  a ", "a"), ("/echo\ta", "a"), ("/echo a\nb", "a\nb")],
)
async def test_a_line_is_a_name_and_the_rest(line: str, said: str) -> None:
    assert (await registry([]).run(line, HERE)).text == f"{said}|session|/work"


async def test_a_family_is_asked_for_only_when_its_command_runs() -> None:
    built: list[str] = []
    commands = registry(built)
    assert (await commands.run("/nothing", HERE)).ok is False
    assert built == []
    assert (await commands.run("/quiet", HERE)).ok is False
    assert built == ["echo"]


@pytest.mark.parametrize("line", ["/nothing at all", "", "echo", "/Echo"])
async def test_an_unknown_command_is_answered_with_those_there_are(line: str) -> None:
    output = await registry([]).run(line, HERE)
    assert not output.ok
    assert "/echo, /quiet" in output.text
