"""The person's own commands: run in the workspace at once, beside or without a turn, and told to the session when they
have ended."""

import asyncio
from collections.abc import Callable

from codewhale.lib.text import head_tail, scrub_surrogates
from codewhale.process.launch import Child, Launch, settle, start
from codewhale.process.streams import shown, whole_characters
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import ShellOutput, ShellRan
from codewhale.services.jobs.job import Listener
from codewhale.services.jobs.service import ShellEnv, shell_argv

KEPT = 128 << 10
WHOLE = 16 << 20
FEED_SECONDS = 0.1
FEED_MOST = 8_000
LONGEST = 32 << 10


class UserCommands:
    """The commands that persons run themselves, one a session at a time. They are held to nothing: they are the
    person's. What goes into the log, and so to the model, passes `redact(session)`."""

    def __init__(
        self,
        listener: Listener,
        shell_env: ShellEnv,
        redact: Callable[[str], Callable[[str], str]],
        keep: Callable[[bytes], str],
    ) -> None:
        """`keep` takes a long output and gives its sha256."""
        self._listener = listener
        self._keep = keep
        self._shell_env = shell_env
        self._redact = redact
        self._begun: set[str] = set()
        self._running: dict[str, Child] = {}

    async def run(self, session: str, workspace: str, command: str) -> int | None:
        """Run a command line to its end; its exit code, None when a signal ended it. Raises SessionError for one that
        cannot be started and while another runs."""
        if session in self._begun:
            raise SessionError("your command is still running; stop it or wait until it ends")
        if "\0" in command or len(command) > LONGEST:
            raise SessionError(f"a command may have at most {LONGEST:,} characters, and no NUL")
        self._begun.add(session)
        try:
            return await self._run(session, workspace, command)
        finally:
            self._begun.discard(session)

    async def _run(self, session: str, workspace: str, command: str) -> int | None:
        feed = _Feed(lambda text: self._listener(session, ShellOutput(text)))
        env = await self._shell_env(session, workspace)
        launch = Launch(shell_argv(command), workspace, "none", env=env, merge=True, output_limit=WHOLE)
        try:
            child = await start(launch, feed.take)
        except OSError as error:
            raise SessionError(f"the command cannot be started in {workspace}: {error.strerror or error}") from None
        self._running[session] = child
        try:
            done = await child.wait()
        except asyncio.CancelledError:
            await settle(child.kill())
            done = await child.wait()
            raise
        finally:
            await settle(child.kill())  # what it left behind has nobody to look after it
            self._running.pop(session, None)
            feed.end()
        code = None if done.killed or done.exit_code is None or done.exit_code < 0 else done.exit_code
        redact = self._redact(session)
        printed, kept = await asyncio.to_thread(
            lambda: self._within(redact(shown(done.stdout, done.stdout_gap, done.stdout_total)))
        )
        self._listener(session, ShellRan(redact(command), printed, code, round(done.seconds, 3), kept))
        return code

    def _within(self, output: str) -> tuple[str, str]:
        """An output as far as an event holds it, and the sha256 of all of it where that is more."""
        head, tail, cut = head_tail(output, KEPT)
        if not cut:
            return output, ""
        try:
            kept = self._keep(scrub_surrogates(output).encode())
        except SessionError:
            kept = ""  # the disk does not take it: both ends are what there is
        return f"{head}\n[... {cut} bytes left out ...]\n{tail}", kept

    def running(self, session: str) -> bool:
        return session in self._begun

    async def interrupt(self, session: str) -> None:
        child = self._running.get(session)
        if child is not None:
            await settle(child.kill())

    async def aclose(self) -> None:
        await asyncio.gather(*(child.kill() for child in list(self._running.values())))


class _Feed:
    """Output in whole characters, told at most ten times a second."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._held = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, stream: str, data: bytes) -> None:
        self._held += data
        del self._held[:-FEED_MOST]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FEED_SECONDS, self._flush)

    def _flush(self) -> None:
        self._timer = None
        whole = whole_characters(bytes(self._held))
        text = self._held[:whole].decode("utf-8", "replace")
        del self._held[:whole]
        if text:
            self._tell(text)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
