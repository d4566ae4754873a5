"""The card that asks whether a call may run: exactly what would run, the rule that asks, what holds it, the answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

from rich.cells import set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from codewhale.display.asks import (
    ESCAPED,
    WRAPPED,
    bare_lines,
    block_lines,
    exact_lines,
    held_by,
    hides,
    kind_of,
    offer_of,
    reason_of,
    spans,
)
from codewhale.display.palette import Palette
from codewhale.display.text import Span, Spans, cells, fit, flat, wrap_whole
from codewhale.display.words import Words
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.events import ApprovalAsked, Envelope
from codewhale.protocol.tools import ChildSubject, CommandSubject, JobSubject, PathSubject, Subject, UrlSubject
from codewhale.tui.asking.card import LONGEST_LINE, AnswerRow, AskCard, Patience
from codewhale.tui.keys import bindings, first_key
from codewhale.tui.widgets import hint, moves

REASON = 300
LABEL = 9
# On a screen of fewer rows each circumstance has one, and only the first keys are told.
TIGHT = 24
FEW = 3


class ApprovalCard(AskCard):
    """Asks about one call."""

    PANEL = "approval"
    BINDINGS: ClassVar[list[BindingType]] = bindings("approval")

    DEFAULT_CSS = """
    ApprovalCard.elevation, ApprovalCard.elevation:focus, ApprovalCard.elevation:focus-within {
        border: heavy $error; border-title-color: $error;
    }
    """

    def __init__(
        self, words: Words, palette: Palette, envelope: Envelope, patience: Patience | None, keys: Mapping[str, str]
    ) -> None:
        super().__init__(words, palette, envelope, patience or Patience(), keys)
        assert isinstance(envelope.event, ApprovalAsked)
        self.ask: ApprovalAsked = envelope.event
        self.expanded = False
        self.folded = 0
        # What is to be granted for longer and waits for a second answer, "" for nothing.
        self.granting: Literal["", "session", "always", "sandbox"] = ""
        self.editing = False
        self.confirming = False
        self._drawn: tuple[int, list[Spans]] = (0, [])
        self.set_class(self.ask.kind == "elevation", "elevation")
        self.retitle(words(f"asking.title_{kind_of(self.ask)}", tool=self.ask.tool))

    def compose(self) -> ComposeResult:
        """What would run, the circumstances, the answers, the reason where one is written, the keys."""
        yield self.page
        yield self.facts
        yield self.choices
        yield self.line
        yield self.hints

    # -------------------------------------------------------------- what is shown

    def lay_out(self) -> None:
        """Lay everything out: the end of what would run is always seen, or how much of it is not."""
        if not self.is_mounted:
            return
        if self._drawn[0] != self.inner:
            self._drawn = (self.inner, self._exactly(self.inner - 1))
        lines = self._drawn[1]
        self.folded = 0
        self._circumstances()
        room = self.room()
        if len(lines) > room and not self.expanded:
            # The key that unfolds is one more to tell of, which takes room itself.
            self.folded = len(lines) - room + 1
            self._circumstances()
            room = self.room()
            lines = self._fold(lines, room)
        self.page.styles.height = min(len(lines), room)
        self.page.show(lines)

    def _circumstances(self) -> None:
        """Show what stands below what would run."""
        facts, hints = list(self._facts()), list(self._keys())
        if self.screen.size.height < TIGHT:
            facts = facts[-1:] if self.granting else [_one_row(line, self.inner) for line in facts]
            hints = hints[:FEW]
            if self.low and not self.granting:
                facts = facts[:1]
        self.facts.show(facts)
        self.choices.show([] if self.writing else self.choice_lines(self.inner))
        self.show_hints(hints)

    def _fold(self, lines: list[Spans], room: int) -> list[Spans]:
        """The beginning and the end, with the number of lines between them."""
        # The end is seen whole: of a line that was wrapped, its last two rows.
        tail = max(2 if lines[-1][0][0] == WRAPPED else 1, room // 3)
        head = room - tail - 1
        self.folded = len(lines) - head - tail
        said = self.words("asking.more", n=self.folded, press=first_key("app.pager", self.keys))
        return [*lines[:head], ((fit(said, self.inner - 1), "bold accent"),), *lines[-tail:]]

    def _exactly(self, width: int) -> list[Spans]:
        """All that would run, nothing left out."""
        ask = self.ask
        lines: list[Spans] = []
        diffs = {block.path for block in ask.display if isinstance(block, DiffBlock)}
        for subject in ask.subjects:
            if not (isinstance(subject, PathSubject) and subject.path in diffs):
                lines += self._subject(subject, width)
        for block in ask.display:
            lines += block_lines(block, width, self.words)
        return lines or bare_lines(ask.tool, self.arguments, self.words("asking.no_arguments"), width)

    def _subject(self, subject: Subject, width: int) -> list[Spans]:
        match subject:
            case CommandSubject(command=command, stdin=stdin):
                lines = exact_lines(command, width, first="$ ")
                return [*lines, *(self._named("asking.stdin", stdin, width) if stdin else ())]
            case PathSubject(path=path, write=write):
                return self._named("asking.write" if write else "asking.read", path, width)
            case UrlSubject(url=url):
                return self._named("asking.url", url, width)
            case JobSubject(id=job, text=""):
                return self._named("asking.job_end", job, width)
            case JobSubject(id=job, text=text):
                return [*self._named("asking.job_tell", job, width), *exact_lines(text, width)]
            case ChildSubject(role=role, objective=objective):
                return [*self._named("asking.child", role, width), *exact_lines(objective, width)]

    def _named(self, key: str, what: str, width: int) -> list[Spans]:
        name = self.words(key)
        first, *rest = exact_lines(what, width - cells(name) - 1, first="")
        return [((f"{name} ", "muted"), *first), *rest]

    def _facts(self) -> Iterable[Spans]:
        ask, words = self.ask, self.words
        wide = (ask.sandbox == "none" and ask.rule != "path.outside") or "network" in ask.allowances
        circumstances: list[Span] = [(held_by(ask, words), "warning" if wide else "text")]
        for subject in ask.subjects:
            if isinstance(subject, CommandSubject):
                folder = words("asking.root") if subject.cwd in ("", ".") else subject.cwd
                behind = f" · {words('asking.background')} · " if subject.background else " · "
                where = spans(words("asking.in_folder", folder=folder), "text")
                circumstances = [*where, (behind, "warning" if subject.background else "muted"), *circumstances]
        yield tuple(circumstances)
        rule = spans(f" ({ask.rule})", "muted") if ask.rule else []
        yield self._fact("why", *spans(flat(reason_of(ask, words), REASON), "text"), *rule)
        for clause in ask.clauses:
            yield self._fact("clause", *spans(f"{clause.id}: {flat(clause.text, REASON)}", "bold warning"))
        if any(hides(text) for text in self._texts()):
            yield ((words("asking.hidden"), ESCAPED),)
        if self.granting:
            yield ((self._grant(), "bold warning"),)

    def _grant(self) -> str:
        """What a rule would allow from now on, in words."""
        offer = self.ask.offer
        if self.granting == "sandbox":
            return self.words("asking.offer_sandbox", press=first_key("app.ask_again", self.keys))
        return "" if offer is None else offer_of(offer, self.words)

    def _fact(self, name: str, *said: Span) -> Spans:
        return ((set_cell_size(self.words(f"asking.{name}"), LABEL), "muted"), *said)

    def _texts(self) -> Iterable[str]:
        """What a person is asked to read of others."""
        for subject in self.ask.subjects:
            match subject:
                case CommandSubject(command=text, stdin=stdin):
                    yield from (text, stdin)
                case PathSubject(path=text) | UrlSubject(url=text):
                    yield text
                case JobSubject(text=text) | ChildSubject(objective=text):
                    yield text

    def _keys(self) -> Iterable[Spans]:
        words, keys = self.words, self.keys
        if self.writing:
            typing = "word" if self.confirming else "edit" if self.editing else "reason"
            yield ((words(f"asking.{typing}_keys"), "muted"),)
            return
        yield moves(self.PANEL, words("asking.move"), keys)
        yield hint("approval.choose", words("asking.choose"), keys)
        cancel = "go_back" if self.granting else "cancel_child" if self.ask.asker else "cancel"
        yield hint("approval.cancel", words(f"asking.{cancel}"), keys)
        if self.folded or self.expanded:
            yield hint("app.pager", words("asking.fold" if self.expanded else "asking.expand"), keys)
        yield hint("approval.leave", words("asking.leave"), keys)

    # -------------------------------------------------------------- what is answered

    @property
    def rows(self) -> Sequence[AnswerRow]:
        """What can be answered. What grants more than this once has a row that leads to a second question, and that
        begins on its way back: a key held down grants nothing."""
        words = self.words
        offer = self.ask.offer
        if self.granting:
            rows = [AnswerRow("back", words("asking.go_back"))]
            rows.append(AnswerRow("grant", words(f"asking.grant_{self.granting}")))
            if self.granting != "sandbox" and offer is not None and offer.field in ("prefix", "tests") and offer.value:
                rows.append(AnswerRow("exact", words("asking.grant_exact")))
            return rows
        if self.ask.clauses:
            confirm = words("asking.allow_clause", word=self.ask.word)
            return (AnswerRow("confirm", confirm), AnswerRow("deny", words("asking.deny")))
        rows = [AnswerRow("allow", words(f"asking.allow_{self.ask.kind}"))]
        if offer is not None and offer.field == "tests":
            rows.append(AnswerRow("tests", words("asking.do_tests"), flat(offer.value)))
        if self.ask.held:
            rows.append(AnswerRow("sandbox", words("asking.do_sandbox")))
        if offer is not None:
            rows.append(AnswerRow("session", words("asking.do_session"), self._grant()))
        if offer is not None and offer.field not in ("tests", "folder"):  # a folder belongs to a session alone
            always = words("asking.do_always", what=offer_of(offer, words, short=True))
            rows.append(AnswerRow("always", always, words("asking.asks_again")))
        if self._command():
            rows.append(AnswerRow("edit", words("asking.edit")))
        return (*rows, AnswerRow("deny", words("asking.deny")))

    def action_choose(self) -> None:
        if self.writing:
            return
        match self.rows[self.cursor].name:
            case "allow":
                self.post_message(self.Answered(self.answer(allowed=True)))
            case "grant" if self.granting:
                self.post_message(self.Answered(self.answer(allowed=True, remember=self.granting)))
            case "exact":
                self.post_message(self.Answered(self.answer(allowed=True, remember=self.granting, exact=True)))
            case "tests":
                self.post_message(self.Answered(self.answer(allowed=True, remember="always")))
            case "session" | "always" | "sandbox" as name:
                self._ask_again(name)
            case "back":
                self._ask_again("")
            case "edit":
                self.write(True)
                self.editing, self.line.value = True, self._command()
                self.line.cursor_position = len(self.line.value)
            case "confirm":
                self.confirming = True
                self.write(True, self.words("asking.word", word=self.ask.word))
            case "deny":
                self.editing = self.confirming = False
                self.write(True, self.words("asking.reason"))

    def _ask_again(self, granting: Literal["", "session", "always", "sandbox"]) -> None:
        """Ask for a second answer, or go back to the first."""
        former, self.granting = self.granting, granting
        names = [row.name for row in self.rows]
        self.cursor = names.index(former) if former in names else 0
        self.lay_out()

    @on(Input.Submitted)
    def _written(self, event: Input.Submitted) -> None:
        """Deny with this reason, run this command, or let it through by this word."""
        event.stop()
        if self.confirming:
            if self.ask.confirmed(event.value):
                self.post_message(self.Answered(self.answer(allowed=True, confirm=event.value.strip())))
            self.line.value = ""  # behind which stands what is to be typed
        elif not self.editing:
            self.post_message(self.Answered(self.answer(), reason=event.value.strip()))
        elif event.value.strip():
            changed = event.value if event.value != self._command() else ""
            self.post_message(self.Answered(self.answer(allowed=True, command=changed)))

    def action_cancel(self) -> None:
        """Close the line, go back, or refuse and stop the turn."""
        if self.writing:
            self.write(False)
        elif self.granting:
            self._ask_again("")
        else:
            self.post_message(self.Answered(self.answer(), stop=True))

    def _command(self) -> str:
        """The one command that is asked about, where a line can hold it as it is; "" else."""
        match self.ask.subjects:
            case (CommandSubject(command=command),) if self.ask.kind == "policy" and len(command) <= LONGEST_LINE:
                return command if self.line.validate_value(command) == command else ""
        return ""

    # -------------------------------------------------------------- moving about in it

    def action_fold_all(self) -> None:
        """Show all of it to scroll through, or its beginning and its end."""
        self.expanded = not self.expanded
        self.lay_out()


def _one_row(line: Spans, width: int) -> Spans:
    pieces = wrap_whole(line, width - 1, words=False)
    return pieces[0] if len(pieces) == 1 else (*pieces[0], ("…", "muted"))
