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
from codewhale.agent.compaction import Compactions
from codewhale.agent.dispatch import Dispatcher
from codewhale.agent.engine import Engine
from codewhale.agent.observers import Observers, nobody
from codewhale.agent.opening import Opener, Surroundings
from codewhale.agent.passage import CALL_SECONDS, Passage
from codewhale.catalog.registry import Catalog
from codewhale.lib.threads import run_to_end
from codewhale.models.scripted import ScriptedProvider
from codewhale.permissions.policy import decide
from codewhale.protocol.blocks import MarkdownBlock
from codewhale.protocol.decisions import Decision, DecisionRequest
from codewhale.protocol.errors import ToolError
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession
from codewhale.protocol.tools import BoundCall, CallContext, Effect, Preview, ToolResult, ToolSpec
from codewhale.repair.repairer import CallRepairer
from codewhale.session.artifacts import ArtifactStore
from codewhale.session.lists import Lists
from codewhale.session.outputs import Outputs
from codewhale.session.redaction import Redactor
from codewhale.session.session import Session
from codewhale.session.store import SessionStore
from codewhale.testing import FakeClock
from codewhale.tools.base import Args, bound, gated, outlined, specs, tool


class Told(Args):
    """What a tool is to do: `wait` for the gate of this name (in a thread for the one named latch), then `fail`,
    `crash` or say `say`."""

    wait: str = ""
    fail: str = ""
    crash: str = ""
    say: str = "ok"
    metadata: dict[str, Any] | None = None


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
        return ToolResult(args.say, metadata=args.metadata or {})

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

    def changed_files(self, session: str, call_id: str) -> bool:
        """Nobody watches files here."""
        return False

    def repairer(self) -> CallRepairer:
        """What makes out damaged calls."""
        return CallRepairer(self._catalog)

    def bind(self, spec: ToolSpec, arguments: dict[str, Any]) -> BoundCall:
        """The call of a row's tool with these arguments."""
        found = self._tools[spec.name]
        try:
            args = msgspec.convert(arguments, found.args, strict=True)
        except msgspec.ValidationError as error:
            raise ToolError("invalid_input", f"The arguments do not fit: {error}.") from None
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

    def answered(self, request: DecisionRequest, decision: Decision, by: str, remember: str = "") -> None:
        """Keep it for the test."""
        self.answers.append((by, remember))


class Stage:
    """An engine in a folder, its obedient tools and its scripted model."""

    def __init__(
        self,
        home: Path,
        workspace: Path,
        script: Sequence[Any],
        observers: Observers = nobody,
        seconds: float = CALL_SECONDS,
    ) -> None:
        self.home, self.workspace, self.clock = home, workspace, FakeClock()
        self.tools = ObedientTools()
        self.provider = ScriptedProvider(script)
        self.sessions = SessionStore(str(home), self.clock)
        self.catalog = Catalog(specs(ObedientTools, "obedient"))
        artifacts, redactor = ArtifactStore(str(home / "artifacts")), Redactor({})
        self.artifacts = artifacts
        around = Surroundings(
            home=str(home),
            sessions=self.sessions,
            artifacts=artifacts,
            lists=Lists(),
            clock=self.clock,
            redactor=redactor,
            compaction=Compactions(artifacts).of,
            build_provider=lambda name, model: self.provider,
            default_route=lambda provider: (provider or "scripted", "scripted"),
            find_root=lambda path: None,
            tools=HeadChoice(always=("fim_edit",)),
        )
        self.asking = Asking(lambda session: self.engine.session(session))
        self.gate = BareGate()
        passage = Passage(self.gate, self.asking, observers, seconds)
        self.dispatcher = Dispatcher(Box(self.tools), passage, Outputs(artifacts, redactor))
        self.opener = Opener(around, self.catalog)
        self.facts = ""
        self.engine = Engine(self.opener, self.catalog, self.dispatcher, lambda path: self.facts)

    def open(self, mode: Mode = Mode.YOLO, authority: Authority = Authority.AUTO, **fields: Any) -> Session:
        """An open session."""
        return self.engine.open(OpenSession(str(self.workspace), mode, authority, **fields))


@asynccontextmanager
async def staged(
    home: Path,
    workspace: Path,
    script: Sequence[Any] = (),
    observers: Observers = nobody,
    seconds: float = CALL_SECONDS,
) -> AsyncIterator[Stage]:
    """A stage, closed at the end."""
    stage = Stage(home, workspace, script, observers, seconds)
    try:
        yield stage
    finally:
        await stage.engine.aclose()


async def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds. Raises TimeoutError after 10 seconds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise TimeoutError
