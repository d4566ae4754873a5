"""What every backend of the journal must do. A second backend joins by a row in BACKENDS."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from codewhale.journal.model import JournalError, LeaseLost, NewRun, RunJournal, Schedule
from codewhale.journal.sqlite import SqliteJournal

BACKENDS: dict[str, Callable[[str, Callable[[], float]], RunJournal]] = {"sqlite": SqliteJournal}


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=sorted(BACKENDS))
def journal(request: pytest.FixtureRequest, tmp_path: Path, time: Time) -> Iterator[RunJournal]:
    made = BACKENDS[request.param](str(tmp_path), time)
    yield made
    made.close()


def test_a_run_is_claimed_once_and_the_oldest_first(journal: RunJournal, time: Time) -> None:
    for name in ("a", "b"):
        journal.runs.add(NewRun(name, "task", {"prompt": name}))
        time.now += 1
    journal.runs.add(NewRun("later", "task", due=5_000.0))
    journal.runs.add(NewRun("other", "flow"))
    taken = [journal.runs.claim("task", owner, 10) for owner in ("w1", "w2", "w3")]
    assert [one and (one[0].id, one[0].owner, one[1].fence, one[1].attempt) for one in taken] == [
        ("a", "w1", 1, 1), ("b", "w2", 1, 1), None,
    ]  # fmt: skip
    time.now = 5_000.0
    assert (later := journal.runs.claim("task", "w3", 10)) and later[0].id == "later"
    assert journal.runs.add(NewRun("a", "task", {"prompt": "again"})).data == {"prompt": "a"}
    assert journal.runs.counts("task") == {"running": 3}
    assert [run.id for run in journal.runs.rows("task", most=2)] == ["later", "b"]
    assert journal.runs.named("task", "l") == ("later",) and journal.runs.named("task", "o") == ()


def test_one_that_was_not_begun_is_queued_as_it_was(journal: RunJournal, time: Time) -> None:
    journal.runs.add(NewRun("a", "task"))
    _, lease = claimed(journal, "w1")
    assert journal.runs.end(lease, "queued", {}).attempt == 0 and journal.ledger.attempts("a") == ()
    with pytest.raises(LeaseLost):
        journal.runs.beat(lease, 10)
    run, lease = claimed(journal, "w2")
    assert (run.attempt, lease.attempt) == (1, 1)
    journal.runs.stop("a")
    assert journal.runs.end(lease, "queued", {}).state == "cancelled"


def test_whoever_sleeps_through_a_lease_writes_nothing(journal: RunJournal, time: Time) -> None:
    journal.runs.add(NewRun("a", "task"))
    _, lease = claimed(journal, "w1")
    attempt = journal.ledger.begin(lease, "node", {})
    time.now += 30
    (lapsed,) = journal.runs.lapsed("task")
    writes: list[Callable[[], object]] = [
        lambda: journal.runs.beat(lease, 10),
        lambda: journal.runs.end(lease, "completed", {"from": "w1"}),
        lambda: journal.runs.change(lease, {"from": "w1"}),
        lambda: journal.ledger.begin(lease, "node", {}),
        lambda: journal.ledger.finish(lease, attempt, "done", {}),
        lambda: journal.ledger.intend(lease, "call", {}),
        lambda: journal.ledger.settled(lease, "call", {}),
        lambda: journal.ledger.wait(lease, "event", 9.0),
        lambda: journal.ledger.note("a", "gate", {}, lease=lease),
    ]
    for _ in range(2):  # first nobody else has taken it, then another has
        for write in writes:
            with pytest.raises(LeaseLost):
                write()
        if journal.runs.lapse(lapsed, "queued", {}) is not None:
            run, other = claimed(journal, "w2")
            assert (other.fence, other.attempt, run.attempt) == (lease.fence + 2, 2, 2)
    journal.runs.end(other, "completed", {"from": "w2"})
    assert (stands := journal.runs.get("a")) and (stands.state, stands.result) == ("completed", {"from": "w2"})
    assert [(one.node, one.number, one.state) for one in journal.ledger.attempts("a")] == [
        ("", 1, "interrupted"), ("node", 1, "interrupted"), ("", 2, "completed"),
    ]  # fmt: skip


def test_a_lease_of_a_clock_that_was_set_back_is_over(journal: RunJournal, time: Time) -> None:
    time.now = 1_000_000.0
    for name in ("a", "b"):
        journal.runs.add(NewRun(name, "task"))
    _, lives = claimed(journal, "w1")
    claimed(journal, "w2")
    journal.workers.here("w2", 10, {})
    time.now -= 86_400
    _, lives = journal.runs.beat(lives, 10)  # whoever is there goes on
    (lapsed,) = journal.runs.lapsed("task")
    assert lapsed.id == "b" and journal.workers.rows() == ()
    assert journal.runs.lapse(replace(lapsed, id="a"), "interrupted", {}) is None
    assert (put := journal.runs.lapse(lapsed, "interrupted", {})) and put.state == "interrupted"
    assert journal.runs.end(lives, "completed", {}).state == "completed"


def test_beats_extend_a_lease_and_tell_of_a_stop(journal: RunJournal, time: Time) -> None:
    journal.runs.add(NewRun("a", "task"))
    _, lease = claimed(journal, "w1")
    for _ in range(5):
        time.now += 8
        run, lease = journal.runs.beat(lease, 10)
    assert not run.stop and journal.runs.lapsed("task") == ()
    assert (asked := journal.runs.stop("a")) and asked.state == "running"
    assert journal.runs.beat(lease, 10)[0].stop
    assert journal.runs.end(lease, "cancelled", {}).state == "cancelled"
    assert (over := journal.runs.stop("a")) and over.state == "cancelled"
    journal.runs.add(NewRun("b", "task"))
    assert (at_once := journal.runs.stop("b")) and at_once.state == "cancelled"
    assert journal.runs.claim("task", "w1", 10) is None


def test_what_may_be_half_done_is_not_queued_by_itself(journal: RunJournal, time: Time) -> None:
    journal.runs.add(NewRun("a", "task"))
    _, lease = claimed(journal, "w1")
    first = journal.ledger.intend(lease, "call_1", {"tool": "exec_shell"})
    assert journal.ledger.intend(lease, "call_1", {"tool": "another"}) == first
    journal.ledger.settled(lease, "call_1", {"ok": True})
    with pytest.raises(JournalError):
        journal.ledger.settled(lease, "call_1", {})
    journal.ledger.intend(lease, "call_2", {"tool": "exec_shell"})
    time.now += 30
    (run,) = journal.runs.lapsed("task")
    assert journal.runs.lapse(run, "queued", {}) is None
    assert (put := journal.runs.lapse(run, "interrupted", {"why": "died"})) and put.state == "interrupted"
    assert journal.runs.lapse(run, "interrupted", {}) is None
    assert [one.key for one in journal.ledger.intents("a", open_only=True)] == ["call_2"]
    assert journal.runs.requeue("a", ("completed",)) is None
    assert (again := journal.runs.requeue("a", ("interrupted",), {"said": "go on"})) and again.state == "queued"
    assert claimed(journal, "w2")[0].data == {"said": "go on"}
    assert journal.ledger.intents("a", open_only=True) == ()


def test_a_run_waits_for_an_event_or_for_its_time(journal: RunJournal, time: Time) -> None:
    for name in ("a", "b"):
        journal.runs.add(NewRun(name, "flow"))
    for owner in ("w1", "w2"):
        run, lease = claimed(journal, owner, "flow")
        assert journal.ledger.wait(lease, f"event-{run.id}", 2_000.0).state == "waiting"
        with pytest.raises(LeaseLost):
            journal.runs.end(lease, "completed", {})
    assert journal.runs.claim("flow", "w3", 10) is None
    assert (journal.ledger.signal("event-a", {"url": "x"}), journal.ledger.signal("nobody", {})) == (1, 0)
    (wait,) = journal.ledger.waits("a")
    assert (wait.arrived, wait.data) == (time.now, {"url": "x"})
    assert claimed(journal, "w3", "flow")[0].id == "a" and journal.runs.claim("flow", "w3", 10) is None
    time.now = 2_000.0
    assert claimed(journal, "w3", "flow")[0].id == "b"


def test_one_moment_of_a_schedule_begins_one_run(journal: RunJournal, time: Time) -> None:
    made = journal.schedules.put(Schedule("auto_1", "automation", {"prompt": "p"}, 1_500.0))
    assert made is not None and made.version == 1
    assert journal.schedules.put(Schedule("auto_1", "automation", {})) is None
    assert journal.schedules.due("automation") == ()
    time.now = 1_501.0
    (due,) = journal.schedules.due("automation")
    fired = [
        journal.schedules.fire(replace(due, next_at=2_500.0), NewRun(f"task_{number}", "task")) for number in range(3)
    ]
    assert [one and one[1] and one[1].id for one in fired] == ["task_0", None, None]
    assert journal.runs.counts("task") == {"queued": 1}
    stands = journal.schedules.get("auto_1")
    assert stands is not None and (stands.next_at, stands.version) == (2_500.0, 2)
    assert journal.schedules.put(due) is None and journal.schedules.put(replace(stands, next_at=None)) is not None
    time.now = 9_000.0
    assert journal.schedules.due("automation") == () and journal.schedules.named("automation", "auto") == ("auto_1",)
    assert (journal.schedules.drop("auto_1"), journal.schedules.drop("auto_1")) == (True, False)
    assert journal.schedules.rows("automation") == ()


def test_workers_are_there_as_long_as_they_say_so(journal: RunJournal, time: Time) -> None:
    journal.workers.here("w1", 10, {"slots": 2})
    time.now += 5
    journal.workers.here("w2", 10, {})
    journal.workers.here("w1", 10, {"slots": 3})
    assert [(one.owner, one.since, one.data) for one in journal.workers.rows()] == [
        ("w1", 1_000.0, {"slots": 3}), ("w2", 1_005.0, {}),
    ]  # fmt: skip
    journal.workers.gone("w2")
    time.now += 11
    assert journal.workers.rows() == ()


def test_a_history_holds_each_key_once(journal: RunJournal) -> None:
    journal.runs.add(NewRun("a", "task"))
    for key, text in (("1", "first"), ("1", "again"), ("2", "second")):
        journal.ledger.note("a", "gate", {"text": text}, key)
    assert [entry.data for entry in journal.ledger.entries("a")] == [{"text": "first"}, {"text": "second"}]
    assert [entry.key for entry in journal.ledger.entries("a", 1)] == ["2"]


def claimed(journal: RunJournal, owner: str, kind: str = "task"):  # type: ignore[no-untyped-def]
    taken = journal.runs.claim(kind, owner, 10)
    assert taken is not None
    return taken


def test_an_end_that_was_asked_for_outlasts_the_process_and_what_was_half_done_is_kept(journal: RunJournal) -> None:
    journal.runs.add(NewRun("a", "task"))
    _, lease = claimed(journal, "w1")
    journal.runs.stop("a")
    assert journal.runs.end(lease, "interrupted", {"error": "left"}).state == "cancelled"
    journal.runs.add(NewRun("b", "task"))
    _, lease = claimed(journal, "w1")
    journal.runs.end(lease, "interrupted", {"unfinished": ["make"]})
    stopped = journal.runs.stop("b")
    assert stopped is not None and (stopped.state, stopped.result) == ("cancelled", {"unfinished": ["make"]})
