"""The palette over commands, keys, sessions, files, models and tools."""

from codewhale.app.families import COMMANDS
from codewhale.display.words import catalogue
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import ListSessions, SetModel
from codewhale.protocol.views import FileMatch, FindFiles, GetTools, ListCommands, ListModels, ListServers, ServerRow
from codewhale.tui.commands import GROUPS, OWN, group_of
from codewhale.tui.screens.context import (
    InsertText,
    OpenPath,
    OpenScreen,
    Resume,
    RunAction,
    RunLine,
    ShowLine,
)
from support.tuirecord import until
from support.tuiscreens import HOSTILE, SESSION, command, model, opened, session, tools_view

ANSWERS = {
    ListCommands: (
        command(),
        command("/search", "QUERY", "Find code by what it does."),
        command("/jobs", "[list]", "List the jobs."),
    ),
    ListModels: (model(), model("parrot-9", ready=False, why="There is no key."), model("grey-2", current=True)),
    GetTools: tools_view("read_file", "edit_file"),
    ListSessions: (session(1), session(2)),
    FindFiles: lambda query: (FileMatch(f"src/{query.text}.py", 2.0), FileMatch("src/other.py", 1.0)),
}


async def best(stage, sought: str, key: str) -> None:
    """Type, and wait for the row of a key to be under the cursor."""
    await stage.type(sought)
    await until(stage.pilot, lambda: stage.screen.list.current is not None and stage.screen.list.current.key == key)


async def test_everything_is_there_in_groups() -> None:
    async with opened("palette", ANSWERS, size=(100, 80)) as stage:
        await stage.shown("Commands", "/mode    Show the mode.", "Keys", "Sessions", "crane 1")
        groups = {item.group for item in stage.screen.list.items}
        assert groups == {"Session", "Permissions", "Project", "Keys", "Sessions", "Models", "Tools"}


async def test_columns_stand_in_line_and_keys_at_the_right() -> None:
    async with opened("palette", ANSWERS, size=(100, 60)) as stage:
        lines = (await stage.shown("alt+j", "shift+tab")).splitlines()
        jobs, mode = (next(line for line in lines if line[:60].count(name)) for name in ("/jobs", "/mode"))
        assert jobs.index("List the jobs.") == mode.index("Show the mode.")
        assert jobs.index("alt+j") + len("alt+j") == mode.index("shift+tab") + len("shift+tab")


def test_every_command_has_a_group() -> None:
    assert [name for name in (*COMMANDS, *OWN) if group_of(name) == "other"] == []
    assert group_of("/of-a-persons-own") == "other"
    assert {key.removeprefix("commands_") for key in catalogue("en", "palette") if key[:9] == "commands_"} == {*GROUPS}


async def test_a_command_runs_or_waits_for_its_argument() -> None:
    for sought, key, outcome in (
        ("/mode", "command:/mode", RunLine("/mode")),
        ("/sea", "command:/search", InsertText("/search ")),
        ("/jobs", "command:/jobs", OpenScreen("jobs")),
    ):
        async with opened("palette", ANSWERS) as stage:
            await best(stage, sought, key)
            await stage.press("enter")
            assert await stage.done() == outcome
            assert list(stage.context.recent) == [key]


async def test_a_command_that_is_not_listed_runs_as_typed() -> None:
    async with opened("palette", ANSWERS | {FindFiles: ()}) as stage:
        await stage.type("/xyzzy now")
        await stage.shown("No match.")
        await stage.press("enter")
        assert await stage.done() == RunLine("/xyzzy now")


async def test_files_are_found_as_they_are_typed() -> None:
    async with opened("palette", ANSWERS) as stage:
        await best(stage, "qqq", "file:src/qqq.py")
        await stage.shown("Files", "src/qqq.py")
        await stage.press("enter")
        assert await stage.done() == InsertText("@src/qqq.py ")


async def test_files_stay_when_all_else_comes_later() -> None:
    async with opened("palette", ANSWERS) as stage:
        await best(stage, "qqq", "file:src/qqq.py")
        await stage.press("down")
        stage.screen.action_reload()
        await stage.host.workers.wait_for_complete()
        await stage.shown("src/qqq.py", "src/other.py")
        assert stage.screen.list.current.key == "file:src/other.py"


async def test_the_other_key_opens_inserts_and_forks() -> None:
    for sought, key, outcome in (
        ("qqq", "file:src/qqq.py", OpenPath("src/qqq.py")),
        ("/mode", "command:/mode", InsertText("/mode ")),
        ("crane 2", "session:s-0002", Resume("s-0002", fork=True)),
    ):
        async with opened("palette", ANSWERS) as stage:
            await best(stage, sought, key)
            await stage.press("alt+f")
            assert await stage.done() == outcome


async def test_keys_sessions_and_tools_lead_on() -> None:
    for sought, key, outcome in (
        ("next theme", "action:app.theme", RunAction("app.theme")),
        ("crane 1", "session:s-0001", Resume("s-0001")),
        ("edit_file", "tool:edit_file", OpenScreen("tools", "edit_file")),
        ("parrot-9", "model:parrot/parrot-9", OpenScreen("firstrun", "parrot")),
    ):
        async with opened("palette", ANSWERS) as stage:
            await best(stage, sought, key)
            await stage.press("enter")
            assert await stage.done() == outcome


async def test_a_model_is_used() -> None:
    async with opened("palette", ANSWERS) as stage:
        await best(stage, "grey-1", "model:parrot/grey-1")
        await stage.press("enter")
        assert await stage.done() == ShowLine("Model: grey-1 at parrot")
        assert stage.client.ops == [SetModel(SESSION, "grey-1", "parrot")]


async def test_a_model_that_is_refused_is_said() -> None:
    async with opened("palette", ANSWERS | {SetModel: CodeWhaleError("A turn is running.")}) as stage:
        await best(stage, "grey-1", "model:parrot/grey-1")
        await stage.press("enter")
        await stage.shown("A turn is running.")
        await stage.press("escape")
        assert await stage.done() is None


async def test_what_was_chosen_last_comes_first() -> None:
    async with opened("palette", ANSWERS) as stage:
        stage.context.recent.extend(["file:src/a.py", "command:/mode", "command:/gone"])
        await stage.press("f5")
        await stage.shown("Recent", "src/a.py")
        keys = [item.key for item in stage.screen.list.items if item.group == "Recent"]
        assert keys == ["recent:command:/mode", "recent:file:src/a.py"]
        await until(stage.pilot, lambda: stage.screen.list.items[0].key == "recent:command:/mode")
        await best(stage, "a.py", "recent:file:src/a.py")
        await stage.press("enter")
        assert await stage.done() == InsertText("@src/a.py ")
        assert stage.context.recent[0] == "file:src/a.py"


async def test_one_group_that_fails_leaves_the_others() -> None:
    broken = {ListModels: CodeWhaleError("no models"), ListSessions: OSError("no disk"), FindFiles: OSError("no index")}
    async with opened("palette", ANSWERS | broken) as stage:
        await stage.shown("/mode")
        await stage.type("/mode")
        await stage.shown("no index", "/mode")
        await stage.press("enter")
        assert await stage.done() == RunLine("/mode")


async def test_hostile_names_are_only_text() -> None:
    answers = ANSWERS | {
        ListCommands: (command(HOSTILE, "", HOSTILE),),
        ListSessions: (session(1, title=HOSTILE),),
        FindFiles: (FileMatch(HOSTILE, 1.0),),
    }
    async with opened("palette", answers) as stage:
        await stage.shown("[bold]x[/]")
        stage.clean()
        await stage.type("bold")
        await stage.shown("Files")
        stage.clean()


async def test_servers_are_listed_with_what_they_offer_also_those_that_cannot_be_used() -> None:
    file = "/home/me/.codewhale/mcp.json"
    servers = (
        ServerRow("notes", file, "user", "stdio", "python notes.py", "ready", tools=(("mcp_notes_add", "add", "Add."),),
                  prompts=(("weekly", "Sum up."),), resources=(("notes://all", "All notes."),), since="2026"),
        ServerRow("old", file, "user", "stdio", "old", "off"),
        ServerRow("broken", file, "user", "http", "https://example.com", "failed", error="It did not answer."),
    )  # fmt: skip
    async with opened("palette", {**ANSWERS, ListServers: servers}, size=(110, 90)) as stage:
        await until(stage.pilot, lambda: any(item.key == "server:broken" for item in stage.screen.list.items))
        items = {item.key: item for item in stage.screen.list.items}
        assert items["server:broken"].detail == "failed: It did not answer." and items["server:old"].detail == "off"
        assert {"prompt:notes/weekly", "resource:notes/notes://all"} <= items.keys()
        assert items["served:mcp_notes_add"].value == RunLine("/mcp show notes")
