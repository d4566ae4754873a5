"""An engine over tools that obey a test: they wait, fail, raise or ask as they are told."""

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from codewhale.agent.activation import HeadChoice
from codewhale.agent.asking import Asking
from codewhale.agent.authorize import Authorizer
from codewhale.agent.call_hooks import HooksOf, nobody
from codewhale.agent.compaction import ConversationCompactor
from codewhale.agent.control import SessionControls
from codewhale.agent.engine import Engine
from codewhale.agent.guidance import SkillGuide
from codewhale.agent.session_factory import SessionDefaults, SessionDeps, SessionFactory, Stores
from codewhale.agent.tool_calls import CALL_SECONDS, ToolCallRunner
from codewhale.catalog.registry import Catalog
from codewhale.lib.threads import run_to_end
from codewhale.models.scripted import ScriptedProvider
from codewhale.permissions.policy import decide
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.blocks import MarkdownBlock
from codewhale.protocol.decisions import Decision, DecisionRequest
from codewhale.protocol.errors import ToolError
from codewhale.protocol.files import FileChange
from codewhale.protocol.memory import LayerRow
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, OpenSession
from codewhale.protocol.skills import Guided, Mentioned
from codewhale.protocol.tools import (
    BoundCall,
    CallContext,
    Effect,
    ListUpdate,
    Preview,
    SandboxRefusal,
    ToolResult,
    ToolSpec,
    Update,
)
from codewhale.repair.repairer import CallRepairer
from codewhale.session.footprint import LAYERS
from codewhale.session.lists import Lists
from codewhale.session.outputs import Outputs
from codewhale.session.redaction import Redactor
from codewhale.session.session import Session
from codewhale.session.store import SessionStore
from codewhale.testing import FakeClock
from codewhale.tools.base import Args, bound, gated, outlined, specs, tool
from support.patience import Moment


class Told(Args):
    """What a tool is to do: `wait` for the gate of this name (in a thread for the one named latch), then `fail`,
    `crash` or say `say`; `network` is the evidence that the sandbox refused it the network, `plan` a
    step that the plan is now."""

    wait: str = ""
    fail: str = ""
    crash: str = ""
    say: str = "ok"
    metadata: dict[str, Any] | None = None
    network: str = ""
    plan: str = ""


class ObedientTools:
    """Tools under listed names whose effects differ and whose deeds do not."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.latch = threading.Event()
        self.begun: list[str] = []
        self.contexts: list[CallContext] = []
        self.shown: list[str] = []
        self.hang = False  # from now on no call ends

    def gate(self, name: str) -> asyncio.Event:
        """The gate of this name."""
        return self.gates.setdefault(name, asyncio.Event())

    async def _obey(self, args: Told, call: CallContext) -> ToolResult:
        self.begun.append(call.call_id)
        self.contexts.append(call)
        if self.hang:
            await asyncio.Event().wait()
        if args.wait == "latch":
            await run_to_end(self.latch.wait, 10)
        elif args.wait == "thread":
            await asyncio.to_thread(self.latch.wait, 60)
        elif args.wait:
            call.progress(f"waiting for {args.wait}")
            await self.gate(args.wait).wait()
        if args.fail:
            raise ToolError("execution_failed", args.fail)
        if args.crash:
            raise RuntimeError(args.crash)
        updates: tuple[Update, ...] = (SandboxRefusal("network", args.network),) if args.network else ()
        updates += (ListUpdate("plan", ({"step": args.plan},)),) if args.plan else ()
        return ToolResult(args.say, metadata=args.metadata or {}, updates=updates)

    @tool("read_file", effects={Effect.READS}, parallel=True)
    async def read(self, args: Told, call: CallContext) -> ToolResult:
        """Read."""
        return await self._obey(args, call)

    @tool("write_file", effects={Effect.WRITES})
    async def write(self, args: Told, call: CallContext) -> ToolResult:
        """Write."""
        return await self._obey(args, call)

    @outlined(lambda args, workspace: (MarkdownBlock(f"{args.say} in {workspace}"),) if args.say else ())
    @tool("exec_shell", effects={Effect.EXECUTES})
    async def execute(self, args: Told, call: CallContext) -> ToolResult:
        """Execute."""
        return await self._obey(args, call)

    @gated("fim")
    @tool("fim_edit", effects={Effect.WRITES})
    async def fill(self, args: Told, call: CallContext) -> Preview:
        """Show what it will say, then say it."""
        await self._obey(Told(wait=args.wait, fail=args.fail), call)
        shown, self.shown = f"shown {len(self.shown) + 1}: {args.say}", [*self.shown, args.say]
        return Preview((MarkdownBlock(shown),), lambda: self._obey(Told(say=shown, crash=args.crash), call))

    @tool("exec_shell_wait", effects={Effect.READS}, polls=True)
    async def poll(self, args: Told, call: CallContext) -> ToolResult:
        """Poll."""
        return await self._obey(args, call)


class Box:
    """The toolbox over one family."""

    def __init__(self, family: object) -> None:
        self._tools = bound(family)
        self._catalog = Catalog(specs(type(family), "obedient"))

    def spec(self, name: str) -> ToolSpec | None:
        """The row of a name, or None."""
        return self._catalog.spec(name)

    def changed_files(self, session: str, call_id: str) -> tuple[FileChange, ...]:
        """Nobody watches files here."""
        return ()

    def repairer(self) -> CallRepairer:
        """What makes out damaged calls."""
        return CallRepairer(self._catalog)

    def bind(self, spec: ToolSpec, arguments: dict[str, Any]) -> BoundCall:
        """The call of a row's tool with these arguments."""
        found = self._tools[spec.name]
        try:
            args = msgspec.convert(arguments, found.args, strict=True)
        except msgspec.ValidationError as error:
            raise ToolError("invalid_input", f"Invalid arguments: {error}.") from None
        outline = partial(found.decl.outline, args)
        return BoundCall(found.decl.subjects(args), lambda call: found.run(args, call), outline)


class BareGate:
    """Decides by modes and needs alone, and remembers nothing."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str]] = []
        self.disabled: frozenset[str] = frozenset()
        self.salt = b""
        self.fault: Exception | None = None

    def decide(self, request: DecisionRequest) -> Decision:
        """Without anybody's rules."""
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return decide(request, self.disabled)

    def digest(self, request: DecisionRequest, arguments: Mapping[str, Any]) -> str:
        """Of the arguments and a salt."""
        return hashlib.sha256(self.salt + msgspec.json.encode(arguments)).hexdigest()

    def answered(self, request: DecisionRequest, decision: Decision, answer: Answer | None) -> None:
        """Keep it for the test."""
        self.answers.append(("denied", "") if answer is None else ("allowed", answer.remember))


class OneProvider:
    """The same provider under every name."""

    def __init__(self, provider: Callable[[], ScriptedProvider]) -> None:
        self._provider = provider

    def build(self, name: str, model: str) -> ScriptedProvider:
        """It."""
        return self._provider()


class NoTexts:
    """A workspace of which a head says nothing, and a message `facts()`."""

    def __init__(self, facts: Callable[[], str]) -> None:
        self._facts = facts

    def facts(self, workspace: str) -> str:
        """As the test has it."""
        return self._facts()

    def layers(self, workspace: str, session: str) -> Sequence[LayerRow]:
        """They hold nothing."""
        return LAYERS

    def root(self, workspace: str) -> str | None:
        """No repository."""
        return None

    def skills(self, workspace: str) -> str:
        """No skills."""
        return ""

    rules = skills

    def codemap(self, workspace: str) -> str:
        """No map."""
        return ""

    def notes(self, workspace: str) -> str:
        """No notes."""
        return ""

    sources = notes

    def cleared(self, workspace: str) -> dict[str, str]:
        """Nothing."""
        return {}

    def law(self, workspace: str) -> str:
        """No constitution."""
        return ""

    def unverified(self, session: Session) -> list[dict[str, str]] | None:
        """Nothing that wants verification."""
        return None


class NoSkills:
    """A workspace without skills and rules."""

    def look(self, workspace: str) -> bool:
        return False

    some = look

    def mentioned(self, workspace: str, text: str) -> Mentioned:
        return Mentioned()

    def planned(self, workspace: str, lines: Sequence[str]) -> tuple[Guided, ...]:
        return ()

    def touching(self, workspace: str, paths: Sequence[str]) -> tuple[Guided, ...]:
        return ()

    def offered(self, workspace: str, text: str) -> tuple[tuple[str, str], ...]:
        return ()

    def standing(self, workspace: str) -> tuple[Guided, ...]:
        return ()

    def activation(self, workspace: str, name: str, by: str, lasts: str) -> Guided | None:
        return None


class Stage:
    """An engine in a folder, its obedient tools and its scripted model."""

    def __init__(
        self,
        home: Path,
        workspace: Path,
        script: Sequence[Any],
        observers: HooksOf = nobody,
        seconds: float = CALL_SECONDS,
    ) -> None:
        self.home, self.workspace, self.clock = home, workspace, FakeClock()
        self.tools = ObedientTools()
        self.provider = ScriptedProvider(script)
        self.sessions = SessionStore(str(home), self.clock)
        self.catalog = Catalog(specs(ObedientTools, "obedient"))
        artifacts, redactor = ArtifactStore(str(home / "artifacts")), Redactor({})
        self.artifacts = artifacts
        deps = SessionDeps(
            home=str(home),
            stores=Stores(self.sessions, artifacts, Lists()),
            clock=self.clock,
            providers=OneProvider(lambda: self.provider),
            texts=NoTexts(lambda: self.facts),
            compactor=lambda session, settings: ConversationCompactor(session, settings, artifacts),
            defaults=lambda path: SessionDefaults(
                redactor,
                lambda provider: (provider or "scripted", "scripted"),
                tools=HeadChoice(always=("fim_edit",)),
            ),
        )
        self.asking = Asking(lambda session: self.engine.turn(session))
        self.gate = BareGate()
        authorizer, outputs = Authorizer(self.gate, self.asking), Outputs(artifacts, redactor)
        self.runner = ToolCallRunner(Box(self.tools), authorizer, observers, outputs, seconds=seconds)
        self.factory = SessionFactory(deps, self.catalog)
        self.facts = ""
        self.engine = Engine(self.factory, self.catalog, self.runner, SkillGuide(NoSkills()))
        self.control = SessionControls(self.engine, self.factory)

    def open(self, mode: Mode = Mode.YOLO, authority: Authority = Authority.AUTO, **fields: Any) -> Session:
        """An open session."""
        return self.engine.open(OpenSession(str(self.workspace), mode, authority, **fields))


@asynccontextmanager
async def staged(
    home: Path,
    workspace: Path,
    script: Sequence[Any] = (),
    observers: HooksOf = nobody,
    seconds: float = CALL_SECONDS,
) -> AsyncIterator[Stage]:
    """A stage, closed at the end."""
    stage = Stage(home, workspace, script, observers, seconds)
    try:
        yield stage
    finally:
        await stage.engine.aclose()


async def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds. Raises TimeoutError."""
    began = Moment()
    while not condition():
        if began.hung:
            raise TimeoutError
        await asyncio.sleep(0.001)
