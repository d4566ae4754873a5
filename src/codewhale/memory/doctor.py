"""What is wrong with memory and with what is beside it, and the repair of what can be repaired without a person."""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

import msgspec
from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.lib.clock import rfc3339
from codewhale.lib.text import counted, one_line, told_line
from codewhale.memory.factfaults import line_faults, near_repeats, repeated, text_faults, twice, with_own_id
from codewhale.memory.files import LIMIT, NAME, FactFile
from codewhale.memory.index import FactIndex
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.lines import FactPage, lines_of, read_page, with_fact
from codewhale.memory.model import Fact, FactScope, MemoryFault, Proposal
from codewhale.memory.orders import orders_in
from codewhale.memory.originals import TAKEN, Homes, TakeOver, configured, nested_paths, plan, take_over
from codewhale.memory.places import KnownWorkspace
from codewhale.memory.rivals import superseded
from codewhale.memory.sent import MOST_FACTS, MOST_TEXT, valid
from codewhale.memory.trash import SECONDS, Trash
from codewhale.memory.uses import Uses

UNUSED_DAYS, WAITING_DAYS = 90, 30
_MOST_NAMES, _MOST_FAULTS, _MOST_ROUNDS = 20_000, 500, 4
_DAY = 86_400
_YOUNG, _PATIENCE = 10.0, 1.0  # seconds that a draft of another process may take


class Surroundings(Struct, frozen=True):
    """What is known elsewhere: a text without its secrets; what is wrong with that which memory does not own, by
    workspace; and the workspaces that memory knows, by the names of their folders."""

    hide: Callable[[str], str] = str
    beside: Callable[[str], Iterable[MemoryFault]] = lambda workspace: ()
    known: Callable[[], Mapping[str, KnownWorkspace]] = dict
    now: Callable[[], float] = time.time


class MemoryDoctor:
    """Looks at a home from a workspace."""

    def __init__(self, homes: Homes, workspace: str, around: Surroundings) -> None:
        self._homes = homes
        self._memory = os.path.join(homes.home, "memory")
        self._workspace = workspace
        self._around = around
        self._index = FactIndex(self._memory)

    def examine(self, beside: bool = True) -> tuple[MemoryFault, ...]:
        """All faults, errors first, each with what to do; without `beside` those of memory itself alone."""
        faults = list(islice(self._faults(), _MOST_FAULTS))
        faults += self._around.beside(self._workspace) if beside else ()
        return tuple(sorted(dict.fromkeys(faults), key=lambda one: one.level))

    def plan(self) -> TakeOver:
        """What an older home holds."""
        texts = [fact.text for file, page in self._pages() for fact in _facts(page) if self._is_at_hand(file)]
        return plan(self._homes, texts, self._around.hide)

    def take_over(self) -> int:
        """Copy the facts of an older home; how many. Raises MemoryRefused."""

        def keep(scope: FactScope, facts: Sequence[Fact]) -> None:
            def change(data: bytes) -> bytes:
                for fact in facts:
                    data = with_fact(data, fact)
                return data

            folder = "global" if scope == "global" else f"workspace/{self._homes.place}"
            FactFile(self._memory, folder).edit(change)

        return take_over(self.plan(), self._homes, keep)

    def repair(self) -> tuple[MemoryFault, ...]:
        """Repair what is safe; what was repaired."""
        repaired = dict[MemoryFault, None]()
        for _ in range(_MOST_ROUNDS):  # a file that can be read again may have faults of its own
            faults = [one for one in self.examine() if one.safe and one not in repaired]
            for fault in faults:
                with contextlib.suppress(OSError, MemoryRefused):
                    self._repair(fault)
                    repaired[fault] = None
            if not faults:
                break
        return tuple(repaired)

    # ------------------------------------------------------------------ what is looked at

    def _faults(self) -> Iterator[MemoryFault]:
        yield from self._names()
        pages = list(self._pages())
        for file, page in pages:
            yield from line_faults(file.path, page)
            yield from self._repeats(file, page)
            yield from text_faults(file.path, _facts(page), self._around.hide, self._date(0))
        at_hand = [(file, fact) for file, page in pages if self._is_at_hand(file) for fact in _facts(page)]
        for file, page in pages:
            if not self._is_at_hand(file):
                yield from self._together([(file, fact) for fact in _facts(page)])
        yield from self._together(at_hand)
        yield from self._places()
        if self._index.is_old():
            text = f"{told_line(self._index.path)}: is not of the files as they are"
            yield MemoryFault("old_index", "warning", text, "make it anew", self._index.path, True)
        yield from self._waiting()

    def _pages(self) -> Iterator[tuple[FactFile, FactPage]]:
        """The files of facts that can be read."""
        for folder in ("global", *(f"workspace/{name}" for name in _listed(os.path.join(self._memory, "workspace")))):
            file = FactFile(self._memory, folder)
            if os.path.isfile(file.path):
                with contextlib.suppress(MemoryRefused):
                    yield file, file.page()

    def _is_at_hand(self, file: FactFile) -> bool:
        return file.scope == "global" or os.path.basename(file.folder) == self._homes.place

    def _names(self) -> Iterator[MemoryFault]:
        """Files and folders by what the file system says of them."""
        for path in (self._homes.home, self._memory, *_below(self._memory)):
            with contextlib.suppress(OSError):
                yield from self._name(path, os.lstat(path))

    def _name(self, path: str, about: os.stat_result) -> Iterator[MemoryFault]:
        shown, name, is_folder = told_line(path), os.path.basename(path), stat.S_ISDIR(about.st_mode)
        own = about.st_uid == os.geteuid()
        mode = "700" if is_folder else "600"
        if name == NAME and not stat.S_ISREG(about.st_mode):
            text = f"{shown}: is no regular file, so no fact of it is read"
            yield MemoryFault("not_a_file", "error", text, "move it away", path)
        if stat.S_ISLNK(about.st_mode):
            return
        if not own:
            text = f"{shown}: belongs to user {about.st_uid}, not to you"
            yield MemoryFault("other_owner", "error", text, "give it to yourself, or move it away", path)
        needed = stat.S_IRUSR | (stat.S_IXUSR if is_folder else 0)
        if about.st_mode & needed != needed:
            yield MemoryFault("unreadable", "error", f"{shown}: cannot be read", f"chmod {mode}", path, own)
        shared = about.st_mode & stat.S_IWGRP and about.st_gid != os.getegid()
        if about.st_mode & stat.S_IWOTH or shared:
            yield MemoryFault("open_to_others", "error", f"{shown}: others may write to it", f"chmod {mode}", path, own)
        if name == NAME and about.st_size > LIMIT:
            text = f"{shown}: is larger than {LIMIT >> 20} MiB; what is beyond is not read"
            yield MemoryFault("too_large", "warning", text, "clear facts, or move some to another file", path)
        if _is_left_behind(path) and stat.S_ISREG(about.st_mode):
            text = f"{shown}: was left behind by a process that was killed"
            yield MemoryFault("left_behind", "warning", text, "remove it", path, own)
        if os.path.dirname(path) == os.path.join(self._memory, "trash") and self._ran_out(path, about):
            text = f"{shown}: was cleared more than 30 days ago"
            yield MemoryFault("old_trash", "warning", text, "remove it", path, own)

    def _repeats(self, file: FactFile, page: FactPage) -> Iterator[MemoryFault]:
        gone = repeated(page.items)
        for item in gone:
            text = f"{_at(file, item.fact)}: says what another line says: {self._shown(item.fact)}"
            yield MemoryFault("same_fact", "warning", text, f"/memory clear {item.fact.id}", file.path, True)
        for item in twice(page):
            if item not in gone:
                text = f"{_at(file, item.fact)}: has the id of another fact above it: {self._shown(item.fact)}"
                yield MemoryFault("same_id", "warning", text, "give it another id", file.path, True)

    def _together(self, rows: Sequence[tuple[FactFile, Fact]]) -> Iterator[MemoryFault]:
        """What is wrong with facts that are sent together."""
        places = {id(fact): _at(file, fact) for file, fact in rows}
        facts = [fact for _, fact in rows]
        single = dict[tuple[str, str], Fact]()
        for file, fact in rows:
            single.setdefault((file.path, fact.text), fact)
        for first, second in near_repeats(list(single.values())):
            text = f"{places[id(second)]}: says nearly what {places[id(first)]} says: {self._shown(second)}"
            yield MemoryFault("near_same_fact", "warning", text, f"keep one: /memory clear {second.id}")
        newer, by_id = superseded(valid(facts)), {fact.id: fact for fact in facts}
        for old in (fact for fact in facts if fact.id in newer):
            new = by_id[newer[old.id]]
            text = f"{places[id(old)]}: contradicts {places[id(new)]}: {self._shown(old)} / {self._shown(new)}"
            yield MemoryFault("contradiction", "warning", text, f"clear the wrong one: /memory clear {old.id}")
        size = sum(len(fact.text) for fact in facts)
        if len(facts) > MOST_FACTS or size > MOST_TEXT:
            text = f"{counted(len(facts), 'fact')} of {size:,} characters: {MOST_FACTS} and {MOST_TEXT:,} are sent"
            path = rows[-1][0].path
            fix = "clear some; what is not sent is found by a search"
            yield MemoryFault("more_than_sent", "warning", f"{told_line(path)}: {text}", fix, path)
        last = {id: use.last[:10] for id, use in Uses(self._memory).read().items()}
        for file, fact in rows:
            if fact.created and max(fact.created[:10], last.get(fact.id, "")) < self._date(UNUSED_DAYS):
                text = f"{_at(file, fact)}: was not used for {UNUSED_DAYS} days: {self._shown(fact)}"
                fix = f"clear it if it no longer holds: /memory clear {fact.id}"
                yield MemoryFault("unused_fact", "warning", text, fix, file.path)

    def _places(self) -> Iterator[MemoryFault]:
        """Folders that are not where they should be."""
        known = self._around.known()
        for name in _listed(os.path.join(self._memory, "workspace")):
            paths = [*known[name].paths] if name in known else []
            if name != self._homes.place and not any(map(os.path.isdir, paths)):
                path = os.path.join(self._memory, "workspace", name)
                text = f"{told_line(path)}: its workspace is gone: {told_line(paths[-1] if paths else 'not known')}"
                yield MemoryFault("no_workspace", "warning", text, "move the folder away if it stays gone", path)
        for path in nested_paths(self._homes.home):
            text = f"{told_line(path)}: stands below a folder of memory, where nothing reads it"
            yield MemoryFault("nested_path", "warning", text, "codewhale memory doctor --take-over", path)
        for path in configured(self._homes.home, self._homes.person):
            if any(one == other != "" for one, other in pairwise(path.split("/"))):
                text = (
                    f"{told_line(self._homes.home)}/config.toml: memory_path is put together twice: {told_line(path)}"
                )
                yield MemoryFault("nested_path", "warning", text, "remove memory_path: nothing reads it", path)
        planned = self.plan()
        if planned.problem:
            path = os.path.join(self._memory, TAKEN)
            yield MemoryFault("damaged_record", "warning", told_line(planned.problem), "remove the file", path)
        for path, count in ((file.path, len(file.facts)) for file in planned.files):
            text = f"{told_line(path)}: memory of an older program, {counted(count, 'fact')} of it not here"
            yield MemoryFault("older_home", "warning", text, "codewhale memory doctor --take-over", path)
        for path, what in planned.others:
            text = f"{told_line(path)}: of an older program: {what}"
            yield MemoryFault("older_home", "warning", text, "codewhale memory doctor --take-over", path)

    def _waiting(self) -> Iterator[MemoryFault]:
        """Proposals that wait."""
        path = os.path.join(self._memory, "waiting.jsonl")
        for number, line in enumerate(_read(path).splitlines(), 1):
            where = f"{told_line(path)}:{number}"
            try:
                one = msgspec.json.decode(line, type=Proposal)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                if line.strip():
                    yield MemoryFault("damaged_waiting", "warning", f"{where}: is no proposal", "remove the line", path)
                continue
            shown = one_line(self._around.hide(one.text), 60)
            if what := orders_in(one.text):
                text = f"{where}: has {what}, from {one_line(one.origin or one.session, 60)}: {shown}"
                yield MemoryFault("injected_text", "warning", text, f"/memory drop {one.id}", path)
            if self._around.hide(one.text) != one.text:
                yield MemoryFault(
                    "secret", "error", f"{where}: holds a secret: {shown}", f"/memory drop {one.id}", path
                )
            if one.created and one.created[:10] < self._date(WAITING_DAYS):
                text = f"{where}: waits since {one_line(one.created, 20)}: {shown}"
                yield MemoryFault(
                    "old_waiting", "warning", text, f"/memory take {one.id}, or /memory drop {one.id}", path
                )

    def _ran_out(self, path: str, about: os.stat_result) -> bool:
        try:
            cleared = msgspec.json.decode(_read(path), type=dict[str, msgspec.Raw]).get("cleared", msgspec.Raw(b'""'))
            return msgspec.json.decode(cleared, type=str) < rfc3339(self._around.now() - SECONDS)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return about.st_mtime < self._around.now() - SECONDS

    def _date(self, days: int) -> str:
        """The date so many days ago."""
        return time.strftime("%Y-%m-%d", time.gmtime(self._around.now() - days * _DAY))

    def _shown(self, fact: Fact) -> str:
        return one_line(self._around.hide(fact.text), 60)

    # ------------------------------------------------------------------ repair

    def _repair(self, fault: MemoryFault) -> None:
        path = fault.path
        match fault.code:
            case "unreadable" | "open_to_others":
                follow = os.chmod not in os.supports_follow_symlinks
                os.chmod(path, 0o700 if os.path.isdir(path) else 0o600, follow_symlinks=follow)
            case "old_index":
                with self._index.opened():
                    pass
            case "old_trash":
                os.unlink(path)
            case "left_behind":
                _remove_left(path)
            case "same_fact" | "same_id":
                folder = os.path.relpath(os.path.dirname(path), self._memory)
                self._repair_facts(FactFile(self._memory, folder))

    def _repair_facts(self, file: FactFile) -> None:
        """Take repeats away, which go to the trash first, and give each fact an id of its own."""
        trash = Trash(self._memory, self._around.now)

        def change(data: bytes) -> bytes:
            page = read_page(data, file.scope)
            for item in twice(page):
                with_own_id(page, item)
            gone = repeated(page.items)
            trash.put([item.fact for item in gone], file.name, {item.fact.id: lines_of(page, item) for item in gone})
            for item in gone:
                page.lines[item.start : item.end] = [b""] * (item.end - item.start)
            return b"".join(page.lines)

        file.edit(change)
        self._index.forget()


def fault_lines(faults: Sequence[MemoryFault]) -> tuple[str, ...]:
    """The faults for a person."""
    marks = {"error": "ERROR", "warning": "warn "}
    lines = []
    for fault in faults:
        by = " (--fix does this)" if fault.safe else ""
        lines += [f"{marks[fault.level]}  {fault.code:<15} {fault.text}", f"       -> {fault.fix}{by}"]
    errors = sum(fault.level == "error" for fault in faults)
    total = f"{counted(errors, 'error')}, {counted(len(faults) - errors, 'warning')}"
    return (*lines, total if faults else "nothing is wrong with memory")


def _facts(page: FactPage) -> list[Fact]:
    return [item.fact for item in page.items]


def _at(file: FactFile, fact: Fact) -> str:
    return f"{told_line(file.path)}:{fact.line}"


def _is_left_behind(path: str) -> bool:
    """Whether a name is that of a draft or a lock, which are there for a moment alone."""
    name = os.path.basename(path)
    return (name[0] == "." and name.endswith(".tmp")) or name.endswith(".lock")


def _remove_left(path: str) -> None:
    """Remove a draft or a lock that nobody takes away."""
    if time.time() - os.stat(path).st_mtime < _YOUNG:
        deadline = time.monotonic() + _PATIENCE
        while os.path.lexists(path) and time.monotonic() < deadline:
            time.sleep(0.02)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    return read_regular(fd, 8 << 20) or b""


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MOST_NAMES]
    except OSError:
        return []


def _below(folder: str) -> Iterator[str]:
    names = (os.path.join(top, name) for top, folders, names in os.walk(folder) for name in (*folders, *names))
    return islice(names, _MOST_NAMES)
