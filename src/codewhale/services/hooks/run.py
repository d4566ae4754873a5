"""One run of a hook: what it is told, the sandbox it is held in, and what it says."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line, scrub_surrogates
from codewhale.process.launch import Launch, run
from codewhale.protocol.decisions import Verdict
from codewhale.protocol.errors import ToolError
from codewhale.services.hooks.config import Hook, HookMoment

PREVIEW = 8192
RESULT_LIMIT = 65_536
OUTPUT_LIMIT = 65_536
CONTEXT_LIMIT = 4096
REFUSES = 2
_VERDICT_KEYS = ("decision", "verdict", "permissionDecision")
_VERDICTS: dict[str, Verdict | Literal[""]] = {
    "": "", "allow": "allow", "approve": "allow", "ask": "ask", "deny": "deny", "block": "deny",
}  # fmt: skip


class HookAnswer(Struct, frozen=True):
    """What came of a run. `fault` is why it counts for nothing, "" where it does; `verdict` is "" for none, `arguments`
    and `text` are put in place of what was there, `context` is for the model."""

    verdict: Verdict | Literal[""] = ""
    reason: str = ""
    arguments: dict[str, Any] | None = None
    context: str = ""
    text: str | None = None
    output: str = ""
    fault: str = ""


async def run_hook(hook: Hook, moment: HookMoment, facts: dict[str, str], redact: Callable[[str], str]) -> HookAnswer:
    """Run it to its end, within its time. Never raises but for a cancellation, and then nothing of it is left."""
    payload, env = hook_input(moment, facts, redact)
    launch = Launch(
        argv=("/bin/sh", "-c", hook.command),
        cwd=moment.workspace,
        workspace=moment.workspace,
        env=env,
        stdin=payload,
        seconds=hook.seconds,
        profile=hook.sandbox,
        allowances=("network",) if hook.network and hook.sandbox != "none" else (),
        output_limit=OUTPUT_LIMIT,
    )
    try:
        done = await run(launch)
    except (OSError, ValueError) as error:
        return HookAnswer(fault=f"it could not be started: {error}")
    except ToolError as error:
        return HookAnswer(fault=error.message)
    if done.timed_out:
        return HookAnswer(fault=f"it did not end within {hook.seconds:g} seconds")
    if done.over:
        return HookAnswer(fault=f"it used too much ({done.over})")
    stdout, stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return parse_answer(done.exit_code, stdout, stderr, redact)


def hook_input(moment: HookMoment, facts: dict[str, str], redact: Callable[[str], str]) -> tuple[bytes, dict[str, str]]:
    """What a hook reads from its input, one JSON object, and the variables it is given, each under two names. `facts`
    are further variables. Known secrets are taken out of both."""
    row = {key: value for key, value in msgspec.to_builtins(moment).items() if value not in ("", None, [], ())}
    row |= {key.lower(): value for key, value in facts.items()}
    if moment.result:
        row["result"] = moment.result[:RESULT_LIMIT]
    payload = redact(scrub_surrogates(msgspec.json.encode(row).decode()))
    values = {
        "EVENT": moment.event,
        "SESSION_ID": moment.session,
        "WORKSPACE": moment.workspace,
        "MODE": moment.mode,
        "PREVIOUS_MODE": moment.previous_mode,
        "TOOL_NAME": moment.tool,
        "TOOL_ARGS": "" if moment.arguments is None else msgspec.json.encode(moment.arguments).decode(),
        "TOOL_RESULT": moment.result,
        "TOOL_EXIT_CODE": "" if moment.exit_code is None else str(moment.exit_code),
        "TOOL_SUCCESS": "" if moment.ok is None else str(moment.ok).lower(),
        "MESSAGE": moment.message,
        "ERROR": moment.error,
        **facts,
    }
    env: dict[str, str] = {}
    for name, value in values.items():
        if value:
            shown = redact(scrub_surrogates(value[:PREVIEW])).replace("\0", "")
            env |= {f"CODEWHALE_{name}": shown, f"DEEPSEEK_{name}": shown}
    return payload.encode(), env


def parse_answer(exit_code: int | None, stdout: str, stderr: str, redact: Callable[[str], str]) -> HookAnswer:
    """What an end and its output say: 2 refuses, with the first line as reason; 0 may come with a JSON object."""
    stdout, stderr = redact(stdout), redact(stderr)
    line = next((text for text in (*stdout.splitlines(), *stderr.splitlines()) if text.strip()), "")
    if exit_code == REFUSES:
        answer = _printed_answer(stdout)
        return HookAnswer("deny", answer.reason or one_line(line, 500) or "no reason was given")
    if exit_code != 0:
        why = f": {one_line(line, 200)}" if line else ""
        return HookAnswer(fault=f"it ended with {'a signal' if exit_code is None else f'exit code {exit_code}'}{why}")
    return msgspec.structs.replace(_printed_answer(stdout), output=stdout)


def _printed_answer(stdout: str) -> HookAnswer:
    """The JSON object that a hook may print; anything else says nothing."""
    text = stdout.strip()
    if not text.startswith("{"):
        return HookAnswer()
    try:
        row = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return HookAnswer()
    inner = row.get("hookSpecificOutput")
    row |= inner if isinstance(inner, dict) else {}
    word = next((str(row[key]).lower() for key in _VERDICT_KEYS if key in row), "")
    if word not in _VERDICTS:
        return HookAnswer(fault=f"its verdict {one_line(word, 40)!r} is not allow, ask or deny")
    arguments = row.get("updatedInput", row.get("updated_input"))
    context = row.get("context", row.get("additionalContext"))
    text_put = row.get("text")
    return HookAnswer(
        verdict=_VERDICTS[word],
        reason=one_line(str(row.get("reason", row.get("permissionDecisionReason", ""))), 500),
        arguments=arguments if isinstance(arguments, dict) else None,
        context=context[:CONTEXT_LIMIT] if isinstance(context, str) else "",
        text=text_put if isinstance(text_put, str) else None,
    )
