"""What an answer without calls is: an end, or a model that stopped short of one. It may have said nothing, said what
it will do and not done it, written a call as text, or have had its call lost on the way. Each is told once."""

import re

from codewhale.context.holdback import HoldBack
from codewhale.engine.collect import Answer
from codewhale.protocol.marks import opens
from codewhale.protocol.modes import Mode

PAUSED = "You stopped in the middle. Go on where you stopped."
EMPTY = (
    "Your last message held neither an answer nor a tool call. If the task is done, say what you did; if not, make "
    "the next tool call now."
)
ANNOUNCED = (
    "Your last message said what you will do, but held no tool call, so nothing has happened. Make that tool call now; "
    "if nothing is left to do, say what you did."
)
TEXT_CALL = (
    "Your last message wrote a tool call as text. Text is not run. Make the call through the tool interface, or "
    "answer in plain words."
)
TOO_LONG = (
    "Your last message hit its length limit before it held an answer or a tool call. Think less, and answer or make "
    "the next tool call now."
)
LOST = (
    "Your last message was to make a tool call, but none arrived that could be read, so nothing was run. Make the call "
    "again, with its arguments as one valid JSON object."
)
# What a model did that was told and did not help, in the words of the turn's end.
REASONS = {
    PAUSED: "stopped in the middle",
    EMPTY: "gave neither an answer nor a tool call",
    ANNOUNCED: "announced a tool call and made none",
    TEXT_CALL: "wrote tool calls as text",
    TOO_LONG: "hit its length limit without an answer or a tool call",
    LOST: "made no tool call that could be read",
}

_LAST = (">", "]", "}", ")", "|")
# A whole message in the form of a call of Python, of a name as tools have them.
_PYTHONIC = re.compile(r"[a-z]+(?:_[a-z0-9]+)+\(\s*\w+\s*=[^\n]{1,2000}\)")
# What leads to a call that is meant: one line of the model's own about what it does.
_OWN_WORDS = re.compile(r"(?i)(?=.*(?:\b(?:I|let|me|now|sure|ok|okay|first|next)\b|I['’]|我))[^\n]{1,200}")
_EXAMPLE = re.compile(
    r"(?i)\b(?:examples?|e\.g|for instance|such as|looks? like|like (?:this|so)|format|syntax|template|emits?|wrote|"
    r"says?|sends?|follows|shows?|shown|samples?|would|document\w*|models?|readme|parsers?|markup|never|not)\b|n['’]t\b"
)
LOST_CALL = "malformed_function_call"
_CALL_FINISHES = ("tool_calls", "function_call", "tool_use", LOST_CALL)


def shortfall(answer: Answer, mode: Mode, begun: bool) -> str:
    """What to tell a model about an answer that holds no call, "" where it is an end. `begun` says that calls were
    made in this turn before."""
    text = answer.text.strip()
    if answer.finish == "pause_turn":
        return PAUSED
    lost = answer.finish.lower() in _CALL_FINISHES
    if not text:
        return LOST if lost else TOO_LONG if answer.finish == "length" else EMPTY
    if imitates_call(text):
        return TEXT_CALL
    if answer.finish != "length" and announces(text, mode, begun):
        return ANNOUNCED
    return LOST if lost else ""


def imitates_call(text: str) -> bool:
    """Whether an answer is or ends with a call that was meant and written as text in a form that cannot be read. What
    stands in code marks, is led in as an example or has words behind it is a quotation."""
    if _PYTHONIC.fullmatch(text.strip()):
        return True
    if text.rstrip()[-1:] not in _LAST:
        return False
    hold = HoldBack()
    before = hold.feed(text).strip()
    rest = hold.end().strip()
    if not rest or not opens(rest + "\0") or rest[-1] not in _LAST:
        return False
    return not before or bool(_OWN_WORDS.fullmatch(before) and not _EXAMPLE.search(before))


# ---------------------------------------------------------------------- announcements

_LOOK = (
    "read|open|look|check|inspect|examine|view|review|search|grep|find|list|scan|explore|investigate|analy[sz]e|"
    "verify|locate|gather|trace|dig|fetch|load|take a (?:closer )?look|see (?:what|which|how|where|if|whether)"
)
_ACT = (
    "run|execute|test|create|write|make(?! sure)|add(?! that)|edit|update|modify|change|fix|implement|apply|patch|"
    "delete|remove|rename|move(?! on)|install|build|start|begin|proceed|continue|use|call(?! (?:it|this|that|them))|"
    "invoke|do (?:it|that|this|so)|try|replace|refactor|set up|go ahead|generate|save|insert|commit|download|compile|"
    "debug|correct(?! myself)|adjust|rewrite|complete|append|copy|get (?:the|a|an|all|its|started|on)"
)
_LOOKING = (
    "reading|opening|looking|checking|inspecting|examining|searching|listing|scanning|exploring|investigating|fetching"
)
_ACTING = (
    "running|executing|creating|writing|adding|editing|updating|modifying|fixing|implementing|applying|deleting|"
    "removing|renaming|moving|installing|building|starting|calling|using|invoking|generating|proceeding"
)
_I = (
    r"(?:(?:^|[\s,;:(*>-])(?:I['’]?ll|I will|I shall|I['’]?m (?:now )?going to|I am (?:now )?going to|I['’]?m about to|"
    r"I am about to|I (?:now )?(?:need|want|have) to|I should|we['’]?ll|we will)|"
    r"(?:^\W*|[,;:(*>-]\s*|\b(?:now|so|and|then|but|next|first|okay|ok|sure|finally)\s+)(?:let me|let['’]?s|going to))"
)
_SOON = (
    r"(?:\s+(?:now|first|then|next|also|just|quickly|simply|directly|immediately|start by|begin by|go ahead and|"
    r"need to|try to|to|be|use|and))*"
)
_SAYS = {
    mode: re.compile(rf"(?i){_I}{_SOON}\s+(?:{verbs}|{gerunds})\b")
    for mode, verbs, gerunds in (
        ("look", _LOOK, _LOOKING),
        ("any", f"{_LOOK}|{_ACT}", f"{_LOOKING}|{_ACTING}"),
    )
}
_DOING = {
    mode: re.compile(rf"(?i)^\W*(?:(?:now|next|first|okay|ok|sure|then),?\s+)*(?:{gerunds})\b.*(?:now|\.\.\.|…|:)\W*$")
    for mode, gerunds in (("look", _LOOKING), ("any", f"{_LOOKING}|{_ACTING}"))
}
_SAYS_CHINESE = re.compile(
    r"(?:我(?:来|将|会|先|现在|要|需要|这就|马上|接下来)|让我|下面我|接下来我?|现在我?|首先我?)[^。！？\n]{0,12}?"
    r"(?:读取|查看|看一下|看看|检查|搜索|打开|列出|分析|创建|写入|编写|运行|执行|修改|编辑|修复|添加|更新|删除|调用)"
)
# What makes a plan a condition, a question, a refusal or an offer.
_WAITS = re.compile(
    r"(?i)\?|\b(?:if|once|when|whenever|after|unless|until|before) (?:you|that|it|they|the user|we)\b|let me know|"
    r"would you|do you|shall I|should I|\b(?:not|never|cannot)\b|n['’]t\b|\byour? (?:approval|confirmation|permission|"
    r"go-ahead|reply|answer|choice)|\bin (?:the )?future\b|from now on|next time|wait(?:ing)? for|"
    r"\b(?:please|feel free|tell me|just (?:ask|say)|say so)\b|如果|如需|需要我|要我|请|吗|？|是否|等待"
)
_TARGET = re.compile(
    r"(?i)\b(?:files?|folders?|director(?:y|ies)|code|codebase|repo(?:sitory)?|project|tests?|suite|command|script|"
    r"source|structure|function|class|module|tool)\b|[\w-]+\.[a-z]{1,5}\b|\w/\w|`[^`]+`|\w+_\w+"
)
_SENTENCE = re.compile(r"(?<=[.!?。！？:：…])\s+|\n+|(?<=[。！？])")
_LONG = 600


def announces(text: str, mode: Mode, begun: bool) -> bool:
    """Whether a text ends by saying what its author will do next with tools, in Plan mode with those that look: a
    plan may say what will be changed. Before the first call of a turn the first words of a short text count too."""
    if text.rstrip().endswith(("```", "~~~")):
        return False
    kind = "look" if mode is Mode.PLAN else "any"
    said = [part.strip() for part in _SENTENCE.split(text[-2 * _LONG :]) if part and part.strip()]
    if not said or _WAITS.search(said[-1]):
        return False
    if _plans(said[-1], kind):
        return True
    early = [] if begun or len(text) > _LONG else said[-3:-1]
    return any(_plans(part, kind) and _TARGET.search(part) and not _WAITS.search(part) for part in early)


def _plans(sentence: str, kind: str) -> bool:
    if _SAYS[kind].search(sentence) or _DOING[kind].search(sentence):
        return True
    return bool(_SAYS_CHINESE.search(sentence))
