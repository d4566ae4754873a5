"""The book of tasks: adding, listing, reading, cancelling and going on, and what is found again after damage."""

import os
import re
import socket
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from codewhale.journal.model import JournalDamaged, Run, RunJournal, RunState
from codewhale.journal.sqlite import SqliteJournal
from codewhale.lib.clock import rfc3339
from codewhale.lib.text import one_line
from codewhale.protocol.modes import Mode
from codewhale.protocol.tasks import MOST_TASKS, TASK_KIND, TaskBoard, TaskLine, TaskRecord, TaskView
from codewhale.session.store import SessionStore
from codewhale.tasks.conversation import TaskConversation, conversations, ending, read_conversation
from codewhale.tasks.model import PROMPT_LIMIT, TaskError, TaskSpec, new_task, new_task_id, spec_of, view_of

NOBODY = (
    "Nobody works at tasks now: they wait until a terminal interface is open (codewhale), or `codewhale work` runs."
)
RESUMED = "/task resume, or codewhale tasks resume, lets it go on."
GONE = f"The process that worked at it ended. {RESUMED}"
MOST_ALONE = 10  # attempts that follow one another by themselves
_PREFIX = re.compile(r"(?:task_)?[0-9a-f]{1,8}")
_ENTRY = 300
FOREVER = 1e11  # seconds since 1970
_RESUMABLE: tuple[RunState, ...] = ("interrupted", "failed", "cancelled")
T = TypeVar("T")


class TaskBook:
    """The tasks of a home, over its journal, which is opened when it is first needed. `make` opens it, for tests. All
    of it may take a moment: the event loop asks it beside itself. Raises TaskError and JournalError."""

    def __init__(self, home: str, sessions: SessionStore, make: Callable[[str], RunJournal] = SqliteJournal) -> None:
        self._home = home
        self._sessions = sessions
        self._make = make
        self._journal: RunJournal | None = None
        self._lock = threading.RLock()
        self._notice = ""
        self.works_here = False  # this process takes tasks

    # ------------------------------------------------------------------ the journal

    @property
    def exists(self) -> bool:
        """Whether there has ever been a journal; costs no more than a look."""
        return self._journal is not None or os.path.isdir(os.path.join(self._home, "journal"))

    @property
    def journal(self) -> RunJournal:
        """The journal, with what was lost of it found again."""
        with self._lock:
            if self._journal is not None and self._journal.gone:
                self.close()
            if self._journal is None:
                self._journal = self._make(self._home)
            if self._journal.doubt:
                self._restore(self._journal)
            return self._journal

    def close(self) -> None:
        with self._lock:
            if self._journal is not None:
                self._journal.close()
                self._journal = None

    def _safely(self, do: Callable[[RunJournal], T]) -> T:
        """Do it; where the journal turns out to be damaged, once more over a new one."""
        try:
            return do(self.journal)
        except JournalDamaged:
            with self._lock:
                if self._journal is None:
                    raise
                self._journal.renew()
            return do(self.journal)

    def _restore(self, journal: RunJournal) -> None:
        """Compare the rows with the conversations that there are: a task whose row is gone is found again, and one
        whose row is older than its log stands as the log says. Nothing of it is begun by itself."""
        if journal.doubt.startswith("damaged"):
            self._notice = (
                f"The journal was {journal.doubt.replace('damaged: ', 'damaged; it was set aside to ')}. Tasks whose "
                "sessions stand were found again; schedules and tasks that had not begun are lost."
            )
        for task, sessions in conversations(self._sessions).items():
            run = journal.runs.get(task)
            if run is not None and (run.state not in ("queued",) or spec_of(run).session or run.attempt):
                continue
            found = [(one, read) for one in sessions if (read := read_conversation(self._sessions, one)) is not None]
            begun = [(session, read) for session, read in found if read.opened is not None and read.turns]
            done = [one for one in begun if (end := ending(one[1])) is not None and end[0] == "completed"]
            if begun:  # of a copy and its original the one that came to an end counts
                self._find_again(journal, task, *(done or begun)[-1])
        journal.trusted()

    def _find_again(self, journal: RunJournal, task: str, session: str, conversation: TaskConversation) -> None:
        opened = conversation.opened
        assert opened is not None
        spec = TaskSpec(
            prompt=conversation.prompt or "(its prompt is lost)", workspace=opened.workspace,
            mode=min(opened.mode, Mode.AGENT, key=list(Mode).index), provider=opened.provider, model=opened.model,
            scope=opened.scope, by="found again",
        )  # fmt: skip
        stands = journal.runs.add(replace(new_task(task, spec), due=FOREVER))  # nobody takes it before it is settled
        state, result = ending(conversation) or ("interrupted", _interrupted(conversation))
        journal.runs.settle(task, ("queued",), state, result, {**stands.data, "session": session})
        journal.ledger.note(task, "journal", {"text": "found again by its session"}, "found")

    # ------------------------------------------------------------------ what is asked

    def board(self, most: int = 20, states: Sequence[RunState] = ()) -> TaskBoard:
        """The newest tasks."""
        most = max(1, min(most, MOST_TASKS))

        def look(journal: RunJournal) -> TaskBoard:
            self._settle(journal)
            views = tuple(map(view_of, journal.runs.rows(TASK_KIND, states, most)))
            return TaskBoard(views, journal.runs.counts(TASK_KIND), self.workers(journal), self.notice(journal))

        return self._safely(look)

    def record(self, name: str) -> TaskRecord:
        """A task with its history."""

        def look(journal: RunJournal) -> TaskRecord:
            self._settle(journal)
            run = self._run(journal, name, "read")
            lines = [
                TaskLine(rfc3339(entry.at), entry.kind, one_line(_told(entry.data), _ENTRY))
                for entry in journal.ledger.entries(run.id)
            ]
            begun, ended = _attempt_lines(journal, run)
            conversation = read_conversation(self._sessions, spec_of(run).session) or TaskConversation()
            updates = {kind: list(rows) for kind, rows in conversation.updates.items()}
            for entry in journal.ledger.entries(run.id):
                if "value" in entry.data and entry.data["value"] not in updates.get(entry.kind, ()):
                    updates.setdefault(entry.kind, []).append(entry.data["value"])
            inside = (*conversation.lines, *lines)  # of one moment an attempt's begin comes first, its end last
            timeline = sorted((*begun, *inside, *ended), key=lambda line: line.at)
            return TaskRecord(view_of(run), tuple(timeline), conversation.checklist, updates)

        return self._safely(look)

    def put(self, name: str, kind: str, value: object) -> None:
        """Write something into a task that no call of its own conversation says."""
        self._safely(lambda journal: journal.ledger.note(self._run(journal, name, "read").id, kind, {"value": value}))

    def workers(self, journal: RunJournal | None = None) -> tuple[str, ...]:
        """Who takes tasks now, in words."""
        return tuple(
            f"{row.data.get('what', 'worker')} {row.owner} ({row.data.get('slots', 1)} at once)"
            for row in (journal or self.journal).workers.rows()
        )

    def notice(self, journal: RunJournal | None = None) -> str:
        """What a person should know of the tasks as a whole; "" for nothing."""
        nobody = "" if self.works_here or (journal or self.journal).workers.rows() else NOBODY
        return " ".join(filter(None, (self._notice, nobody)))

    def resolve(self, name: str, verb: str = "read") -> str:
        """The id that a name or the beginning of one stands for. Raises TaskError."""
        return self._safely(lambda journal: self._run(journal, name, verb).id)

    def _run(self, journal: RunJournal, name: str, verb: str) -> Run:
        newest = journal.runs.rows(TASK_KIND, most=1)
        near = newest[0].id if newest else ""
        shown = one_line(name, 80)
        hint = f" For example: codewhale tasks show {near}" if near else " There are no tasks yet."
        if not _PREFIX.fullmatch(name):
            raise TaskError(
                f"`task_id`: {shown!r} is no id of a task; one looks like task_1a2b3c4d.{hint}", "task_id", near
            )
        full = name if name.startswith("task_") else f"task_{name}"
        matches = journal.runs.named(TASK_KIND, full)
        if full in matches:
            matches = (full,)
        if len(matches) > 1:
            some = ", ".join(matches[:5])
            raise TaskError(
                f"`task_id`: {shown!r} is the beginning of {len(matches)} tasks: {some}. Say more of it, as "
                f"in: codewhale tasks {'show' if verb == 'read' else verb} {matches[0]}", "task_id", matches[0],
            )  # fmt: skip
        run = journal.runs.get(matches[0]) if matches else None
        if run is None:
            raise TaskError(f"`task_id`: there is no task {shown!r}.{hint}", "task_id", near)
        return run

    # ------------------------------------------------------------------ what is done

    def add(self, spec: TaskSpec, task: str = "") -> TaskView:
        """Queue a task; one of this id that there is already is given back."""
        checked_task(spec)
        return self._safely(lambda journal: view_of(journal.runs.add(new_task(task or new_task_id(journal), spec))))

    def cancel(self, name: str) -> TaskView:
        """End a task: at once where nobody works at it, else its worker is told."""

        def do(journal: RunJournal) -> TaskView:
            self._settle(journal)
            run = self._run(journal, name, "cancel")
            if run.state in ("completed", "failed", "cancelled"):
                raise TaskError(
                    f"`task_id`: {run.id} is {run.state} already; nothing was done. Look at it with: codewhale tasks "
                    f"show {run.id}", "task_id", run.id,
                )  # fmt: skip
            journal.ledger.note(run.id, "person", {"text": "its end was asked for"})
            stopped = journal.runs.stop(run.id)
            return view_of(stopped or run)

        return self._safely(do)

    def resume(self, name: str) -> TaskView:
        """Queue the next attempt of a task that is over without being completed."""

        def do(journal: RunJournal) -> TaskView:
            self._settle(journal)
            run = self._run(journal, name, "resume")
            left = list(view_of(run).unfinished)
            queued = journal.runs.requeue(run.id, _RESUMABLE, {**run.data, "left": left})
            if queued is None:
                why = "it is completed" if run.state == "completed" else f"it is {run.state}"
                raise TaskError(
                    f"`task_id`: {run.id} cannot go on: {why}. Those that can are interrupted, failed or cancelled: "
                    "codewhale tasks list", "task_id", run.id,
                )  # fmt: skip
            journal.ledger.note(run.id, "person", {"text": f"goes on after attempt {run.attempt}"})
            return view_of(queued)

        return self._safely(do)

    # ------------------------------------------------------------------ those whose process died

    def settle(self) -> tuple[str, ...]:
        """Put each task whose worker is gone into the state that its log says; the ids of those."""
        return self._safely(self._settle)

    def _settle(self, journal: RunJournal) -> tuple[str, ...]:
        settled = []
        for run in journal.runs.lapsed(TASK_KIND):
            conversation = read_conversation(self._sessions, spec_of(run).session)
            if self._lapse(journal, run, conversation or TaskConversation()):
                settled.append(run.id)
        return tuple(settled)

    def _lapse(self, journal: RunJournal, run: Run, conversation: TaskConversation) -> bool:
        spec, left = spec_of(run), ending(conversation)
        state: RunState
        result: dict[str, object]
        if left is not None and conversation.attempts >= run.attempt:
            state, result = left
        elif run.stop:
            state, result = "cancelled", _interrupted(conversation, "Its end was asked for.")
        else:
            again = spec.on_death == "resume" and not conversation.half_done and run.attempt % MOST_ALONE != 0
            if again and journal.runs.lapse(run, "queued", {}) is not None:
                journal.ledger.note(run.id, "died", {"text": f"{run.owner} is gone; the next attempt is queued"})
                return True
            state, result = "interrupted", self._with_intents(journal, run, conversation)
            if spec.on_death == "resume" and run.attempt % MOST_ALONE == 0:
                result["error"] = f"{MOST_ALONE} processes that worked at it ended, one after another. {RESUMED}"
        put = journal.runs.lapse(run, state, result)
        if put is not None:
            journal.ledger.note(run.id, "died", {"text": f"{run.owner} is gone; the task is {state}"})
        return put is not None

    def _with_intents(self, journal: RunJournal, run: Run, conversation: TaskConversation) -> dict[str, object]:
        """What is said of an interrupted task; calls of its sub-agents are known by their intents alone."""
        result = _interrupted(conversation)
        known = {f"{spec_of(run).session}:{call}" for call in conversation.begun}
        others = [intent for intent in journal.ledger.intents(run.id, open_only=True) if intent.key not in known]
        named = [one_line(f"{one.data.get('tool', '')} {one.data.get('arguments', '')}", 200) for one in others]
        unfinished = result["unfinished"]
        return {**result, "unfinished": [*(unfinished if isinstance(unfinished, list) else ()), *named]}


def _interrupted(conversation: TaskConversation, why: str = GONE) -> dict[str, object]:
    return {"error": why, "unfinished": list(conversation.unfinished)}


def _told(data: dict[str, object]) -> str:
    """A line of a row's history: a text, or what a tool of a sub-agent wrote."""
    value = data.get("value")
    if isinstance(value, dict):
        return " ".join(str(value[key]) for key in ("gate", "action", "status", "command", "summary") if value.get(key))
    return str(data.get("text", ""))


def _attempt_lines(journal: RunJournal, run: Run) -> tuple[list[TaskLine], list[TaskLine]]:
    """Where the attempts began, and where they ended."""
    begun, ended = [TaskLine(rfc3339(run.created), "task", "queued")], list[TaskLine]()
    for one in journal.ledger.attempts(run.id):
        if not one.node:
            begun.append(TaskLine(rfc3339(one.began), "attempt", f"attempt {one.number} began"))
            if one.ended is not None:
                ended.append(TaskLine(rfc3339(one.ended), "attempt", f"attempt {one.number} {one.state}"))
    return begun, ended


def checked_task(spec: TaskSpec) -> None:
    """Raises TaskError for what can be no task."""
    if not spec.prompt.strip():
        raise TaskError(
            "`prompt`: it is empty; say what is to be done, as in: /task add fix the failing test", "prompt"
        )
    if len(spec.prompt) > PROMPT_LIMIT:
        size = f"{len(spec.prompt):,} characters"
        raise TaskError(f"`prompt`: it has {size}, {PROMPT_LIMIT:,} is the most; name files instead", "prompt")
    if not os.path.isdir(spec.workspace):
        raise TaskError(f"`workspace`: there is no folder {one_line(spec.workspace, 200)}", "workspace")


def owner_name() -> str:
    """What a worker of this process is called: never the same for two."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:40]
    return f"{host or 'here'}:{os.getpid()}:{os.urandom(3).hex()}"
