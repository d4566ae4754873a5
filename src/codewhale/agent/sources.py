"""What the model is told beside the conversation and may change under it: said in the head once, and again, in full,
with the person's next words when it stands otherwise.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from codewhale.protocol.events import ContextAppended, HeaderPinned
from codewhale.session.prompt import Instruction, instruction_text, skills_text
from codewhale.session.redaction import Redactor
from codewhale.session.session import Session


class ContextSource(Protocol):
    """One thing that is kept up to date. `kind` names it in the log; `title` is how it is spoken of."""

    kind: str
    title: str

    def text(self, workspace: str) -> str:
        """How it stands now; "" when there is none."""
        ...

    def in_head(self, header: HeaderPinned, text: str) -> bool:
        """Whether the pinned head says this already."""
        ...


class InstructionSource:
    """The instruction chain of a workspace."""

    kind = "instructions"
    title = "The project's instruction files"

    def __init__(self, load: Callable[[str], Iterable[Instruction]]) -> None:
        self._load = load

    def text(self, workspace: str) -> str:
        """The chain as it stands on disk."""
        return instruction_text(self._load(workspace))

    def in_head(self, header: HeaderPinned, text: str) -> bool:
        """Whether the system text ends with it; without a chain, whether it has none either."""
        return header.system.endswith(text) if text else "<instructions" not in header.system


class SkillSource:
    """The skills that a model can read."""

    kind = "skills"
    title = "The skills"

    def __init__(self, listing: Callable[[str], str]) -> None:
        self._listing = listing

    def text(self, workspace: str) -> str:
        """The list as it stands now."""
        return skills_text(self._listing(workspace))

    def in_head(self, header: HeaderPinned, text: str) -> bool:
        """Whether the system text holds it; without skills, whether it has none either."""
        return text in header.system if text else "<skills>" not in header.system


def changes(sources: Iterable[ContextSource], session: Session, redactor: Redactor) -> tuple[ContextAppended, ...]:
    """One update for each source that stands otherwise than the model was last told."""
    state, found = session.state, list[ContextAppended]()
    for source in sources:
        text = redactor.text(source.text(state.workspace))
        update, told = _update(source, text), state.told.get(source.kind)
        known = told == update
        if told is None and state.header is not None:
            known = source.in_head(state.header, text)
        if not known:
            found.append(ContextAppended(source.kind, update))
    return tuple(found)


def _update(source: ContextSource, text: str) -> str:
    said = f"{source.title} changed and now read in full:\n{text}"
    if not text:
        said = f"{source.title} were removed; they no longer apply."
    return f"<context_update>\n{said}\n</context_update>"
