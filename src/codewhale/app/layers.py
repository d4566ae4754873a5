"""The layers of memory that other rooms own, each behind the one interface of a layer."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from codewhale.agent.session_factory import HeadTexts
from codewhale.lib.clock import rfc3339
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.model import MemoryFault
from codewhale.process.repository import find_root
from codewhale.protocol.decisions import Clause
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.memory import LayerPlace, LayerRow, MemoryItem, Trust
from codewhale.protocol.views import SessionSummary
from codewhale.session.prompt import Instruction, instruction_text, load_instructions

if TYPE_CHECKING:
    from codewhale.rlm.answers import AnswerStore
    from codewhale.skills.model import Skill


class LayerSources(Struct, frozen=True):
    """What the layers are read from; all but `home` are asked by workspace."""

    home: str
    texts: HeadTexts
    clauses: Callable[[str], Sequence[Clause]]
    rules: "Callable[[str], Sequence[Skill]]"
    sessions: Callable[[str], Sequence[SessionSummary]]


_ELSEWHERE = "{} is kept elsewhere: {}."


class OwnedLayer:
    """What such layers share: they are emptied where they are kept."""

    name = title = scope = elsewhere = ""
    trust: Trust = "repo"
    place: LayerPlace = "not sent"
    actions: tuple[tuple[str, str], ...] = ()

    def __init__(self, sources: LayerSources) -> None:
        self._from = sources

    def row(self, workspace: str, session: str) -> LayerRow:
        items = self.items(workspace, session)
        return LayerRow(
            self.name,
            self.title,
            self.scope,
            self.trust,
            self.place,
            items=len(items),
            bytes=sum(item.bytes for item in items),
            changed=max((item.created for item in items), default=""),
            actions=self.actions,
            note=self.note(workspace, items),
            faults=len(self.health(workspace)),
        )

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]:
        return ()

    def note(self, workspace: str, items: Sequence[MemoryItem]) -> str:
        return ""

    def text(self, workspace: str, budget: int) -> str:
        return ""

    def clear(self, workspace: str, session: str) -> str:
        raise MemoryRefused(_ELSEWHERE.format(self.title, self.elsewhere))

    def provenance(self, workspace: str, session: str, item: str) -> str:
        return next((one.source for one in self.items(workspace, session) if one.id == item), "")

    def health(self, workspace: str) -> Sequence[MemoryFault]:
        return ()


class ConstitutionLayer(OwnedLayer):
    """The project's constitution."""

    name, title, scope = "repo-constitution", "Repository constitution", "workspace"
    place: LayerPlace = "head"
    elsewhere = "edit .codewhale/constitution.json"
    actions = (("view", "/rules"), ("trust", "/trust"))

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]:
        from codewhale.permissions.constitution_files import constitution_files

        files = [path for path, _ in constitution_files(workspace)]
        size = sum(map(_size, files))
        changed = max(map(_changed, files), default="")
        rows = [
            MemoryItem(one.id, one.text, "workspace", f"{files[0]}, {one.kind} {one.row}", "repo", changed)
            for one in (self._from.clauses(workspace) if files else ())
        ]
        return [structs.replace(rows[0], bytes=size), *rows[1:]] if rows else rows

    def text(self, workspace: str, budget: int) -> str:
        return _within(self._from.texts.law(workspace), budget)


class RulesLayer(OwnedLayer):
    """Instruction files and rules."""

    name, title, scope = "repo-rules", "Repository rules", "workspace"
    place: LayerPlace = "head"
    elsewhere = "edit the instruction and rule files that /rules lists, or switch a rule off with /rules off NAME"
    actions = (("view", "/rules"),)

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]:
        rows = [_instruction(one, workspace) for one in self._chain(workspace)]
        return [*rows, *(_rule(skill) for skill in self._rules(workspace))]

    def text(self, workspace: str, budget: int) -> str:
        parts = (self._from.texts.rules(workspace), instruction_text(self._chain(workspace)))
        return _within("\n\n".join(filter(None, parts)), budget)

    def _chain(self, workspace: str) -> tuple[Instruction, ...]:
        return load_instructions(workspace, self._from.home, find_root(workspace))

    def _rules(self, workspace: str) -> "list[Skill]":
        return [one for one in self._from.rules(workspace) if one.kind == "rule"]


class CodeMapLayer(OwnedLayer):
    """What is known of the code: the index, and the map that is made of it."""

    name, title, scope, trust = "codemap-wiki", "Code map", "workspace", "derived"
    place: LayerPlace = "head"
    elsewhere = "codewhale index --rebuild makes it anew"
    actions = (("rebuild", "codewhale index --rebuild"), ("find", "/search QUERY"))

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]:
        from codewhale.codesearch.store import IndexDamagedError, database_path, open_existing

        root = os.path.realpath(workspace)
        path = database_path(self._from.home, root)
        try:
            store = open_existing(path, root)
        except (OSError, IndexDamagedError):
            return ()
        if store is None:
            return ()
        try:
            ((files, symbols),) = store.rows("SELECT count(*), sum(symbols) FROM files WHERE state = ''")
        except IndexDamagedError:
            return ()
        finally:
            store.close()
        text = f"{symbols or 0:,} symbols in {files:,} files"
        return (MemoryItem("index", text, "workspace", path, "derived", _changed(path), bytes=_size(path)),)

    def note(self, workspace: str, items: Sequence[MemoryItem]) -> str:
        return items[0].text if items else "not indexed yet; the first search builds the index"

    def text(self, workspace: str, budget: int) -> str:
        return _within(self._from.texts.codemap(workspace), budget)


class TracesLayer(OwnedLayer):
    """The logs of the workspace's sessions."""

    name, title, scope, trust = "trace-store", "Traces", "workspace", "derived"
    elsewhere = "codewhale sessions rm SESSION removes a session with its log"
    actions = (("open", "/sessions"),)

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]:
        return [self._item(row) for row in self._from.sessions(workspace)]

    def _item(self, row: SessionSummary) -> MemoryItem:
        path = os.path.join(self._from.home, "sessions", row.id, "log.jsonl")
        return MemoryItem(
            row.id, row.title, "workspace", path, "derived", row.updated, uses=row.turns, bytes=_size(path)
        )


class AnswersLayer(OwnedLayer):
    """What models answered to sub-queries: kept, so that the same question is not paid for again."""

    name, title, scope, trust = "rlm-memo", "Answers to sub-queries", "global", "derived"
    actions = (("clear", "/context rlm-memo clear"),)

    def items(self, workspace: str, session: str) -> Sequence[MemoryItem]:
        with self._store() as store:
            try:
                totals = store.totals()
            except CodeWhaleError as error:
                return (MemoryItem("answers", str(error), "global", store.path, "derived", bytes=_size(store.path)),)
        if not totals.answers:
            return ()
        text, last = f"{totals.answers:,} answers", rfc3339(totals.last)
        return (MemoryItem("answers", text, "global", store.path, "derived", last, last, bytes=totals.bytes),)

    def note(self, workspace: str, items: Sequence[MemoryItem]) -> str:
        return items[0].text if items else "no answer is kept yet"

    def clear(self, workspace: str, session: str) -> str:
        with self._store() as store:
            try:
                count = store.clear()
            except CodeWhaleError as error:
                raise MemoryRefused(str(error)) from error
        return f"{count:,} kept answers removed." if count else "No answer was kept."

    def _store(self) -> "closing[AnswerStore]":
        from codewhale.rlm.answers import AnswerStore

        return closing(AnswerStore(self._from.home))


class AbsentLayer(OwnedLayer):
    """A layer that this version does not have."""

    def __init__(self, sources: LayerSources, name: str, title: str, missing: str) -> None:
        super().__init__(sources)
        self.name, self.title, self.scope, self._missing = name, title, "session", missing
        self.elsewhere = missing

    def note(self, workspace: str, items: Sequence[MemoryItem]) -> str:
        return self._missing


def absent_layers(sources: LayerSources) -> tuple[AbsentLayer, ...]:
    return (AbsentLayer(sources, "cached-overlay", "Promoted lessons", "this version promotes no lessons"),)


def _instruction(one: Instruction, workspace: str) -> MemoryItem:
    cut = len(one.text.encode()) < one.bytes
    return MemoryItem(one.name, one.name + (" (cut)" if cut else ""), "workspace", one.name, "repo", bytes=one.bytes)


def _rule(skill: "Skill") -> MemoryItem:
    scope = "global" if skill.space == "user" else "workspace"
    trust: Trust = "user" if scope == "global" else "repo"
    return MemoryItem(
        skill.full_name,
        skill.name,
        scope,
        skill.path,
        trust,
        _changed(skill.file),
        bytes=skill.size,
        sha256=skill.sha256,
    )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _changed(path: str) -> str:
    try:
        return rfc3339(os.stat(path).st_mtime)
    except OSError:
        return ""


def _within(text: str, budget: int) -> str:
    """A text, or nothing where it is longer than that: half a text may say the opposite."""
    return text if len(text) <= budget else ""
