"""The needs that point upward: implemented above, handed down by `app`."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from codewhale.protocol.children import ChildPlan, ChildRequest, ChildView
from codewhale.protocol.events import Rewound
from codewhale.protocol.modes import Approval, Mode
from codewhale.protocol.ops import Limits, StatusView, UsageView
from codewhale.protocol.stream import Usage
from codewhale.protocol.tools import ToolSpec
from codewhale.protocol.views import ContextView, FormerMessage, ToolsView


class Asker(Protocol):
    """Puts something to a person and waits for the answer."""

    def attended(self, session: str) -> bool: ...
    async def question(
        self, session: str, questions: Sequence[dict[str, Any]], seconds: float
    ) -> tuple[dict[str, Any], ...]:
        """Answers [{id, label, value}] in order. Raises ToolError not_available when nobody can be asked,
        timeout after `seconds`."""


class Infilled(Struct, frozen=True):
    """What a model put between two texts. `cut`: it hit its length limit; `left_out` is how many bytes of the two, the
    farthest ones, were more than the model reads."""

    text: str
    cut: bool = False
    left_out: int = 0


class ModelQuestion(Struct, frozen=True, omit_defaults=True):
    """One question to a model, beside the conversation. `recipe` is what the log keeps in the place of `text`: the
    text can be built again from it and from what it names. `model` "" is the provider's fast model where one is known,
    else the session's; `temperature` None is the provider's; an answer must fit `schema`, where there is one."""

    text: str
    recipe: dict[str, object]
    system: str = ""
    model: str = ""
    effort: str = ""
    temperature: float | None = None
    max_tokens: int = 4096
    seconds: float = 120.0
    schema: dict[str, object] | None = None


class ModelReply(Struct, frozen=True):
    """The answer to a question: `finish` is "stop", "length" or another word of the provider; `model` the one asked."""

    text: str
    finish: str
    usage: Usage
    model: str


class Completer(Protocol):
    """One-shot model calls outside the conversation."""

    async def complete(self, session: str, prompt: str, *, max_tokens: int) -> str:
        """The model's answer text, charged to the session's budget. Raises ToolError."""

    def asks(self, session: str) -> str:
        """The model that questions of a session go to where they name none."""

    async def question(self, session: str, question: ModelQuestion) -> ModelReply:
        """Ask one question: charged to the session's budget, admitted by the lane of its provider. A cancel ends the
        request. Raises QuestionFailed."""

    async def infill(self, session: str, prefix: str, suffix: str, *, max_tokens: int) -> Infilled:
        """What belongs between two texts, charged to the session's budget. Raises ToolError, not_available where the
        session's provider cannot fill in the middle."""


class ChildRunner(Protocol):
    """Runs conversations for a session: its children."""

    def plan(self, request: ChildRequest) -> ChildPlan:
        """What a request comes to; nothing is opened. Raises ToolError where it cannot be."""

    async def open(self, request: ChildRequest) -> ChildView:
        """Open a child and begin its task; it runs beside the parent. Raises ToolError."""

    def view(self, parent: str, name: str) -> ChildView:
        """How a child stands, by name or id. Raises ToolError for one that there is not."""

    def views(self, parent: str) -> tuple[ChildView, ...]:
        """The children that are not released, in the order of their opening."""

    async def tell(self, parent: str, name: str, text: str) -> ChildView:
        """Give a child a message: at its next step, or as its next task where it is over. Raises ToolError."""

    async def wait(
        self, parent: str, names: Sequence[str], seconds: float, *, every: bool = False
    ) -> tuple[ChildView, ...]:
        """How the named children stand (none: all) once one of those that run is over, or `every` one; after `seconds`
        at most. Raises ToolError."""

    async def stop(self, parent: str, name: str) -> ChildView:
        """Stop a child and all that work for it; its log stays. Raises ToolError."""

    async def release(self, parent: str, name: str) -> ChildView:
        """Stop a child where it runs, and forget its name. Raises ToolError."""


class FoundTool(Struct, frozen=True):
    """A tool that search found; `known` says that the model was shown it before, `note` what else it should know."""

    name: str
    description: str
    schema: dict[str, Any]
    known: bool = False
    note: str = ""


class Findings(Struct, frozen=True):
    """What search found, best first, and what fits but cannot be used now: names with the reason."""

    tools: tuple[FoundTool, ...]
    unavailable: tuple[tuple[str, str], ...] = ()


class CatalogView(Protocol):
    """Looks into the catalog: for tool search, repair and listings."""

    def spec(self, name: str) -> ToolSpec | None: ...
    def names(self) -> tuple[str, ...]: ...
    async def learn(self) -> None:
        """Wait, not for long, for tools that are not known yet."""

    def find(self, session: str, query: str, count: int, *, pattern: bool) -> Findings:
        """Up to `count` tools for a need in words, or for a regular expression (`pattern`), best first. Raises
        ToolError for an expression that cannot be used."""


class SessionControl(Protocol):
    """What slash commands may do to a session."""

    def set_effort(self, session: str, effort: str) -> None:
        """Change how hard the model thinks, from the next turn on. Raises SessionError for an unknown level."""

    def status(self, session: str) -> StatusView: ...
    def set_mode(self, session: str, mode: Mode) -> None:
        """Change the mode. Raises SessionError while a turn runs."""

    def borrow(self, session: str, mode: Mode | None, model: str) -> Callable[[], None]:
        """Take a narrower mode and another model until the next turn has ended, or what is returned is called. Raises
        SessionError while a turn runs, ConfigError."""

    def set_approval(self, session: str, approval: Approval) -> None:
        """Change what becomes of calls that no rule decides. Raises SessionError while a turn runs, unless it becomes
        narrower."""

    def set_model(self, session: str, provider: str, model: str) -> None:
        """Change the model; empty provider keeps it. Raises SessionError while a turn runs or for an
        unknown provider."""

    def folders(self, session: str) -> tuple[str, ...]:
        """The folders beside the workspace that belong to the session."""

    def set_folder(self, session: str, path: str, added: bool) -> str:
        """Add one, or take it away; where it really is, "" for one to take away that was none of the session's. Raises
        ConfigError for one that cannot be added, SessionError while a turn runs."""

    async def context(self, session: str) -> ContextView: ...
    def tools(self, session: str) -> ToolsView: ...
    async def retry(self, session: str) -> str:
        """Ask the message of the last turn again; its text. Raises SessionError while a turn runs, and where there is
        no message."""

    def former(self, session: str) -> tuple[FormerMessage, ...]:
        """The messages that the conversation can go back to, oldest first."""

    def rewind(self, session: str, turn: int, files: bool) -> FormerMessage:
        """Let the conversation stand as before turn `turn`; the message that began it. `files` notes that files were
        put back too. Raises SessionError while a turn runs, and where no such message stands."""

    def undo_rewind(self, session: str) -> Rewound | None:
        """Undo the last rewind; None where there is none since the last turn. Raises SessionError while a turn runs."""

    def rename(self, session: str, title: str) -> None:
        """Give the session a title. Raises SessionError for one that is no short line of text."""

    async def compact(self, session: str, focus: str) -> tuple[int, int]:
        """Say the conversation shorter, above all keeping `focus`; about how many tokens it took before and takes
        now. Raises SessionError while a turn runs, and when it could not be done: then nothing has changed."""

    def undo_compaction(self, session: str) -> int:
        """Take the last compaction back; its number, 0 when none stands. Raises SessionError while a turn runs."""

    def usage(self, session: str) -> UsageView: ...
    def set_budget(self, session: str, limits: Limits) -> None:
        """Bound the session's whole life, from the next model call on. Raises SessionError for a bound on money where
        the model's price is unknown."""
