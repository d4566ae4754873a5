"""Memory as commands, tools and sessions use it."""

import difflib
import os
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from codewhale.lib.text import one_line
from codewhale.memory import search, sent
from codewhale.memory.files import FactFile
from codewhale.memory.index import FactIndex
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.lines import LONGEST_FACT, lines_of, read_page, with_changed, with_fact, with_lines, without
from codewhale.memory.model import Fact, FactScope, FoundFact
from codewhale.memory.rivals import contradicts
from codewhale.memory.trash import ClearedFact, Trash
from codewhale.memory.uses import Uses


class Memory:
    """The facts of a home. `place(workspace)` names the folder of a workspace below `memory/workspace`, `placing` hears
    of one that gets a fact; `redacted` is a text without the secrets in it, and `now` is the time."""

    def __init__(
        self,
        home: str,
        place: Callable[[str], str],
        *,
        placing: Callable[[str], object] = str,
        redacted: Callable[[str], str] = str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._root = os.path.join(home, "memory")
        self._place = place
        self._placing = placing
        self._redacted = redacted
        self._now = now
        self._trash = Trash(self._root, now)
        self.index = FactIndex(self._root)
        self.uses = Uses(self._root)

    def facts(self, workspace: str) -> tuple[Fact, ...]:
        """Those for everything, then those of the workspace, each in the order of its file."""
        return tuple(fact for file in self._files(workspace) for fact in file.read().facts)

    def problems(self, workspace: str) -> tuple[str, ...]:
        """What is wrong with the files."""
        return tuple(problem for file in self._files(workspace) for problem in file.read().problems)

    def add(
        self, workspace: str, text: str, scope: FactScope, *, key: str = "", source: str = "", tainted: bool = False
    ) -> Fact:
        """Store a fact; the one that stands there where it says the same. Raises MemoryRefused."""
        fact = Fact(os.urandom(4).hex(), self._plain(text), scope, self._date(), key, source, tainted)
        if scope == "workspace":
            self._placing(workspace)
        file, stored = self._file(workspace, scope), [fact]

        def change(data: bytes) -> bytes:
            facts = [item.fact for item in read_page(data, scope).items]
            same = [one for one in facts if one.text == fact.text and one.tainted <= tainted]
            while stored[0].id in {one.id for one in facts}:
                stored[0] = replace(fact, id=os.urandom(4).hex())
            stored[0], new = (same[0], data) if same else _as_read(with_fact(data, stored[0]), stored[0])
            return new

        file.edit(change)
        return stored[0]

    def change(self, workspace: str, id: str, text: str) -> Fact:
        """Give a fact another text, and today's date. Raises MemoryRefused."""
        file, old = self.find(workspace, id)
        fact = replace(old, text=self._plain(text), created=self._date())
        if old.text[LONGEST_FACT - 1 :] == fact.text[-1:] == "…":
            raise MemoryRefused(f"That would cut the fact: edit line {old.line} of {file.path}, or remove the final ….")

        def change(data: bytes) -> bytes:
            _present(data, file, (fact.id,))
            return _as_read(with_changed(data, fact), fact)[1]

        file.edit(change)
        self.index.forget()
        return self.find(workspace, fact.id)[1]

    def clear(self, workspace: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
        """Put facts into the trash, each from the file of its scope. Raises MemoryRefused."""
        return tuple(
            fact
            for file in self._files(workspace)
            for fact in self._clear(file, {fact.id for fact in facts if fact.scope == file.scope})
        )

    def restore(self, id: str) -> Fact:
        """Put a fact from the trash back. Raises MemoryRefused."""
        entries = {one.name: one for one in self._trash.entries()}
        entry = entries[_meant(id, {name: one.fact.text for name, one in entries.items()}, "in the trash")]
        file = FactFile(self._root, entry.folder)

        def change(data: bytes) -> bytes:
            for whole in (data, with_lines(data, entry.lines)):  # that it is there, or again as it was
                if any(item.fact.id == entry.fact.id for item in read_page(whole, file.scope).items):
                    return whole
            return _as_read(with_fact(data, entry.fact), entry.fact)[1]

        file.edit(change)
        self._trash.remove(entry.name)
        return next(one for one in file.read().facts if one.id == entry.fact.id)

    def trashed(self) -> tuple[ClearedFact, ...]:
        """What restore brings back, oldest first."""
        return self._trash.entries()

    def cleared(self, workspace: str) -> dict[str, str]:
        """The texts in the trash that were facts there, oldest first, and are none any more, with when that was."""
        folders = {file.name for file in self._files(workspace)}
        kept = {fact.text for fact in self.facts(workspace)}
        entries = (one for one in self._trash.entries() if one.folder in folders)
        return {one.fact.text: one.cleared for one in entries if one.fact.text not in kept}

    def contradicting(self, workspace: str, fact: Fact) -> tuple[Fact, ...]:
        """The facts that cannot hold beside this one."""
        return tuple(one for one in self.facts(workspace) if one.id != fact.id and contradicts(one, fact))

    def paths(self, workspace: str) -> dict[FactScope, str]:
        """The files, which need not be there yet."""
        return {file.scope: file.path for file in self._files(workspace)}

    def find(self, workspace: str, id: str) -> tuple[FactFile, Fact]:
        """The fact that an id, or a beginning which it alone has, means. Raises MemoryRefused."""
        pairs = {fact.id: (file, fact) for file in reversed(self._files(workspace)) for fact in file.read().facts}
        return pairs[_meant(id, {id: fact.text for id, (_, fact) in pairs.items()}, "among the facts")]

    def meant(self, workspace: str, id: str) -> tuple[Fact, ...]:
        """What `find` finds, in each place where it stands: the same line in both files has the same id. Raises
        MemoryRefused."""
        _, found = self.find(workspace, id)
        return tuple(fact for fact in self.facts(workspace) if fact.id == found.id)

    def get(self, workspace: str, id: str) -> Fact | None:
        return next((fact for fact in self.facts(workspace) if fact.id == id), None)

    def search(self, workspace: str, query: str, limit: int = 5) -> tuple[FoundFact, ...]:
        """The facts that a query means, the likeliest first; a superseded one is marked, after the newer one."""
        return search.search(self.index, ("global", f"workspace/{self._place(workspace)}"), query, limit)

    def used(self, ids: Sequence[str]) -> None:
        """Count a use of each fact."""
        self.uses.add(ids)

    def sent(self, workspace: str) -> tuple[Fact, ...]:
        """The facts that a new session begins with, in the order of their files."""
        return sent.chosen(self.facts(workspace), self.uses.counts())

    def text(self, workspace: str) -> str:
        """What a new session is given of memory, "" where there is nothing. It needs no further care: nothing in a fact
        closes the block or begins a line."""
        facts = self.facts(workspace)
        return sent.text(sent.chosen(facts, self.uses.counts()), facts)

    def _clear(self, file: FactFile, ids: set[str]) -> tuple[Fact, ...]:
        gone = dict[str, Fact]()

        def change(data: bytes) -> bytes:
            gone.clear()
            page = read_page(data, file.scope)
            items = {one.fact.id: one for one in page.items if one.fact.id in ids}
            gone.update({id: one.fact for id, one in items.items()})
            lines = {id: lines_of(page, one) for id, one in items.items()}
            self._trash.put(gone.values(), file.name, lines)  # as they stand now, before they are gone
            return without(data, file.scope, ids)

        if ids:
            file.edit(change)
            self.index.forget()
        return tuple(gone.values())

    def _files(self, workspace: str) -> tuple[FactFile, FactFile]:
        return self._file(workspace, "global"), self._file(workspace, "workspace")

    def _file(self, workspace: str, scope: FactScope) -> FactFile:
        return FactFile(self._root, "global" if scope == "global" else f"workspace/{self._place(workspace)}")

    def _date(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self._now()))

    def _plain(self, text: str) -> str:
        """A text as it is stored. Raises MemoryRefused."""
        plain = one_line(text, LONGEST_FACT + 1)
        if not plain:
            raise MemoryRefused("A fact needs a text.")
        if len(plain) > LONGEST_FACT:
            raise MemoryRefused(f"A fact has at most {LONGEST_FACT:,} characters. Shorten it, or store it as several.")
        if self._redacted(plain) != plain:
            raise MemoryRefused("Nothing was stored: the text holds a key or a password. Say where it stands instead.")
        return plain


def _as_read(data: bytes, fact: Fact) -> tuple[Fact, bytes]:
    """The fact as the file says it, and the file. Raises MemoryRefused where it would not be read from it."""
    for item in reversed(read_page(data, fact.scope).items):
        if item.fact.id == fact.id:
            return item.fact, data
    raise MemoryRefused("Nothing was changed: a code block or a comment of MEMORY.md does not end. End it first.")


def _meant(id: str, texts: Mapping[str, str], where: str) -> str:
    """The id that an id or its beginning means. Raises MemoryRefused."""
    meant = [id] if id in texts else [one for one in texts if id and one.startswith(id)]
    if len(meant) == 1:
        return meant[0]
    near = meant or difflib.get_close_matches(id, texts, 3, 0.5)
    shown = ", ".join(f"{one} ({one_line(texts[one], 40)})" for one in near[:8])
    if meant:
        raise MemoryRefused(f"More than one id begins with {id}: {shown}. Give more of it.")
    hint = f"Near it: {shown}." if near else "/memory lists the facts with their ids."
    raise MemoryRefused(f"Nothing {where} has the id {one_line(id, 40)!r}. {hint}")


def _present(data: bytes, file: FactFile, ids: Sequence[str]) -> None:
    missing = {*ids} - {item.fact.id for item in read_page(data, file.scope).items}
    if missing:
        raise MemoryRefused(f"Nothing was changed: {', '.join(sorted(missing))} was removed from {file.path}.")
