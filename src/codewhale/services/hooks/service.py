"""The hooks of an application: which there are in a workspace, and what happens when their moment comes.

A project's hooks count while their file, and what it names, is trusted as it is; they refuse, ask and tell, and that is
all. The person's own may also allow a call, put other arguments in its place, and change what is sent.
"""

import asyncio
import contextlib
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable

import msgspec
from msgspec import Struct

from codewhale.lib.toml import parse_toml
from codewhale.permissions.audit import AuditLog
from codewhale.permissions.trust import TrustStore, read_file
from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import ChildClosed, ChildOpened, Envelope, Event, ModeChanged, Notice, TurnFinished
from codewhale.protocol.ports import SessionControl
from codewhale.protocol.tools import ToolResult
from codewhale.services.hooks.config import AFTER, BEFORE, SHELL_ENV, SUBMIT, Hook, HookMoment, read_hooks
from codewhale.services.hooks.run import RESULT_LIMIT, HookAnswer, run_hook

PROJECT_FILE = os.path.join(".codewhale", "hooks.toml")
MOST_BEHIND = 16
CLOSE_SECONDS = 15.0
_WEIGHT = {"deny": 3, "ask": 2, "allow": 1, "": 0}
_ASSIGNMENT = re.compile(r"(?:export )?([A-Za-z_][A-Za-z0-9_]*)=(.*)")


class HookConfig(Struct, frozen=True):
    """The person's own hooks as they stand in the configuration: the raw `[hooks]` table and the file it is from."""

    tree: object
    origin: str


class _Project(Struct, frozen=True):
    """A project's hooks as they were read; `ignored` says why they do not count."""

    path: str = ""
    sha256: str = ""
    hooks: tuple[Hook, ...] = ()
    refused: tuple[str, ...] = ()
    ignored: str = ""


class Hooks:
    """Runs hooks. Implements the CallObserver of the engine."""

    def __init__(
        self,
        written: HookConfig,
        trust: TrustStore,
        redact: Callable[[str], Callable[[str], str]],
        control: SessionControl,
        tell: Callable[[str, Event], None],
        audit: AuditLog,
    ) -> None:
        """`tell(session, event)` shows a notice; what comes after the session's end stands in the audit log alone."""
        self._own, self._refused = read_hooks(written.tree, written.origin)
        self._off = isinstance(written.tree, dict) and written.tree.get("enabled") is False
        self._trust = trust
        self._redact = redact
        self._control = control
        self._tell = tell
        self._audit = audit
        self._projects: dict[str, _Project] = {}
        self._warned: set[str] = set()
        self._behind: set[asyncio.Task[HookAnswer]] = set()
        self._following: set[asyncio.Task[None]] = set()

    def at(self, workspace: str) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
        """The hooks of a workspace, and what is said of those that do not count."""
        project = _Project() if self._off else self._project(workspace)
        ignored = (project.ignored,) if project.ignored else ()
        return (*self._own, *(() if ignored else project.hooks)), (*self._refused, *project.refused, *ignored)

    # ------------------------------------------------------------------ calls

    async def judge(self, call: CallView) -> Opinion | None:
        """What the hooks before a call say of it, the strictest word; None for nothing."""
        moment = _moment(BEFORE, call)
        opinion = Opinion("", "", "")
        contexts: list[str] = []
        for hook in self._due(moment):
            answer = await self._ask(hook, moment)
            if answer.fault and not hook.continue_on_error:
                answer = HookAnswer("deny", answer.fault)
            verdict = "" if hook.project and answer.verdict == "allow" else answer.verdict
            if _WEIGHT[verdict] > _WEIGHT[opinion.verdict]:
                reason = f"The hook {hook.name} says {verdict}: {answer.reason or 'no reason was given'}"
                opinion = msgspec.structs.replace(opinion, verdict=verdict, rule=f"hook.{hook.name}", reason=reason)
            if answer.arguments is not None and not hook.project:
                moment = msgspec.structs.replace(moment, arguments=answer.arguments)
                opinion = msgspec.structs.replace(opinion, arguments=answer.arguments)
            contexts += [_context(hook, answer.context)] if answer.context else []
            if opinion.verdict == "deny":
                break
        if not opinion.verdict and opinion.arguments is None and not contexts:
            return None
        return msgspec.structs.replace(opinion, context="\n".join(contexts))

    async def before(self, call: CallView) -> str | None:
        return None

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        """Tell the hooks after a call; what they have for the model."""
        moment = _moment(AFTER, call)
        ok = result is not None and result.ok
        text = result.content[:RESULT_LIMIT] if result is not None else ""
        code = result.metadata.get("exit_code") if result is not None else None
        code = code if isinstance(code, int) else int(not ok)
        moment = msgspec.structs.replace(moment, ok=ok, result=text, exit_code=code)
        answers = [(hook, await self._ask(hook, moment)) for hook in self._due(moment)]
        contexts = [_context(hook, word.context) for hook, word in answers if word.context]
        return "\n".join(contexts) or None

    # ------------------------------------------------------------------ sessions

    async def opened(self, session: str, workspace: str, events: AsyncIterator[Envelope]) -> None:
        """A session has begun: tell it, and follow its events to the end."""
        for line in self.at(workspace)[1]:
            self._warn(session, line)
        await self._fire(HookMoment("session_start", session, workspace, self._mode(session)))
        task = asyncio.create_task(self._follow(session, workspace, events), name=f"hooks {session}")
        self._following.add(task)
        await asyncio.sleep(0)  # It listens from here on.
        task.add_done_callback(self._following.discard)

    async def submitted(self, session: str, workspace: str, text: str) -> str:
        """The message as the hooks let it through. Raises SessionError when one blocks it."""
        moment = HookMoment(SUBMIT, session, workspace, self._mode(session), message=text)
        for hook in self._due(moment):
            answer = await self._ask(hook, msgspec.structs.replace(moment, message=text))
            if answer.fault and not hook.continue_on_error:
                answer = HookAnswer("deny", answer.fault)
            if answer.verdict == "deny":
                raise SessionError(f"the hook {hook.name} blocked the message: {answer.reason}")
            if answer.text is not None and not hook.project:
                text = answer.text
        return text

    async def shell_env(self, session: str, workspace: str) -> dict[str, str]:
        """What the person's hooks add to the environment of a shell command: KEY=VALUE lines."""
        moment = HookMoment(SHELL_ENV, session, workspace, self._mode(session))
        env: dict[str, str] = {}
        for hook in self._due(moment):
            for line in (await self._ask(hook, moment)).output.splitlines():
                if match := _ASSIGNMENT.fullmatch(line.strip()):
                    env[match[1]] = match[2].strip("\"'")
        return env

    async def aclose(self) -> None:
        """Let what is under way end, for a while, then end it."""
        under_way = [*self._following, *self._behind]
        if under_way:
            await asyncio.wait(under_way, timeout=CLOSE_SECONDS)
        for task in (*self._following, *self._behind):
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _follow(self, session: str, workspace: str, events: AsyncIterator[Envelope]) -> None:
        with contextlib.suppress(SessionError):  # The log gave out; that is told elsewhere.
            async for envelope in events:
                await self._heard(session, workspace, envelope.event)
        await self._fire(HookMoment("session_end", session, workspace))

    async def _heard(self, session: str, workspace: str, event: Event) -> None:
        match event:
            case ModeChanged(mode=mode, previous=previous):
                await self._fire(HookMoment("mode_change", session, workspace, mode, previous_mode=previous))
            case TurnFinished(status=status, reason=reason, result=result):
                answer = str(result.get("answer", ""))[:RESULT_LIMIT]
                moment = HookMoment("turn_end", session, workspace, self._mode(session), error=reason)
                if status in ("failed", "infra"):
                    await self._fire(msgspec.structs.replace(moment, event="on_error"))
                await self._fire(msgspec.structs.replace(moment, message=answer, ok=status == "done"))

            case ChildOpened(name=name, objective=objective):
                moment = HookMoment("subagent_spawn", session, workspace, self._mode(session), name)
                await self._fire(msgspec.structs.replace(moment, message=objective[:RESULT_LIMIT]))
            case ChildClosed(name=name, status=status, summary=summary):
                moment = HookMoment("subagent_complete", session, workspace, self._mode(session), name)
                await self._fire(msgspec.structs.replace(moment, message=summary, ok=status == "completed"))

    async def _fire(self, moment: HookMoment) -> None:
        """Tell whoever watches; nothing is heard of what they say."""
        for hook in self._due(moment):
            await self._ask(hook, moment)

    # ------------------------------------------------------------------ one hook

    def _due(self, moment: HookMoment) -> Iterable[Hook]:
        hooks = self.at(moment.workspace)[0]
        return [hook for hook in hooks if hook.event == moment.event and hook.condition.holds(moment)]

    async def _ask(self, hook: Hook, moment: HookMoment) -> HookAnswer:
        """Run it. A fault is told once for each hook and kind of fault."""
        if hook.project and not self._still_trusted(moment.workspace):
            answer = HookAnswer(
                fault="its file, or a file that it names, has changed since it was trusted (codewhale trust list)"
            )
        elif hook.background:
            return self._leave_behind(hook, moment)
        else:
            answer = await run_hook(hook, moment, self._facts(moment.session), self._redact(moment.session))
        if answer.fault:
            self._warn(moment.session, f"The hook {hook.name} ({hook.event}) is ignored: {answer.fault}")
        return answer

    def _leave_behind(self, hook: Hook, moment: HookMoment) -> HookAnswer:
        if len(self._behind) >= MOST_BEHIND:
            self._warn(moment.session, f"The hook {hook.name} was skipped: {MOST_BEHIND} already run in the background")
            return HookAnswer()
        task = asyncio.create_task(run_hook(hook, moment, self._facts(moment.session), self._redact(moment.session)))
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
        return HookAnswer()

    def _still_trusted(self, workspace: str) -> bool:
        project = self._project(workspace)
        try:
            return self._trust.holds(project.path, project.sha256)
        except ConfigError:
            return False

    def _project(self, workspace: str) -> _Project:
        if workspace not in self._projects:
            self._projects[workspace] = self._read(os.path.join(os.path.realpath(workspace), PROJECT_FILE))
        return self._projects[workspace]

    def _read(self, path: str) -> _Project:
        """A project's hooks as its file says now; what cannot be used is ignored and told."""
        try:
            data = read_file(path)
            if data is None:
                return _Project()
            sha256 = hashlib.sha256(data).hexdigest()
            if not self._trust.holds(path, sha256):
                return _Project(ignored=f"project hooks ignored: {path} is not trusted (codewhale trust list)")
            tree = parse_toml(data).get("hooks")
        except (ConfigError, ValueError) as error:
            return _Project(ignored=f"project hooks ignored: {path}: {error}")
        hooks, refused = read_hooks({"hooks": tree} if isinstance(tree, list) else tree, path, project=True)
        return _Project(path, sha256, hooks, refused)

    def _facts(self, session: str) -> dict[str, str]:
        """What is known of the session's model and what it took."""
        try:
            status, usage = self._control.status(session), self._control.usage(session)
        except SessionError:
            return {}
        cost = usage.total.get("cost")
        facts = {"MODEL": status.model, "TOTAL_TOKENS": str(status.tokens_in + status.tokens_out)}
        return facts | ({} if cost is None else {"SESSION_COST": str(cost)})

    def _mode(self, session: str) -> str:
        try:
            return self._control.status(session).mode
        except SessionError:
            return ""

    def _warn(self, session: str, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._tell(session, Notice("warning", text, "hooks"))
            self._audit.add("hook", session=session, text=self._redact(session)(text))


def _moment(event: str, call: CallView) -> HookMoment:
    return HookMoment(
        event=event,
        session=call.session,
        workspace=call.workspace,
        mode=call.mode,
        tool=call.tool,
        arguments=call.arguments,
        effects=call.effects,
    )


def _context(hook: Hook, text: str) -> str:
    return f"[hook {hook.name}: {text.strip()}]"
