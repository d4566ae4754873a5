"""What a usage allows behind the words of a command line."""

import pytest

from codewhale.commands.base import CommandSpec
from codewhale.commands.completing import complete
from codewhale.protocol.usage import expected
from codewhale.protocol.views import Choice


@pytest.mark.parametrize(
    ("usage", "before", "found"),
    [
        ("[plan|agent|yolo]", [], ["plan", "agent", "yolo"]),
        ("[plan|agent|yolo]", ["plan"], []),
        ("[[PROVIDER] MODEL]", [], ["PROVIDER", "MODEL"]),
        ("[[PROVIDER] MODEL]", ["deepseek"], ["MODEL"]),
        ("[list | allow|ask|deny COMMAND | remove ROW]", [], ["list", "allow", "ask", "deny", "remove"]),
        ("[list | allow|ask|deny COMMAND | remove ROW]", ["ask"], ["COMMAND"]),
        ("[list | allow|ask|deny COMMAND | remove ROW]", ["list"], []),
        ("[list|show|wait] [ID] [...]", ["show"], ["ID"]),
        ("[add|remove FILE...]", ["add"], ["FILE"]),
        ("[N|back] [preview|yes]", ["3"], ["preview", "yes"]),
        ("[KEY | set KEY VALUE]", ["set", "tui.theme"], ["VALUE"]),
        ("", [], []),
        ("[json] QUERY", ["json"], ["QUERY"]),
    ],
)
def test_a_usage_tells_what_comes_next(usage: str, before: list[str], found: list[str]) -> None:
    assert expected(usage, before) == found


async def test_beginnings_come_before_what_holds_the_letters() -> None:
    specs = [
        CommandSpec("/compact", "", "Say it shorter."),
        CommandSpec("/mode", "", ""),
        CommandSpec("/comet", "", ""),
    ]
    found = await complete("/com", specs, {}, "s")
    assert found == [Choice("/compact", "Say it shorter."), Choice("/comet")]
    assert [one.value for one in await complete("/", specs, {}, "s")] == ["/compact", "/mode", "/comet"]
    assert await complete("mode", specs, {}, "s") == [Choice("/mode")]
