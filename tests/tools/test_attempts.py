"""pr_attempt_*: the whole diff as a patch that applies elsewhere, kept beside a repository that nothing touches."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.events import AttemptRecorded
from codewhale.protocol.modes import Authority
from codewhale.services.testruns.tree import tree_hash
from codewhale.testing import harness
from codewhale.workspace import worktreepatch
from support.jail import call
from support.repos import make_repo, raw_git
from support.scenes import only, results

BINARY = bytes(range(256)) * 8


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {"kept.txt": "one\ntwo\nthree\n", "gone.txt": "gone\n", "staged.txt": "a\n", ".gitignore": "*.log\n"}
    made = make_repo(tmp_path / "repo", files)
    (made / "kept.txt").write_text("one\nTWO\nthree\n")
    (made / "gone.txt").unlink()
    (made / "staged.txt").write_text("staged\n")
    raw_git(made, "add", "staged.txt")
    (made / "new dir").mkdir()
    (made / "new dir" / "späte.bin").write_bytes(BINARY)
    (made / "run.sh").write_text("#!/bin/sh\n")
    (made / "run.sh").chmod(0o755)
    (made / "built.log").write_text("no\n")
    return made


def everything(repo: Path) -> dict[str, tuple[int, bytes]]:
    """All files of a work tree and its repository, with mode, bytes and time."""
    files = (path for path in repo.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


async def played(home: Path, repo: Path, *calls: dict[str, Any], environ: dict[str, str] | None = None) -> Any:
    find = call("tool_search_tool_regex", query="^pr_attempt")
    script = [{"calls": [find]}, *({"calls": [one]} for one in calls), {"text": "."}]
    async with harness(home, repo, script, environ) as stage:
        events = await stage.turn("Go.", await stage.open(authority=Authority.HEADLESS))
        return events, results(events)[1:]


async def test_an_attempt_holds_all_that_differs_and_nothing_is_touched(home: Path, repo: Path, tmp_path: Path) -> None:
    base, before = raw_git(repo, "rev-parse", "HEAD").decode().strip(), everything(repo)
    record = call("pr_attempt_record", summary="Try it", verification=["make test"])
    events, (kept, listed) = await played(home, repo, record, call("pr_attempt_list"))
    assert only(events, AttemptRecorded), [one.content for one in results(events)]
    (attempt,) = (event.attempt for event in only(events, AttemptRecorded))
    assert everything(repo) == before and kept.ok
    assert attempt.changed_files == ("gone.txt", "kept.txt", "new dir/späte.bin", "run.sh", "staged.txt")
    assert (attempt.base_sha, attempt.base_ref, attempt.task_id, attempt.selected) == (base, "main", None, False)
    assert kept.metadata["task_updates"]["artifacts"][0]["name"] == f"{attempt.id}.patch"
    assert json.loads(listed.content)["attempts"] == [json.loads(kept.content)["attempt"]]
    clone = tmp_path / "clone"
    raw_git(tmp_path, "clone", "-q", str(repo), str(clone))
    raw_git(clone, "apply", "--index", attempt.patch_path)
    assert (clone / "new dir" / "späte.bin").read_bytes() == BINARY and (clone / "run.sh").stat().st_mode & 0o100
    assert (clone / "kept.txt").read_text() == "one\nTWO\nthree\n" and not (clone / "gone.txt").exists()
    assert (clone / "staged.txt").read_text() == "staged\n" and not (clone / "built.log").exists()


async def test_a_preflight_says_how_it_would_apply_and_changes_nothing(home: Path, repo: Path) -> None:
    kept: list[str] = []
    check = lambda request: {"calls": [call("pr_attempt_preflight", attempt_id=kept[0])]}  # noqa: E731
    script = [{"calls": [call("tool_search_tool_regex", query="^pr_")]}]
    script += [{"calls": [call("pr_attempt_record", summary="Try it")]}, {"text": "."}]
    said = []
    async with harness(home, repo, [*script, *[check, {"text": "."}] * 3]) as stage:
        session = await stage.open(authority=Authority.HEADLESS)
        kept += [one.attempt.id for one in only(await stage.turn("Go.", session), AttemptRecorded)]
        for text in ("", "one\ntwo\nthree\n", "quite another\n"):
            if text:
                raw_git(repo, "reset", "-q", "--hard")
                raw_git(repo, "clean", "-fdq")
                (repo / "kept.txt").write_text(text)
            before = everything(repo), (await tree_hash(str(repo))).sha256
            (found,) = results(await stage.turn("Check.", session))
            said.append(json.loads(found.content))
            assert (everything(repo), (await tree_hash(str(repo))).sha256) == before
    assert [(one["would_apply"], one["exit_code"], one["worktree"]) for one in said] == [
        (True, 0, "already applied"), (True, 0, "applies"), (True, 0, "conflicts"),
    ]  # fmt: skip
    assert "kept.txt" in said[2]["worktree_conflict"] and not any(one["mutated_worktree"] for one in said)


async def test_an_attempt_of_a_session_is_put_on_the_task_that_it_names(home: Path, repo: Path) -> None:
    seen: list[str] = []

    def on_task(name: str, **more: Any) -> Any:
        def turn(request: dict[str, Any]) -> dict[str, Any]:
            told = str(request["messages"])
            seen.append(re.findall(r"task_[0-9a-f]{8}", told)[0])
            return {"calls": [call(name, task_id=seen[0][:9], **more)]}

        return turn

    find = {"calls": [call("tool_search_tool_regex", query="^(pr_attempt|task_)")]}
    script = [find, {"calls": [call("task_create", prompt="Wait")]}, on_task("pr_attempt_record", summary="Try it")]
    script += [on_task("pr_attempt_list"), on_task("task_read"), {"text": "."}]
    async with harness(home, repo, script) as stage:
        events = await stage.turn("Go.", await stage.open(authority=Authority.AUTO))
    (attempt,), (listed, read) = only(events, AttemptRecorded), results(events)[-2:]
    assert attempt.attempt.task_id == seen[0] == json.loads(listed.content)["task_id"]
    record = json.loads(read.content)
    assert [one["id"] for one in record["attempts"]] == [attempt.attempt.id] == listed.metadata["attempts"]
    assert [one["name"] for one in record["artifacts"]] == [f"{attempt.attempt.id}.patch"]


async def test_what_goes_wrong_says_what_to_do(
    home: Path, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = call("pr_attempt_record", summary="x")
    wrong = [
        call("pr_attempt_read", attempt_id="attempt_00000000"), call("pr_attempt_preflight", attempt_id="../x"),
        call("pr_attempt_list", task_id="task_nothing"),
        {**record, "arguments": {"summary": "x", "attempt_index": 2, "attempt_count": 1}},
    ]  # fmt: skip
    _, found = await played(home, repo, *wrong)
    for result, field in zip(found, ("attempt_id", "attempt_id", "task_id", "attempt_index"), strict=True):
        assert not result.ok and result.metadata["error"]["field"] == field
    assert "pr_attempt_list {}" in found[0].content
    monkeypatch.setattr(worktreepatch, "MOST_PATCH", 1000)
    _, (large,) = await played(home, repo, record)
    assert not large.ok and "The patch is larger" in large.content
    (repo / "kept.txt").write_text("key = sk-0123456789abcdefX\n")
    monkeypatch.undo()
    _, (secret,) = await played(home, repo, record, environ={"MY_API_KEY": "sk-0123456789abcdefX"})
    raw_git(repo, "add", "-A")
    raw_git(repo, "commit", "-q", "-m", "All")
    _, (empty,) = await played(home, repo, record)
    (tmp_path / "bare").mkdir()
    _, (outside,) = await played(home, tmp_path / "bare", record)
    for result, words in ((secret, "holds a secret"), (empty, "does not differ"), (outside, "not inside a git")):
        assert not result.ok and words in result.content
    assert b"sk-0123" not in b"".join(path.read_bytes() for path in (home / "artifacts").rglob("*") if path.is_file())


async def test_before_the_first_commit_and_below_the_root(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "fresh"
    (root / "sub").mkdir(parents=True)
    raw_git(root, "init", "-q", "--template=")
    (root / "above.txt").write_text("above\n")
    (root / "sub" / "in.txt").write_text("in\n")
    events, (kept,) = await played(home, root / "sub", call("pr_attempt_record", summary="x"))
    assert only(events, AttemptRecorded), [one.content for one in results(events)]
    (attempt,) = (event.attempt for event in only(events, AttemptRecorded))
    assert kept.ok and (attempt.base_sha, attempt.changed_files) == ("", ("sub/in.txt",))
    patch = ArtifactStore(str(home / "artifacts")).get(attempt.patch_sha256)
    assert b"+in" in patch and b"above" not in patch
