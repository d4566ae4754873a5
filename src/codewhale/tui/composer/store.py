"""Where a composer's text is kept: the draft at every change, the history, the stash, the files of attachments. One
place that no failing disk gets past: what cannot be kept is said once, and typing goes on."""

import contextlib
import os
from collections.abc import Callable

from codewhale.display.attachments import Chip, Folder, chip_of_paste, image_chip, prune, text_chip
from codewhale.display.drafts import Draft, Drafts, HistoryWalk, Parked, PromptHistory, Stash, fact_of
from codewhale.lib.text import one_line


class ComposerStore:
    """The keeping of one composer. `trouble` is told in one line, once, when the disk does not take something."""

    def __init__(self, home: str, workspace: str) -> None:
        self._home = home
        self.session = ""
        self.trouble: Callable[[str], None] = _unheard
        self._told = False
        self._saved: Draft | None = None
        self._settle(workspace)

    def _settle(self, workspace: str) -> None:
        self.workspace = workspace
        self.folder = Folder(self._home, workspace)
        self._drafts = Drafts(self.folder)
        self._stash = Stash(self.folder)
        self.history = PromptHistory(self.folder)
        self.walk = HistoryWalk(lambda: self.history.entries)

    # -------------------------------------------------------------- drafts

    def open(self, session: str, workspace: str, now: Draft) -> Draft:
        """Keep for another session from here on, while `now` stands in the composer; returns what should stand there.
        At the start what was typed already stays, and what a process that is gone left here comes back."""
        first = not self.session
        self.save(now, sync=True)
        withheld = bool(self.session) and self.history.withholds(now)
        if workspace and os.path.realpath(workspace) != os.path.realpath(self.workspace):
            self._settle(workspace)
        if withheld:
            self._stash.park(now, withheld=True)
        before, self.session = self.session, session
        self._saved = None
        found = self._drafts.load(session)
        for left in self._orphans():
            found, older = (left, found) if not found else (found, left)
            self.park(older)
        if first and now:
            self.park(found)
            found = now
        self.save(found)
        if first:
            with contextlib.suppress(OSError):
                self._drafts.save(before, Draft())
            if os.path.isdir(self.folder.path("attached")):
                prune(self.folder, self._kept_files())
        return found

    def save(self, draft: Draft, *, sync: bool = False) -> None:
        """Keep what stands in the composer."""
        draft = Draft() if self.history.withholds(draft) else draft
        if draft == self._saved and not sync:
            return
        with self._guarded():
            self._drafts.save(self.session, draft, sync=sync)
            self._saved = draft

    def _orphans(self) -> list[Draft]:
        with self._guarded():
            return self._drafts.orphans(self.session)[::-1]
        return []

    # -------------------------------------------------------------- history and stash

    def sent(self, draft: Draft) -> None:
        """It was sent: it joins the history, and what was changed on a walk through it is parked."""
        with self._guarded():
            self.history.add(draft, self.session, fact=bool(fact_of(draft)))
            for row in self._stash.rows() if self.history.withholds(draft) else ():
                if row.draft.text == draft.text:
                    self._stash.take(row)
        for left in self.walk.end():
            if left != draft:
                self.park(left)

    def park(self, draft: Draft) -> None:
        """Put a draft into the stash."""
        with self._guarded():
            self._stash.park(draft, withheld=self.history.withholds(draft))

    def parked(self) -> list[Parked]:
        """What is in the stash, the latest first."""
        return self._stash.rows()

    def take(self, row: Parked) -> Draft | None:
        """Take a draft out of the stash; None when it has gone."""
        with self._guarded():
            return self._stash.take(row)
        return row.draft

    # -------------------------------------------------------------- attachments

    def chip(self, pasted: str) -> Chip | None:
        """What a paste is as an attachment; None for plain text. Raises TooLargeError."""
        with self._guarded():
            return chip_of_paste(pasted, self.folder)
        return None

    def text(self, text: str) -> Chip | None:
        """Text as an attachment, whatever its length. Raises TooLargeError."""
        with self._guarded():
            return text_chip(text, self.folder)
        return None

    def image(self, data: bytes, name: str) -> Chip | None:
        """An image as an attachment; None when it is none. Raises TooLargeError."""
        with self._guarded():
            return image_chip(data, name, self.folder)
        return None

    def _kept_files(self) -> set[str]:
        parked = {chip.path for row in self._stash.rows() for chip in row.draft.chips}
        return parked | {chip.path for entry in self.history.entries for chip in entry.chips}

    def _guarded(self) -> "_Guard":
        return _Guard(self._failed)

    def _failed(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            self.trouble(one_line(str(error.strerror or error)))


class _Guard:
    """Reports an OSError of its block instead of raising it."""

    def __init__(self, failed: Callable[[OSError], None]) -> None:
        self._failed = failed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, OSError):
            self._failed(error)
            return True
        return False


def _unheard(line: str) -> None:
    pass
