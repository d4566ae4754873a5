"""Undo over a real workspace: what the agent did goes, what others did stays, and what cannot go is told."""

import asyncio
import os
import random
import shutil
import stat
from pathlib import Path

import msgspec
import pytest

from codewhale.protocol.events import Notice
from codewhale.protocol.tools import CommandSubject, PathSubject
from codewhale.workspace.undo import UndoRefusal
from codewhale.workspace.undo.journal import SnapshotError
from support.repos import make_repo, raw_git
from support.undoing import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_what_an_edit_and_a_command_did_is_taken_back_byte_for_byte(scene: Scene) -> None:
    scene.write("a.py", "one\r\ntwo\r\nno end", 0o640)
    scene.write("bin/tool", b"\x00\x01\xff", 0o755)
    scene.write("old.txt", "old\n")
    os.symlink("a.py", scene.root / "link")
    was = scene.tree()
    await scene.edit("a.py", "changed\n")
    await scene.edit("new/deep/file.txt", "new\n")
    await scene.shell("mv old.txt renamed.txt; chmod 600 bin/tool; printf x >> bin/tool; rm link; ln -s bin link; > b")
    done = await scene.take_back()
    assert scene.tree() == was and done.refused == ()
    assert not (scene.root / "new").exists()
    assert {change.path for change in done.changes} == {
        "a.py", "new/deep/file.txt", "old.txt", "renamed.txt", "bin/tool", "link", "b"
    }  # fmt: skip


async def test_what_others_changed_meanwhile_stays_and_a_touched_hunk_is_told(scene: Scene) -> None:
    lines = [f"line {n}\n" for n in range(1, 21)]
    scene.write("a.txt", "".join(lines))
    await scene.edit("a.txt", "".join(["AGENT TOP\n", *lines[:9], "agent ten\n", *lines[10:]]))
    text = scene.read("a.txt").decode().replace("agent ten", "mine ten").replace("line 20", "person 20")
    scene.write("a.txt", text)
    scene.write("mine.txt", "a person's file\n")
    plan = await scene.plan()
    assert plan.refused == (UndoRefusal("a.txt", "these lines were changed since", (10, 9)),)
    assert scene.read("a.txt").decode() == text
    done = await scene.undo.carry_out(plan)
    assert scene.read("a.txt").decode() == text.replace("AGENT TOP\n", "")
    assert scene.read("mine.txt") == b"a person's file\n" and done.refused == plan.refused


async def test_turns_are_taken_back_one_by_one_or_together_and_an_undo_itself_too(scene: Scene) -> None:
    scene.write("a", "0\n")
    for scene.turn in (1, 2, 3):
        await scene.edit("a", f"{scene.turn}\n")
    root = str(scene.root)
    assert [turn.number for turn in await scene.undo.turns("s", root)] == [3, 2, 1]
    await scene.take_back()
    assert scene.read("a") == b"2\n"
    scene.fresh()
    assert [turn.number for turn in await scene.undo.turns("s", root)] == [2, 1]
    await scene.take_back(2)
    assert scene.read("a") == b"0\n" and await scene.undo.turns("s", root) == ()
    last = await scene.undo.last_undo("s", root)
    assert last is not None
    await scene.undo.carry_out(await scene.undo.plan("s", root, last.since))
    assert scene.read("a") == b"2\n"
    assert [turn.number for turn in await scene.undo.turns("s", root)] == [2, 1]
    await scene.edit("a", "4\n")
    assert await scene.undo.last_undo("s", root) is None


async def test_what_another_session_did_is_not_taken_back(scene: Scene) -> None:
    scene.write("a", "1\n2\n3\n4\n5\n")
    await scene.edit("a", "ours\n2\n3\n4\n5\n", "s")
    await scene.edit("a", "ours\n2\n3\n4\ntheirs\n", "other")
    done = await scene.take_back(session="s")
    assert scene.read("a") == b"1\n2\n3\n4\ntheirs\n" and not done.refused


async def test_what_another_session_writes_while_a_command_runs_is_not_the_commands(scene: Scene) -> None:
    scene.write("a", "1\n")
    scene.write("b", "1\n")
    call = scene.view("exec_shell", CommandSubject("sleep"), "s")
    await scene.undo.before(call)
    await scene.edit("a", "theirs\n", "other")
    scene.write("b", "by the command\n")
    await scene.undo.after(call, None)
    await scene.take_back(session="s")
    assert (scene.read("a"), scene.read("b")) == (b"theirs\n", b"1\n")


async def test_a_file_a_person_deleted_stays_deleted_and_one_made_anew_is_theirs(scene: Scene) -> None:
    for name in ("gone", "anew", "created"):
        if name != "created":
            scene.write(name, f"{name}\n")
    await scene.edit("gone", "agent\n")
    await scene.shell("rm anew")
    await scene.edit("created", "agent\n")
    (scene.root / "gone").unlink()
    scene.write("anew", "person\n")
    scene.write("created", "agent\nperson\n")
    done = await scene.take_back()
    assert scene.tree().keys() == {"anew", "created"}
    assert scene.read("anew") == b"person\n" and scene.read("created") == b"agent\nperson\n"
    assert [(one.path, one.reason) for one in done.refused] == [
        ("anew", "it was deleted by the agent, and created again since"),
        ("created", "it was created by the agent, and changed since"),
    ]


async def test_a_file_changed_by_both_and_deleted_last_comes_back_with_the_persons_part(scene: Scene) -> None:
    scene.write("a", "1\n2\n3\n")
    await scene.edit("a", "agent\n2\n3\n")
    scene.write("a", "agent\n2\nperson\n")
    await scene.shell("rm a")
    await scene.take_back()
    assert scene.read("a") == b"1\n2\nperson\n"


async def test_a_binary_file_that_both_changed_is_left_as_the_person_left_it(scene: Scene) -> None:
    scene.write("a", b"\x00one")
    await scene.edit("a", b"\x00two")
    scene.write("a", b"\x00three")
    await scene.edit("a", b"\x00four")
    done = await scene.take_back()
    assert scene.read("a") == b"\x00three" and [one.path for one in done.refused] == ["a"]


async def test_a_mode_that_the_agent_set_goes_and_one_that_a_person_set_stays(scene: Scene) -> None:
    scene.write("a", "1\n", 0o644)
    scene.write("b", "1\n", 0o644)
    await scene.shell("chmod 755 a b; echo agent >> b")
    (scene.root / "b").chmod(0o600)
    await scene.take_back()
    assert [scene.tree()[name][1:] for name in "ab"] == [(b"1\n", 0o644), (b"1\n", 0o600)]


async def test_ignored_files_are_never_touched_also_when_they_come_to_sight(scene: Scene) -> None:
    make_repo(scene.root, {".gitignore": "*.log\nenv\n", "a": "1\n"})
    scene.write("x.log", "a person's log\n")
    scene.write("env", "SECRET=1\n")
    await scene.shell("echo more >> x.log; echo > .gitignore; echo new > made; echo 2 > a")
    await scene.take_back()
    assert scene.read(".gitignore") == b"*.log\nenv\n" and scene.read("a") == b"1\n"
    assert scene.read("x.log") == b"a person's log\nmore\n"
    assert scene.read("env") == b"SECRET=1\n" and not (scene.root / "made").exists()


async def test_the_repository_is_not_touched_wherever_it_is(scene: Scene) -> None:
    make_repo(scene.root, {"a": "1\n"})
    (scene.root / ".git").rename(scene.root / ".bare")
    (scene.root / ".git").write_text("gitdir: .bare\n")
    scene.write("inner/x", "1\n")
    raw_git(scene.root / "inner", "init", "-q")
    head = raw_git(scene.root, "rev-parse", "HEAD")
    await scene.shell("echo 2 > a; git -c user.name=a -c user.email=a@b commit -qam two; echo x > inner/x")
    moved = raw_git(scene.root, "rev-parse", "HEAD")
    status = {name: data for name, data in scene.tree().items() if name.startswith((".bare/", "inner/.git/", ".git"))}
    await scene.take_back()
    after = {name: data for name, data in scene.tree().items() if name.startswith((".bare/", "inner/.git/", ".git"))}
    assert (scene.read("a"), scene.read("inner/x")) == (b"1\n", b"1\n")
    assert moved != head and after == status and raw_git(scene.root, "rev-parse", "HEAD") == moved


async def test_what_was_changed_after_the_plan_was_seen_is_left_and_told(scene: Scene) -> None:
    scene.write("a", "1\n")
    scene.write("b", "1\n")
    await scene.shell("echo 2 > a; echo 2 > b")
    plan = await scene.plan()
    scene.write("a", "person\n")
    done = await scene.undo.carry_out(plan)
    assert (scene.read("a"), scene.read("b")) == (b"person\n", b"1\n")
    assert done.refused == (UndoRefusal("a", "it was changed just now"),)


async def test_a_call_that_was_cut_short_is_written_down_and_a_reading_one_costs_nothing(scene: Scene) -> None:
    scene.write("a", "1\n")
    call = scene.view("exec_shell", CommandSubject("..."))
    await scene.undo.before(call)
    scene.write("a", "half\n")
    await scene.undo.after(call, None)
    await scene.take_back()
    assert scene.read("a") == b"1\n"


async def test_a_cancelled_undo_is_done_to_its_end_and_written_down(scene: Scene) -> None:
    for n in range(40):
        scene.write(f"f{n}", "1\n")
    await scene.shell("for f in f*; do echo 2 > $f; done")
    task = asyncio.ensure_future(scene.undo.carry_out(await scene.plan()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert {data for _, data, _ in scene.tree().values()} == {b"1\n"}
    assert await scene.undo.last_undo("s", str(scene.root)) is not None


async def test_without_git_the_calls_run_and_the_person_is_told_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for _ in range(2):
        call = scene.view("write_file", PathSubject("a", write=True))
        assert await scene.undo.before(call) is None
        assert await scene.undo.after(call, None) is None
    (notice,) = scene.told
    assert isinstance(notice, Notice) and "git is not installed" in notice.text
    with pytest.raises(SnapshotError):
        await scene.undo.turns("s", str(scene.root))


async def test_a_state_directory_inside_the_workspace_is_none_of_its_business(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.root = tmp_path
    scene.write("a", "1\n")
    await scene.shell("echo 2 > a; echo x > home/theirs")
    await scene.take_back()
    assert scene.read("a") == b"1\n" and scene.read("home/theirs") == b"x\n"


async def test_a_file_in_the_place_of_a_folder_and_the_other_way_round(scene: Scene) -> None:
    scene.write("d/x", "1\n")
    scene.write("f", "1\n")
    was = scene.tree()
    await scene.shell("rm -r d; echo file > d; rm f; mkdir f; echo deep > f/y")
    await scene.take_back()
    assert scene.tree() == was


async def test_b11_nothing_is_written_through_a_link(scene: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("not yours\n")
    (outside / "y").write_text("not yours\n")
    scene.write("d/x", "1\n")
    scene.write("y", "1\n")
    await scene.shell("echo 2 > d/x; echo 2 > y; echo 2 > d/new")
    plan = await scene.plan()
    shutil.rmtree(scene.root / "d")
    os.symlink(outside, scene.root / "d")
    (scene.root / "y").unlink()
    os.symlink(outside / "y", scene.root / "y")
    done = await scene.undo.carry_out(plan)
    assert {one.path for one in done.refused} == {"d/x", "d/new", "y"} and not done.changes
    done = await scene.take_back()
    assert sorted(os.listdir(outside)) == ["x", "y"]
    assert {(outside / name).read_text() for name in "xy"} == {"not yours\n"}


async def test_b11_nothing_is_written_into_a_repository(scene: Scene) -> None:
    make_repo(scene.root, {"a": "1\n"})
    config = (scene.root / ".git" / "config").read_bytes()
    await scene.shell(
        "echo 2 > a; echo '[core] fsmonitor = touch PWNED' >> .git/config; mkdir .codewhale; > .codewhale/x"
    )
    changed = (scene.root / ".git" / "config").read_bytes()
    plan = await scene.plan()
    assert [one.path for one in plan.files] == ["a"]
    for path in (".git/config", ".GIT/config", "sub/.git/hooks/post-checkout", ".codewhale/x"):
        taking = type(plan.files[0])(path, None, plan.files[0].then)
        forged = type(plan)(plan.session, plan.workspace, plan.since, (taking,), ())
        done = await scene.undo.carry_out(forged)
        assert not done.changes and done.refused
    assert (scene.root / ".git" / "config").read_bytes() == changed != config
    assert not (scene.root / "PWNED").exists()


async def test_attributes_and_filters_of_the_project_change_no_byte(scene: Scene) -> None:
    attributes = "* text=auto eol=crlf\n*.x filter=evil ident working-tree-encoding=UTF-16\n"
    make_repo(scene.root, {"a.x": "$Id$\none\n"})
    scene.write(".gitattributes", attributes)
    raw_git(scene.root, "config", "filter.evil.clean", "touch PWNED; cat")
    raw_git(scene.root, "config", "filter.evil.smudge", "touch PWNED; cat")
    scene.write("b.x", "mixed\r\nlines\n$Id$")
    was = {name: data for name, data in scene.tree().items() if not name.startswith(".git/")}
    await scene.shell("echo 2 > a.x; echo 2 > b.x")
    await scene.take_back()
    assert {name: data for name, data in scene.tree().items() if not name.startswith(".git/")} == was


async def test_files_of_secrets_are_kept_where_the_agent_wrote_them_by_name_alone(scene: Scene) -> None:
    scene.write(".env", "TOKEN=first-canary\n")
    scene.write("id_rsa", "second-canary\n")
    await scene.shell("echo TOKEN=third > .env; rm id_rsa; echo made-canary > .env.local; echo x > plain")
    done = await scene.take_back()
    assert [change.path for change in done.changes] == ["plain"]
    assert {one.path for one in done.refused} == {".env", ".env.local", "id_rsa"}
    assert all("looks like a file of secrets" in one.reason for one in done.refused)
    assert scene.read(".env.local") == b"made-canary\n"
    (folder,) = (scene.home / "snapshots").iterdir()
    kept = raw_git(folder, "cat-file", "--batch-all-objects", "--batch")
    assert b"canary" not in kept and b"third" not in kept and b"x\n" in kept
    await scene.edit(".env", "TOKEN=by-name\n")
    await scene.shell("echo TOKEN=again > .env")
    await scene.take_back()
    assert scene.read(".env") == b"TOKEN=third\n"


async def test_the_journal_is_for_its_owner_alone_whatever_the_umask(scene: Scene) -> None:
    was = os.umask(0)
    try:
        scene.write("a", "1\n")
        await scene.shell("echo 2 > a")
        await scene.take_back()
        await scene.undo.aclose()
    finally:
        os.umask(was)
    open_to_others = [path for path in scene.home.rglob("*") if path.stat().st_mode & 0o077]
    assert [path for path in open_to_others if path.name != "snapshots"] == []


class Play:
    """Fifty random edits by agent, command and person in files whose every line says who wrote it."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.dice = random.Random(seed)
        self.count = 0
        self.names = [f"f{n}.txt" for n in range(4)]
        self.deleted = set[bytes]()
        for index, name in enumerate(self.names):
            end = "\r\n" if index % 2 else "\n"
            scene.write(name, "".join(f"base {name} {n}{end}" for n in range(self.dice.randint(5, 40))))

    def changed(self, name: str, who: str) -> bytes:
        """The file after one edit in one to three places."""
        lines = self.scene.read(name).splitlines(keepends=True) if (self.scene.root / name).exists() else []
        for _ in range(self.dice.randint(1, 3)):
            place = self.dice.randint(0, len(lines))
            come = self.dice.randint(0, 3)
            self.count += come
            new = [f"{who} {self.count - n}\n".encode() for n in range(come)]
            gone = slice(place, place + self.dice.choice((0, 0, 1, 2)))
            self.deleted |= set(lines[gone]) if who == "person" else set()
            lines[gone] = new
        return b"".join(lines)

    async def step(self) -> None:
        """One of the three does something."""
        name = self.dice.choice(self.names)
        match self.dice.choice(("agent", "shell", "person", "person")):
            case "person":
                self.scene.write(name, self.changed(name, "person"))
            case "agent":
                await self.scene.edit(name, self.changed(name, "agent"))
            case _:
                call = self.scene.view("exec_shell", CommandSubject("..."))
                await self.scene.undo.before(call)
                for other in self.dice.sample(self.names, 2):
                    self.scene.write(other, self.changed(other, "agent"))
                await self.scene.undo.after(call, None)


@pytest.mark.parametrize("seed", range(3))
async def test_after_fifty_mixed_edits_the_agents_are_gone_and_the_persons_are_all_there(
    scene: Scene, seed: int
) -> None:
    play = Play(scene, seed)
    for turn in range(50):
        scene.turn = 1 + turn // 5
        await play.step()
    before = {name: scene.read(name).splitlines(keepends=True) for name in play.names}
    turns = await scene.undo.turns("s", str(scene.root))
    done = await scene.take_back(len(turns))
    for name in play.names:
        kept = scene.read(name).splitlines(keepends=True)
        rest = iter(kept)
        assert all(line in rest for line in before[name] if not line.startswith(b"agent"))  # all of them, in order
        assert not play.deleted & set(kept) and len(set(kept)) == len(kept)
        told = [one.lines for one in done.refused if one.path == name and one.lines]
        places = {number for first, last in told for number in range(first, last + 1)}
        assert {number for number, line in enumerate(kept, 1) if line.startswith(b"agent")} <= places
    assert all(stat.S_ISREG((scene.root / name).stat().st_mode) for name in play.names)


async def test_what_a_child_session_did_belongs_to_the_turn_of_its_parent(scene: Scene) -> None:
    scene.write("a", "was\n")
    scene.write("mine", "a person's\n")
    was = scene.tree()
    await scene.edit("a", "parent\n")
    await asyncio.gather(
        scene.edit("b", "child\n", session="child of s"), scene.shell("echo x > c", session="child of s")
    )
    assert not await scene.undo.turns("child of s", str(scene.root))
    (turn,) = await scene.undo.turns("s", str(scene.root))
    assert set(turn.paths) == {"a", "b", "c"}
    done = await scene.take_back()
    assert scene.tree() == was and done.refused == ()


async def test_calls_of_one_id_in_two_sessions_are_told_apart(scene: Scene) -> None:
    views = [
        msgspec.structs.replace(scene.view("write_file", PathSubject(name, write=True), session), call_id="call_1")
        for name, session in (("a", "s"), ("b", "child of s"))
    ]
    for view in views:
        await scene.undo.before(view)
    for view, name in zip(views, "ab", strict=True):
        scene.write(name, name)
        await scene.undo.after(view, None)
    (turn,) = await scene.undo.turns("s", str(scene.root))
    assert set(turn.paths) == {"a", "b"}
