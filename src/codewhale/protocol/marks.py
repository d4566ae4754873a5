"""What begins a call that a model wrote as text: for who holds such text back while it is streamed, and for who reads
it when it is whole. Separate so that the one need not load the other."""

import functools
import re

# What a place that begins calls begins with, in any format that ordinary text does not use.
MARKS = (
    "<｜DSML", "<|DSML", "<‖DSML", "<｜｜DSML", "<||DSML", "<tool_call", "<tool_use", "<tool>", "<function=",
    "<function_call", "<invoke", "<antml", "<minimax:tool_call", "<seed:tool_call", "<longcat_tool_call", "<TOOLCALL",
    "<｜tool▁call", "<|tool▁call", "<|tool_call", "<｜tool_call", "<|python_", "<|action_start|>", "<|START_ACTION|>",
    "<|start|>", "<|channel|>", "<steptml:", "[TOOL_CALL", "to=functions.", "functools[",
)  # fmt: skip
# What a message begins with that is nothing but calls.
WHOLE = ("{", "Action:", "Thought:", "call:")
LABELS = ("", "json", "tool_call", "tool_code", "tool", "tool_calls", "function_call")

# What ends or begins a block of ours, a message or a call for some model.
_BLOCKS = "user_memory|session_relay|instructions|constitution|context_update|web_page|search_results|mcp_result"
_ROLES = r"system\b|assistant\b|human\b|start_of_turn|end_of_turn|bos>|eos>|s>|think\b|<SYS"
_LIVE = (
    rf"[<＜﹤](?=\s*[/|｜／]|\w+[|｜]>|\s*(?:{_BLOCKS}|{_ROLES}))"
    + r"|\[(?=\s*(?:/\s*)?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w+|gMASK)\]|e~\[)|\](?=~!?b[\[\]])|"
    + "|".join(rf"{re.escape(mark[0])}(?={re.escape(mark[1:])})" for mark in MARKS if mark[0] in "<[")
)

# What the text of an MCP server begins with.
SERVED = "<mcp_result "

_HOMES = "\n.!?:;)。！？：…>*"
_FULL = re.compile("|".join(re.escape(mark) for mark in MARKS) + r"|<[a-z][a-z0-9]*(?:_[a-z0-9]+)+>")
_SO_FAR = frozenset(mark[:length] for mark in MARKS for length in range(len(mark)))
_TAG_SO_FAR = re.compile(r"<[a-z][a-z0-9]*(?:_[a-z0-9]+)*_?")
_LIST = re.compile(r"\[\s*(?:[{\"]|[A-Za-z_][\w.]*\()")
_LIST_SO_FAR = re.compile(r"\[\s{0,200}(?:[A-Za-z_][\w.]{0,100})?")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})([^`]*)$")
_FENCE_LABEL = re.compile(r"(`{3,9})([\w-]{0,20})[ \t]{0,9}(\n|$)")


@functools.cache
def _live() -> re.Pattern[str]:
    return re.compile(_LIVE, re.IGNORECASE)  # in milliseconds, so not before it is used


def inert(text: str) -> str:
    """A text in which nothing begins or ends a block of ours, a message or a call: a backslash stands in it."""
    return _live().sub(lambda mark: mark[0] + "\\", text)


def opens(text: str) -> bool:
    return bool(_FULL.match(text)) or text in _SO_FAR or bool(_TAG_SO_FAR.fullmatch(text))


def opens_whole(text: str) -> bool:
    if text[0] in "`":
        label = _FENCE_LABEL.match(text)
        return text in ("`", "``", "```") or bool(label and _labelled(label[2], whole=bool(label[3])))
    if text[0] == "[":
        return bool(_LIST.match(text) or _LIST_SO_FAR.fullmatch(text)) or opens(text)
    return any(text.startswith(mark) or mark.startswith(text) for mark in WHOLE) or opens(text)


def _labelled(label: str, *, whole: bool) -> bool:
    return label in LABELS if whole else any(known.startswith(label) for known in LABELS)


def may_stand(before: str) -> bool:
    """Whether a call can begin behind these last characters: at the start of a line, or behind a sentence."""
    near = before.rstrip(" \t")
    return not near or near[-1] in _HOMES


class Fences:
    """Tells line by line whether a text is inside a code fence, which its own mark closes, as long or longer."""

    def __init__(self) -> None:
        self._open = ""

    @property
    def inside(self) -> bool:
        return bool(self._open)

    def pass_line(self, line: str) -> None:
        match = _FENCE.match(line)
        if match is None:
            return
        if not self._open:
            self._open = match[1]
        elif match[1].startswith(self._open) and not match[2].strip():
            self._open = ""
