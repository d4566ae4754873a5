from pathlib import Path

import msgspec
import pytest

from codewhale.protocol.blocks import ChecklistBlock
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import Effect
from codewhale.session.lists import Lists
from codewhale.tools.base import bound, specs
from codewhale.tools.work import WorkTools
from support.calls import call, context, payload, refused


@pytest.fixture
def work() -> WorkTools:
    return WorkTools(Lists())


def todos(*pairs: tuple[str, str]) -> dict[str, object]:
    return {"todos": [{"content": content, "status": status} for content, status in pairs]}


def test_checklist_write_replaces_the_list_and_says_how_it_stands(work: WorkTools) -> None:
    call(work, "checklist_write", todos(("old", "pending")))
    result = call(work, "checklist_write", todos(("a", "completed"), ("b", "in_progress"), ("c", "pending")))
    assert payload(result) == {
        "items": [
            {"id": 1, "content": "a", "status": "completed"},
            {"id": 2, "content": "b", "status": "in_progress"},
            {"id": 3, "content": "c", "status": "pending"},
        ],
        "completion_pct": 33,
        "in_progress_id": 2,
    }
    assert result.content.startswith("Checklist written: 1 of 3 completed.\n")
    assert result.display == (ChecklistBlock((("completed", "a"), ("in_progress", "b"), ("pending", "c"))),)
    update = result.metadata["task_updates"]["checklist"]
    assert {**payload(result), "updated_at": update["updated_at"]} == update


def test_the_last_of_several_in_progress_wins_in_a_checklist(work: WorkTools) -> None:
    found = payload(call(work, "checklist_write", todos(("a", "in_progress"), ("b", "in_progress"))))
    assert [item["status"] for item in found["items"]] == ["pending", "in_progress"]


def test_status_words(work: WorkTools) -> None:
    found = payload(call(work, "checklist_write", todos(("a", "done"), ("b", "inprogress"), ("c", "In-Progress"))))
    assert [item["status"] for item in found["items"]] == ["completed", "pending", "in_progress"]
    found = payload(call(work, "checklist_write", {"todos": [{"content": "a"}]}))
    assert found["items"][0]["status"] == "pending"


@pytest.mark.parametrize(
    ("bad", "field"),
    [(todos(("b", "pending"), ("c", "someday")), "todos[1].status"), (todos(("  ", "pending")), "todos[0].content")],
)
def test_a_bad_item_changes_nothing(work: WorkTools, bad: dict[str, object], field: str) -> None:
    call(work, "checklist_write", todos(("a", "in_progress")))
    error = refused(work, "checklist_write", bad)
    assert (error.kind, error.field) == ("invalid_input", field)
    assert error.look is not None
    listed = call(work, error.look.name, error.look.arguments)
    assert [item["content"] for item in payload(listed)["items"]] == ["a"]


def test_checklist_add_and_update(work: WorkTools) -> None:
    call(work, "checklist_add", {"content": "a", "status": "in_progress"})
    added = payload(call(work, "checklist_add", {"content": "b"}))
    assert (added["items"][1], added["in_progress_id"]) == ({"id": 2, "content": "b", "status": "pending"}, 1)
    moved = payload(call(work, "checklist_update", {"id": 2, "status": "in_progress"}))
    assert ([item["status"] for item in moved["items"]], moved["in_progress_id"]) == (["pending", "in_progress"], 2)
    done = payload(call(work, "checklist_update", {"id": 2, "status": "completed"}))
    assert (done["completion_pct"], done["in_progress_id"]) == (50, None)


def test_an_unknown_id_is_a_soft_failure_that_changes_nothing(work: WorkTools) -> None:
    call(work, "checklist_write", todos(("a", "in_progress")))
    result = call(work, "checklist_update", {"id": 9, "status": "in_progress"})
    assert not result.ok
    assert "1 (a)" in result.content
    assert "task_updates" not in result.metadata
    assert payload(call(work, "checklist_list", {}))["in_progress_id"] == 1


def test_checklist_list_shows_and_changes_nothing(work: WorkTools) -> None:
    empty = call(work, "checklist_list", {})
    assert payload(empty) == {"items": [], "completion_pct": 0, "in_progress_id": None}
    assert "task_updates" not in empty.metadata


def test_lists_of_sessions_are_apart(work: WorkTools) -> None:
    call(work, "checklist_add", {"content": "a"}, context(session="one"))
    assert payload(call(work, "checklist_list", {}, context(session="two")))["items"] == []


def test_update_plan_keeps_the_first_in_progress(work: WorkTools) -> None:
    steps = [{"step": step, "status": "in_progress"} for step in "ab"] + [{"step": "c", "status": "completed"}]
    result = call(work, "update_plan", {"plan": steps, "explanation": "why"})
    assert payload(result) == {
        "explanation": "why",
        "items": [
            {"step": "a", "status": "in_progress"},
            {"step": "b", "status": "pending"},
            {"step": "c", "status": "completed"},
        ],
    }
    assert result.content.startswith("Plan updated: 3 steps (1 pending, 1 in_progress, 1 completed).")
    assert result.metadata["task_updates"]["plan"]["items"] == payload(result)["items"]
    assert not result.end_turn


def test_update_plan_hands_over_in_plan_mode_only_when_it_succeeds(work: WorkTools) -> None:
    plan = {"plan": [{"step": "a", "status": "pending"}]}
    assert call(work, "update_plan", plan, context(mode=Mode.PLAN)).end_turn
    error = refused(work, "update_plan", {"plan": [{"step": "a", "status": "later"}]}, context(mode=Mode.PLAN))
    assert error.field == "plan[0].status"


def test_note_writes_its_one_file(work: WorkTools, tmp_path: Path) -> None:
    result = call(work, "note", {"content": "remember é\ud800"}, context(tmp_path))
    assert (tmp_path / ".codewhale" / "notes.md").read_bytes() == "---\n\nremember é?\n".encode()
    assert [change.path for change in result.changes] == [".codewhale/notes.md"]
    decl = bound(work)["note"].decl
    assert decl.effects == (Effect.WRITES,)


def test_note_that_cannot_be_written_is_kept_elsewhere(work: WorkTools, tmp_path: Path) -> None:
    (tmp_path / ".codewhale").symlink_to(tmp_path)
    error = refused(work, "note", {"content": "remember"}, context(tmp_path))
    assert error.kind == "execution_failed"
    assert error.fix is None and "checklist" in error.message
    assert not (tmp_path / "notes.md").exists()


def test_wrong_shapes_do_not_reach_the_tools(work: WorkTools) -> None:
    for name, arguments in [
        ("checklist_write", {}),
        ("checklist_write", {"todos": [{"status": "pending"}]}),
        ("checklist_write", {"todos": [{"content": "a", "colour": 1}]}),
        ("checklist_update", {"id": "1", "status": "pending"}),
        ("update_plan", {"plan": []}),
        ("note", {"content": ""}),
    ]:
        with pytest.raises(msgspec.ValidationError):
            call(work, name, arguments)


def test_the_status_words_stand_in_the_schemas() -> None:
    rows = {spec.name: spec.parameters for spec in specs(WorkTools, "work")}
    words = ["pending", "in_progress", "completed"]
    assert rows["checklist_write"]["properties"]["todos"]["items"]["properties"]["status"]["enum"] == words
    assert rows["checklist_update"]["properties"]["status"]["enum"] == words
    assert rows["update_plan"]["properties"]["plan"]["items"]["properties"]["status"]["enum"] == words
