"""`--plain`: the session line by line, for simple terminals, pipes and screen readers. Typed lines are messages,
commands and answers; events are printed as plain lines. Nothing moves a cursor or sets a colour."""

import asyncio
import contextlib
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from codewhale.display.attachments import Folder
from codewhale.display.client import Client
from codewhale.display.drafts import Draft, PromptHistory
from codewhale.display.leaving import farewell
from codewhale.display.setup import is_command, language_of
from codewhale.display.words import Words
from codewhale.headless.headless import AnswerSink
from codewhale.headless.plain_text import PlainAsks, PlainRenderer
from codewhale.lib.text import one_line, sanitise, scrub_surrogates
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import Envelope, Queued, TurnFinished, TurnStarted
from codewhale.protocol.ops import (
    CloseSession,
    CommandOutput,
    EditQueue,
    Interrupt,
    OpenSession,
    RunCommand,
    RunShell,
    SendMessage,
    SessionStatus,
)
from codewhale.protocol.requests import Op
from codewhale.protocol.views import GetQueue, ListCommands, PreviewSession

if TYPE_CHECKING:
    from codewhale.display.setup import Setup

MOST_BYTES = 1 << 20
_REMEMBERED = 500
QUIT = ("/quit", "/exit")
EARLY_SECONDS = 0.5
_BEFORE = 4


class LineReader:
    """Standard input. One line is read at a time, in a thread that the end of the program need not wait for."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self.is_terminal = os.isatty(fd) and os.isatty(1)
        self._held = bytearray()
        self._before: Any = None
        if self.is_terminal:
            import termios

            self._before = termios.tcgetattr(fd)

    async def line(self) -> str | None:
        """The next line without its end; None at the end of input. What is longer than 1 MiB is cut there."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str | None] = loop.create_future()

        def tell(line: str | None) -> None:
            if not future.done():
                future.set_result(line)

        def read() -> None:
            line = self._ask() if self.is_terminal and self._fd == 0 else self._split()
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(tell, line)

        threading.Thread(target=read, daemon=True, name="codewhale-reader").start()
        return await future

    def close(self) -> None:
        """Give the terminal back as it was found."""
        if self._before is not None:
            import termios

            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def remember(self, lines: Sequence[str]) -> None:
        """Offer these with the arrow keys, the last one first."""
        if self.is_terminal and (readline := _readline()) is not None:
            for line in lines[-_REMEMBERED:]:
                if "\n" not in line:
                    readline.add_history(line)

    def complete(self, offer: Callable[[str], Sequence[str]]) -> None:
        """Let Tab complete the line before the cursor; `offer` gives all lines that it may become."""
        if not self.is_terminal or (readline := _readline()) is None:
            return

        def completer(text: str, state: int) -> str | None:
            found = offer(text)
            return found[state] if state < len(found) else None

        readline.set_completer_delims("")
        readline.set_completer(completer)
        readline.parse_and_bind("tab: complete")
        # Nothing but the line itself may reach the terminal.
        readline.parse_and_bind("set enable-bracketed-paste off")

    def _ask(self) -> str | None:
        _readline()
        try:
            return scrub_surrogates(input())[:MOST_BYTES]
        except (EOFError, OSError, ValueError):
            return None

    def _split(self) -> str | None:
        while b"\n" not in self._held and len(self._held) < MOST_BYTES:
            try:
                chunk = os.read(self._fd, 1 << 16)
            except OSError:
                chunk = b""
            if not chunk:
                break
            self._held += chunk
        if not self._held:
            return None
        line, _, rest = bytes(self._held[:MOST_BYTES]).partition(b"\n")
        self._held = bytearray(rest) + self._held[MOST_BYTES:]
        return line.removesuffix(b"\r").decode("utf-8", "replace")


def _readline() -> Any:
    """The readline module; None where there is none, or the terminal cannot move its cursor."""
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        return None
    try:
        import readline
    except ImportError:
        return None
    return readline if sys.stdin is not None else None


class PlainOptions(Struct, frozen=True):
    """What to open; `home` is where the history is kept, "" for nowhere. A terminal's lines that come within `early`
    seconds of a question were not meant for it."""

    open: OpenSession
    home: str = ""
    early: float = EARLY_SECONDS


class LineSource(Protocol):
    """Where lines come from. From a terminal they are read at any time; else when one is wanted."""

    is_terminal: bool

    async def line(self) -> str | None:
        """The next line, None at the end."""
        ...

    def remember(self, lines: Sequence[str]) -> None: ...

    def complete(self, offer: Callable[[str], Sequence[str]]) -> None:
        """Complete a line to one of those that are offered."""
        ...


class Plain:
    """One person's session. `session` is "" until it is open."""

    def __init__(
        self, client: Client, options: PlainOptions, words: Words, reader: LineSource, out: AnswerSink
    ) -> None:
        self._client = client
        self._options = options
        self._words = words
        self._reader = reader
        self._out = out
        self._teller = PlainRenderer(words)
        self._asks = PlainAsks(words)
        self._history = PromptHistory(Folder(options.home, options.open.workspace)) if options.home else None
        self._asked_at = 0.0
        self._prompted = self._running = self._ended = False
        # Something may be read: nothing runs, or something is asked.
        self._wanted = asyncio.Event()
        self._idle = asyncio.Event()
        self._follower: asyncio.Task[None]
        self._background: set[asyncio.Task[None]] = set()
        self.session = ""

    async def run(self) -> int:
        """Run to the end of input; returns the exit code. Raises what opening the session raises, and BrokenPipeError
        when nobody reads the output."""
        self.session = await self._client.submit(self._options.open)
        await self._greet()
        await self._follow()
        reading = asyncio.create_task(self._converse())
        try:
            while not reading.done():
                follower = self._follower
                await asyncio.wait({reading, follower}, return_when=asyncio.FIRST_COMPLETED)
                if follower is self._follower and follower.done() and not reading.done():
                    # The stream of events ends with the session.
                    follower.result()
                    return 0
            reading.result()
            if said := await farewell(self._client.query, self.session, self._words):
                await self._print(*said.splitlines())
            return 0
        finally:
            for task in (reading, self._follower, *self._background):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def interrupt(self) -> None:
        """Stop the turn or the shell line, if one runs."""
        task = asyncio.get_running_loop().create_task(self._interrupt())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _interrupt(self) -> None:
        await self._print(self._words("plain.stopping" if self._running else "plain.nothing_runs"))
        if self._running:
            await self._do(Interrupt(self.session))
        else:
            await self._prompt()

    # -------------------------------------------------------------- events

    async def _greet(self) -> None:
        await self._print(self._words("plain.hello"), self._words("plain.hello_busy"))
        status = await self._client.query(SessionStatus(self.session))
        model = {"provider": one_line(status.provider, 60), "model": one_line(status.model, 100)}
        await self._print(self._words("plain.session", session=self.session, mode=status.mode, **model))
        with contextlib.suppress(CodeWhaleError):
            await self._recall()
        self._set_running(status.busy)

    async def _recall(self) -> None:
        if self._options.open.resume or self._options.open.fork:
            preview = await self._client.query(PreviewSession(self.session, _BEFORE))
            lines = [
                self._words(
                    "plain.before_model" if role == "assistant" else "plain.before_person", text=one_line(text, 400)
                )
                for role, text in preview.lines
            ]
            await self._print(*([self._words("plain.before"), *lines] if lines else []))
        if self._history is not None:
            self._reader.remember([entry.text for entry in self._history.entries])
        commands = [row.name for row in await self._client.query(ListCommands(self.session))]
        self._reader.complete(lambda line: [name for name in commands if line and name.startswith(line)])

    async def _follow(self) -> None:
        """Listen from here on; what is sent after this is told."""
        self._follower = asyncio.create_task(self._tell_events(self.session))
        await asyncio.sleep(0)
        await self._prompt()

    async def _tell_events(self, session: str) -> None:
        events = self._client.events(session, -1, durable=False)
        try:
            async for envelope in events:
                await self._take(envelope)
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    async def _take(self, envelope: Envelope) -> None:
        event = envelope.event
        await self._print(*self._teller.tell(envelope))
        if isinstance(event, Queued):
            await self._print(self._words("plain.waits", n=event.waiting))
        elif isinstance(event, TurnStarted):
            self._set_running(True)
        await self._ask(self._asks.take(envelope))
        if isinstance(event, TurnFinished):
            await self._turn_over(event.status)

    async def _turn_over(self, status: str) -> None:
        waiting = len(await self._client.query(GetQueue(self.session)))
        # What waits begins the next turn, unless the person has stopped this one.
        self._set_running(waiting > 0 and status != "interrupted")
        if waiting and not self._running:
            await self._print(self._words("plain.left", n=waiting))
        await self._prompt()

    async def _ask(self, lines: list[str]) -> None:
        if lines:
            await self._print(*lines)
            self._asked_at = time.monotonic()
            if self._ended:
                answer = self._asks.refuse()
                if answer is not None:
                    await self._do(answer)
        if self._asks.open is not None:
            self._wanted.set()

    def _set_running(self, running: bool) -> None:
        self._running = running
        if running:
            self._idle.clear()
            self._wanted.clear()
        else:
            self._idle.set()
            self._wanted.set()

    # -------------------------------------------------------------- lines

    async def _converse(self) -> None:
        held: list[str] = []
        while True:
            if not self._reader.is_terminal:
                await self._wanted.wait()
            line = await self._reader.line()
            if line is None:
                break
            self._prompted = False
            if line.endswith("\\"):
                held.append(line[:-1])
                continue
            whole = "\n".join([*held, line])
            held = []
            if whole.strip() in QUIT:
                break
            await self._line(whole)
        if held:
            await self._line("\n".join(held))
        await self._end()

    async def _end(self) -> None:
        self._ended = True
        if self._running:
            await self._print(self._words("plain.ending"))
            answer = self._asks.refuse()
            if answer is not None:
                await self._do(answer)
        await self._idle.wait()

    async def _line(self, line: str) -> None:
        if self._asks.open is not None:
            await self._reply(line)
            return
        text = scrub_surrogates(line).strip()
        if not text:
            await self._send_waiting()
            return
        if self._history is not None:
            with contextlib.suppress(OSError):
                self._history.add(Draft(text), self.session)
        if text.startswith("!") and text[1:].strip():
            await self._shell(text[1:].strip())
        elif is_command(text):
            await self._command(text)
        else:
            await self._send(text)

    async def _reply(self, line: str) -> None:
        if self._reader.is_terminal and time.monotonic() - self._asked_at < self._options.early:
            await self._print(self._words("plain.too_early"))
            await self._ask(self._asks.ask(again=True))
            return
        reply = self._asks.reply(line)
        await self._print(*reply.lines)
        if reply.answer is not None:
            self._set_running(True)
            await self._do(reply.answer)
            if reply.reason:
                await self._do(SendMessage(self.session, scrub_surrogates(reply.reason), delivery="steer"))
        await self._ask(self._asks.ask())

    async def _send(self, text: str) -> None:
        delivery: Literal["turn", "steer", "queue"] = "queue" if self._running else "turn"
        if self._running and text.startswith(">"):
            text, delivery = text[1:].strip(), "steer"
        idle = not self._running
        self._set_running(True)
        if not await self._do(SendMessage(self.session, text, delivery=delivery)) and idle:
            self._set_running(False)
            await self._prompt()

    async def _send_waiting(self) -> None:
        """An empty line: the message that has waited longest goes to the model."""
        former = ""
        if await self._client.query(GetQueue(self.session)):
            former = await self._client.submit(EditQueue(self.session, 0, ""))
        if former:
            await self._send(former if not self._running else f">{former}")
        else:
            await self._prompt()

    async def _shell(self, command: str) -> None:
        idle = not self._running
        self._running = True
        await self._do(RunShell(self.session, command))
        if idle:
            # A message may have begun a turn meanwhile.
            status = await self._client.query(SessionStatus(self.session))
            self._set_running(status.busy)
            await asyncio.sleep(0)
            await self._prompt()

    async def _command(self, line: str) -> None:
        try:
            output: CommandOutput = await self._client.submit(RunCommand(self.session, line))
        except (CodeWhaleError, OSError) as error:
            await self._fault(error)
            return
        text = output.text.rstrip("\n")
        if not output.ok:
            text = self._words("plain.wrong", text=text)
        await self._print(*(sanitise(row) for row in text.split("\n")))
        if output.session and output.session != self.session:
            await self._change(output.session)
        else:
            await self._prompt()

    async def _change(self, session: str) -> None:
        former, self.session = self.session, session
        self._teller, self._asks = PlainRenderer(self._words), PlainAsks(self._words)
        follower = self._follower
        await self._follow()
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)
        await self._do(CloseSession(former))

    async def _do(self, op: Op[object]) -> bool:
        """Do it; whether that went well. Why it did not is printed."""
        try:
            await self._client.submit(op)
        except (CodeWhaleError, OSError) as error:
            await self._fault(error)
            return False
        return True

    # -------------------------------------------------------------- printing

    async def _fault(self, error: Exception) -> None:
        why = one_line(str(error) or type(error).__name__, 2_000)
        await self._print(self._words("plain.error", why=why))
        await self._prompt()

    async def _prompt(self) -> None:
        if self._reader.is_terminal and not self._running and not self._prompted and self._asks.open is None:
            self._prompted = True
            await self._out.write("> ")

    async def _print(self, *lines: str) -> None:
        if lines:
            before = "\n" if self._prompted else ""
            self._prompted = False
            await self._out.write(before + "".join(f"{line}\n" for line in lines))


class Printed:
    """Standard output, written in a thread: a slow reader delays what is printed, not the turn."""

    is_terminal = True

    async def write(self, text: str) -> None:
        """Write and flush. Raises BrokenPipeError when nobody reads it any more."""
        await asyncio.to_thread(_write, text.encode("utf-8", "replace"))


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(1, view) :]
        except BlockingIOError:
            select.select([], [1], [])


def run_plain(setup: "Setup") -> int:
    """Open the engine and run on this process's own terminal; returns the exit code. Raises what opening raises."""
    return asyncio.run(_on_terminal(setup))


async def _on_terminal(setup: "Setup") -> int:
    import signal

    words = Words(language_of(setup.settings, setup.environ))
    lines = LineReader()
    loop = asyncio.get_running_loop()
    try:
        async with setup.connect() as client:
            out = Printed()
            for notice in setup.notices:
                await out.write(one_line(notice, 2_000) + "\n")
            plain = Plain(client, PlainOptions(setup.opening, setup.home), words, lines, out)
            loop.add_signal_handler(signal.SIGINT, plain.interrupt)
            try:
                return await plain.run()
            finally:
                loop.remove_signal_handler(signal.SIGINT)
    finally:
        lines.close()
