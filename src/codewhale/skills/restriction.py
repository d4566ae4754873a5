"""What the header of a skill says of tools: a restriction as a scope, a pre-approval as rules.

A token is the name of a tool, ours or one of Claude's, with an optional pattern: `read_file`, `Bash(git log:*)`.
"""

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from codewhale.permissions.prefixes import offered
from codewhale.protocol.decisions import Rule
from codewhale.protocol.scopes import Scope

_TOKEN = re.compile(r"(?P<name>[^\s(),]+)(?:\((?P<pattern>[^()]*[^()\s][^()]*)\))?")
# What other programs call our tools, where a repair of the call would not know it by the name alone.
FOREIGN = {
    "Agent": ("agent_open", "agent_eval", "agent_close"),
    "AskUserQuestion": ("request_user_input",),
    "Bash": ("exec_shell", "exec_shell_wait", "exec_shell_cancel"),
    "BashOutput": ("exec_shell_wait",),
    "Edit": ("edit_file", "apply_patch"),
    "Glob": ("file_search",),
    "Grep": ("grep_files",),
    "KillBash": ("exec_shell_cancel",),
    "KillShell": ("exec_shell_cancel",),
    "LS": ("list_dir",),
    "MultiEdit": ("edit_file", "apply_patch"),
    "Read": ("read_file",),
    "Skill": ("load_skill",),
    "Task": ("agent_open", "agent_eval", "agent_close"),
    "TodoRead": ("checklist_list",),
    "TodoWrite": ("checklist_write", "checklist_add", "checklist_update"),
    "WebFetch": ("fetch_url",),
    "WebSearch": ("web_search",),
    "Write": ("write_file",),
}
# The tools that run command lines, whose pattern is one of commands.
COMMANDS = frozenset(("exec_shell", "task_gate_run", "task_shell_start"))
# That runs a project's own tests; run_verifiers runs any program that a call names.
TESTS = "run_tests"
_MOST = 200


class Token(Struct, frozen=True):
    """One token: how it is written, the tools it names (none: no tool of ours), and its pattern ("" for none)."""

    text: str
    tools: tuple[str, ...]
    pattern: str = ""


class PreApproval(Struct, frozen=True):
    """What a token pre-approves: the rules, or why it is not honoured."""

    token: Token
    rules: tuple[Rule, ...] = ()
    problem: str = ""


def read_tokens(tokens: Iterable[str], canonical: Callable[[str], str]) -> tuple[Token, ...]:
    """The tokens of a header; `canonical(name)` is the tool that a name stands for, "" for none."""
    read = []
    for text in list(tokens)[:_MOST]:
        match = _TOKEN.fullmatch(text.strip())
        if match is None:
            read.append(Token(text, ()))
            continue
        name = match["name"]
        tool = canonical(name)
        tools = FOREIGN.get(name) or ((tool,) if tool else ())
        read.append(Token(text, tools, _pattern(match["pattern"] or "")))
    return tuple(read)


def _pattern(written: str) -> str:
    """`git log:*` and `git log *` are commands that begin so, "*" is any."""
    text = written.strip()
    if text in ("*", ":*"):
        return "*"
    return text.removesuffix(":*") + " *" if text.endswith(":*") else text


def restriction(name: str, tokens: Iterable[Token]) -> Scope:
    """What a skill leaves of the tools: those it names, command lines by their patterns. A token that names no tool, or
    has a pattern that cannot be held to, leaves nothing."""
    tools: dict[str, None] = {}
    lines: dict[str, list[str]] = {}
    whole: set[str] = set()
    for token in tokens:
        if token.pattern not in ("", "*") and not COMMANDS.intersection(token.tools):
            continue
        for tool in token.tools:
            tools[tool] = None
            if tool in COMMANDS:
                lines.setdefault(tool, []).append(token.pattern)
                if token.pattern in ("", "*"):
                    whole.add(tool)
    held = tuple((tool, tuple(dict.fromkeys(patterns))) for tool, patterns in lines.items() if tool not in whole)
    return Scope(tools=tuple(tools), lines=held, skills=(name,))


def approvals(name: str, tokens: Iterable[Token]) -> tuple[PreApproval, ...]:
    """What a skill pre-approves, token by token. A command must be whole, or begin with words that an approval may be
    remembered by; a tool that runs commands is never approved as such."""
    return tuple(_approval(name, token) for token in tokens)


def _approval(name: str, token: Token) -> PreApproval:
    if not token.tools:
        return PreApproval(token, problem="names no tool")
    command = next((tool for tool in token.tools if tool in COMMANDS), "")
    if not command:
        if token.tools != (TESTS,) or token.pattern:
            return PreApproval(token, problem="decided by the mode, as without the skill")
        return PreApproval(token, (Rule("allow", TESTS, reason=name, source="skill"),))
    if token.pattern in ("", "*"):
        return PreApproval(token, problem="names no command")
    if len(token.pattern.splitlines()) > 1:
        return PreApproval(token, problem="is more than one line")
    if not token.pattern.endswith("*"):
        return PreApproval(token, (Rule("allow", command, command_exact=token.pattern, reason=name, source="skill"),))
    first = tuple(token.pattern.removesuffix("*").split())
    prefix = " ".join(first)
    if offered(first) != prefix:
        return PreApproval(token, problem=f"{prefix} can run, remove or send anything; name the whole command")
    return PreApproval(token, (Rule("allow", command, command=prefix, reason=name, source="skill"),))
