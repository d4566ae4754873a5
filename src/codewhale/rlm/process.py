"""The host's side of a kernel: its process, held to its interpreter and one source, the frames both send, and its end.
What comes from there is written by a model's code: whatever does not fit ends the kernel, and nothing grows with it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Self

import msgspec
from msgspec import Struct

from codewhale.process import launcher
from codewhale.process.command import Ceiling, Launch
from codewhale.process.itself import interpreter
from codewhale.process.launch import Child, settle, start
from codewhale.process.sandbox.landlock import SeccompFilter, build_filter, machine_known
from codewhale.process.sandbox.profiles import ISOLATED, NONE
from codewhale.protocol.errors import ToolError
from codewhale.rlm.model import Answered, CodeError, KernelAsk, RoundResult

KERNEL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "kernel")
MOST_FRAME = 32 << 20
MOST_ASKS = 64  # unanswered at once
MEMORY = 1 << 30
_INTERPRETER = 64 << 20  # what a kernel that has used all its own memory holds besides: programs, libraries, stacks
GRACE = 2.0  # a kernel interrupts itself at the end of a round's time; after so much more it is ended
CANCEL_SECONDS = 0.2
START_SECONDS = 30.0
_FILES = 64
_OUTPUT = 4096
# As -I would have it, but that sets have one order in every kernel.
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONPATH": "", "PYTHONHOME": ""}
_SEALED = SeccompFilter(bare=True, isolated=True, sealed=True)

Answer = Callable[[int, Answered], Awaitable[None]]
OnAsk = Callable[[KernelAsk, Answer], Awaitable[None]]


class KernelLost(ToolError):
    """The kernel is gone, and with it all variables. The kind of `error` is killed, memory, forged or "exited N"."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__("execution_failed", message)
        self.error = CodeError(why, message)


class SourceReady(Struct, frozen=True):
    """What the kernel has mapped: the source's bytes, and whether they are bound as a string too."""

    bytes: int
    text: bool


class _Ready(Struct, frozen=True):
    ready: SourceReady


_KINDS = (
    (b'{"ready"', msgspec.json.Decoder(_Ready)),
    (b'{"ask"', msgspec.json.Decoder(KernelAsk)),
    (b'{"done"', msgspec.json.Decoder(RoundResult)),
)


class _Round:
    """The round that runs: its number, who answers what it asks, and how it ends."""

    def __init__(self, number: int, on_ask: OnAsk) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.on_ask = on_ask
        self.asks: dict[int, asyncio.Task[None]] = {}
        self.done: asyncio.Future[RoundResult] = loop.create_future()
        self.failed: asyncio.Future[None] = loop.create_future()  # where the host could not answer


class KernelProcess:
    """One kernel over one source. Made by `start`; `close` it. Rounds run one at a time."""

    def __init__(self) -> None:
        self.ready = SourceReady(0, False)
        self.confined = ""  # the mechanism that holds it, "" for none
        self._child: Child | None = None
        self._process = (0, 0)  # pid and start time of the kernel itself, below its sandbox
        self._begun: asyncio.Future[SourceReady] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray()
        self._rounds = 0
        self._round: _Round | None = None
        self._lost: KernelLost | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(
        cls, source: str, size: int, *, confined: bool = True, memory: int = MEMORY, program: str = KERNEL
    ) -> Self:
        """Start a kernel over a file of `size` bytes, in the isolated profile; not `confined` only where a person has
        agreed. Raises OSError where no process can be started, ToolError not_available where this machine has no
        sandbox, and KernelLost where the kernel did not begin."""
        real = os.path.realpath(source)
        sealed = build_filter(_SEALED).hex() if sys.platform == "linux" and machine_known() else ""
        self = cls()
        launch = Launch(
            argv=(interpreter(), "-s", "-P", "-S", "-B", program, real, sealed),
            env=_ENVIRONMENT,
            cwd="/",
            profile=ISOLATED if confined else NONE,
            allowances=(f"read:{program}", f"read:{real}") if confined else (),
            keep_stdin=True,
            output_limit=_OUTPUT,
            ceiling=Ceiling(memory=memory + size + _INTERPRETER),
        )
        self._child = await start(launch, self._heard)
        try:
            self.confined = self._child.confined
            self._spawn(self._watch(self._child))
            await asyncio.wait((self._begun,), timeout=START_SECONDS)
            if not self._begun.done():
                self._lose("killed", f"The kernel did not begin within {START_SECONDS:.0f} s")
            self.ready = self._begun.result()
            self._process = _below(self._child)
            _bound(self._process[0], memory, size)
        except BaseException:
            await settle(self.close())
            raise
        return self

    @property
    def alive(self) -> bool:
        return self._lost is None

    async def run(
        self, code: str, seconds: float, on_ask: OnAsk, budget: Mapping[str, float] | None = None
    ) -> RoundResult:
        """Run code to its end. `on_ask(ask, answer)` answers every slot of an ask by `await answer(slot, Answered)`, in
        any order; asks run at the same time. A cancel interrupts the code, and ends the kernel where that does not
        help. Raises KernelLost, and what `on_ask` raised."""
        if self._lost is not None:
            raise self._lost
        if self._round is not None:
            raise RuntimeError("a round of this kernel is still running")
        self._rounds += 1
        self._round = at_hand = _Round(self._rounds, on_ask)
        try:
            order = {"run": at_hand.number, "code": code, "seconds": seconds, "budget": dict(budget or {})}
            self._send(order)
            ends = (at_hand.done, at_hand.failed)
            await asyncio.wait(ends, timeout=seconds + GRACE, return_when=asyncio.FIRST_COMPLETED)
            if not at_hand.done.done() and not at_hand.failed.done():
                self._lose("killed", f"The round did not end within {seconds:g} s, nor when it was interrupted")
        finally:
            if not at_hand.done.done():
                await settle(self._stop(at_hand))
            self._round = None
            for task in at_hand.asks.values():
                task.cancel()
        if at_hand.failed.done():
            at_hand.failed.result()
        return at_hand.done.result()

    async def _stop(self, at_hand: _Round) -> None:
        self.interrupt()
        await asyncio.wait((at_hand.done,), timeout=CANCEL_SECONDS)
        if not at_hand.done.done():
            self._lose("killed", "The round did not end when it was cancelled")
        at_hand.done.exception()

    def interrupt(self) -> None:
        """Ask the code that runs to end, as ^C does."""
        self._signal(signal.SIGINT)

    async def close(self) -> None:
        """End the kernel with all that belongs to it. A second time does nothing."""
        self._lose("killed", "The kernel was closed")
        if self._child is not None:
            await self._child.kill()

    def _signal(self, number: int) -> None:
        pid, started = self._process
        if started:
            launcher.send(pid, started, number)
        elif pid and self._lost is None:
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def _heard(self, stream: str, data: bytes) -> None:
        """Take whole frames out of what comes. What is printed before the kernel begins goes to standard error."""
        if stream != "stdout" or self._lost is not None:
            return
        self._buffer += data
        taken = 0
        while len(self._buffer) >= taken + 4 and self._lost is None:
            length = int.from_bytes(self._buffer[taken : taken + 4], "big")
            if length > MOST_FRAME:
                self._lose("forged", f"A frame of {length:,} bytes came from the kernel, {MOST_FRAME:,} at most")
            if length > MOST_FRAME or len(self._buffer) < taken + 4 + length:
                break
            with memoryview(self._buffer) as view:
                frame = bytes(view[taken + 4 : taken + 4 + length])
            taken += 4 + length
            self._take(frame)
        del self._buffer[:taken]

    def _take(self, frame: bytes) -> None:
        decoder = next((decoder for begins, decoder in _KINDS if frame.startswith(begins)), None)
        try:
            message = decoder.decode(frame) if decoder is not None else None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            message = None
        fits = False
        if isinstance(message, _Ready) and not self._begun.done():
            fits = True
            self._begun.set_result(message.ready)
        elif isinstance(message, KernelAsk) and self._round is not None:
            fits = self._asked(self._round, message)
        elif isinstance(message, RoundResult) and self._round is not None and message.done == self._round.number:
            fits = not self._round.done.done()
            if fits:
                self._round.done.set_result(message)
        if not fits:
            self._lose("forged", "Something came on the kernel's channel that the kernel does not send")

    def _asked(self, at_hand: _Round, ask: KernelAsk) -> bool:
        """Have an ask answered; False for one that no kernel sends."""
        spans = [span for span in ask.spans if isinstance(span, tuple)]
        inside = all(0 <= begin <= end <= self._begun.result().bytes for begin, end in spans)
        paired = ask.prompts is None or len(ask.prompts) == len(ask.spans)
        if ask.ask in at_hand.asks or len(at_hand.asks) >= MOST_ASKS or not inside or not paired or at_hand.done.done():
            return False
        at_hand.asks[ask.ask] = self._spawn(self._answer_all(at_hand, ask))
        return True

    async def _answer_all(self, at_hand: _Round, ask: KernelAsk) -> None:
        try:
            await at_hand.on_ask(ask, partial(self._answer, ask.ask))
        except Exception as error:
            if not at_hand.failed.done():
                at_hand.failed.set_exception(error)
                at_hand.failed.exception()  # a cancel may come before anybody asks
        finally:
            at_hand.asks.pop(ask.ask, None)

    async def _answer(self, ask: int, slot: int, answered: Answered) -> None:
        """Done once the kernel has read what came before it; a cancel never leaves half a frame."""
        frame = {"answer": ask, "slot": slot, "text": answered.text, "error": answered.error}
        await asyncio.shield(self._send(frame))

    def _send(self, frame: Mapping[str, object]) -> asyncio.Task[None]:
        data = msgspec.json.encode(frame)
        return self._spawn(self._write(len(data).to_bytes(4, "big") + data))

    async def _write(self, data: bytes) -> None:
        assert self._child is not None
        with contextlib.suppress(OSError):  # it reads no more: its end is told by whoever waits for it
            await self._child.write(data)

    def _spawn(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _watch(self, child: Child) -> None:
        """Say how the kernel ended by itself."""
        done = await child.wait()
        why = f"exited {done.exit_code}"
        if done.over:
            return self._lose(done.over, "The kernel took more memory than it may")
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        killed = done.exit_code in (-signal.SIGKILL, 128 + signal.SIGKILL)
        what = "was killed" if killed else f"ended with exit code {done.exit_code}"
        return self._lose("killed" if killed else why, f"The kernel {what}{last and f' ({last[:200]})'}")

    def _lose(self, why: str, message: str) -> None:
        """The kernel ends here; the first reason counts."""
        if self._lost is not None:
            return
        self._signal(signal.SIGKILL)
        self._lost = KernelLost(why, message)
        self._buffer.clear()
        for waited in (self._begun, self._round.done if self._round is not None else None):
            if waited is not None and not waited.done():
                waited.set_exception(self._lost)
                waited.exception()
        if self._child is not None:
            self._spawn(self._child.kill())


def _below(child: Child) -> tuple[int, int]:
    """The kernel's own process: the last below those of a sandbox, for it starts none itself."""
    pid = child.pid
    while child.confined and (below := launcher.children(pid)):
        pid = below[0]
    about = launcher.stat(pid)
    return pid, about[0] if about is not None else 0


def _bound(pid: int, memory: int, source: int) -> None:
    """What a kernel may take at most; the launcher counts what it really has besides. `source` is mapped, which costs
    no memory that could not be given back."""
    import resource

    if sys.platform != "linux":
        return
    bounds = {"DATA": memory, "AS": source + 2 * memory + MEMORY, "NOFILE": _FILES, "FSIZE": 0}
    for name, most in bounds.items():
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, getattr(resource, f"RLIMIT_{name}"), (most, most))
