"""Whether a text reads as orders to a model, or pretends to be a part of a conversation, rather than as a fact."""

import html
import re
import unicodedata

from codewhale.lib.text import sanitise
from codewhale.protocol.marks import MARKS

_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|former|initial|original|your|system|existing)"
_SAID = (
    r"(?:instructions?|directions?|directives?|prompts?|messages?|guidelines?|guardrails?|rules|orders|commands"
    r"|context|conversation|restrictions?|policies)"
)
_DROP = r"(?:ignore|disregard|forget|override|overrule|bypass|neglect|drop|do not follow|don't follow|stop following)"
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_DROP}\b(?:\W+\w+){{0,4}}?\W+{_EARLIER}\b(?:\W+\w+){{0,3}}?\W+{_SAID}\b",
        rf"\b{_DROP}\b\W+(?:all|any|every|the|these|those)\W+(?:of\W+the\W+)?"
        r"(?:instructions|prompts|guidelines|orders)\b",
        rf"\b{_DROP}\b\W+(?:(?:all|any|the|of|everything|anything|what)\W+)*"
        r"(?:previous|above|foregoing|preceding)\s*(?:[.,;:!]|$|\band\b)",
        rf"\b{_DROP}\b\W+(?:all|everything|anything|what)\b(?:\W+\w+){{0,5}}?\W+(?:told|said|instructed|learned|know)\b",
        r"\byou are (?:now|no longer)\b(?! (?:able|in|on|at)\b)",
        r"\b(?:pretend|act as if|behave as if) you(?:'re| are| were| have)\b",
        r"\b(?:new|updated|real|hidden|secret) (?:system )?(?:instructions?|prompt)\s*:",
        r"\b(?:reveal|print|show|repeat|leak|output) (?:me )?(?:your|the) (?:\w+ )?system prompt\b",
        r"\b(?:do not|don't|never|without) (?:tell|telling|inform|informing|notify|notifying|alert|alerting|mention\w*"
        r"(?: (?:this|it))? to|show\w*(?: (?:this|it))? to) (?:the |your )?(?:user|person|human|developer|operator)\b",
        r"\b(?:developer|god|jailbreak|dan) mode\b(?: (?:is )?(?:on|enabled|activated))",
        r"忽略(?:掉)?(?:之前|先前|以上|上面|前面|所有)[^。]{0,8}(?:指令|指示|提示|规则|内容|要求)|无视(?:之前|先前|以上|上面|所有)",
        r"\bignorier\w*\b(?:\W+\w+){0,3}?\W+(?:vorherig|bisherig|obig|vorangegangen)\w*\W+(?:Anweisung|Regel|Befehl|Vorgabe)",
        r"\b(?:ignor|oubli)\w*\b(?:\W+\w+){0,4}?\W+(?:instructions|consignes)\W+(?:pr[ée]c[ée]dentes|ci-dessus)",
        r"\b(?:ignora|olvida|ignore|esque[cç]a)\w*\b(?:\W+\w+){0,4}?\W+(?:instrucciones|instru[cç][oõ]es|[oó]rdenes)"
        r"\W+(?:anteriores|previas|acima)",
        r"игнорируй\w*\s+(?:\w+\s+){0,2}(?:предыдущ|прежн)\w*\s+(?:инструкц|указани|команд)",
    )
)
_ROLES = re.compile(
    r"<[|｜]?\s*/?[\w▁:-]{1,40}\s*[|｜]>|<[|｜]\w{1,40}>|\[e~\[|\]~!?b[\[\]]|\[/?SYSTEM_PROMPT\]"
    r"|</?(?:system|assistant|user|human|developer|start_of_turn|end_of_turn|system-reminder|system_prompt)\s*>"
    r"|\[/?INST\]|<</?SYS>>|^\W*(?:system|assistant|human)(?: prompt| message)?\s*:\s"
    r"|(?:\\n|#{2,})\s*(?:system|assistant|human|user)(?: prompt| message)?\s*:\s",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"<\s*user_memory\b|<\s*/\s*(?:user_memory|memory|instructions?|context(?:_update)?|skills?|rules?|constitution|compacted|message"
    r"|summary|result|tool_results?|function_results?|untrusted\w*|documents?)\s*>",
    re.IGNORECASE,
)
_CALLS = re.compile(
    "|".join(re.escape(mark) for mark in MARKS)
    + r"|</(?:tool_call|tool_calls|tool_use|invoke|function_calls?|parameter)\s*>"
    + r"|\{\s*\\?[\"'](?:name|tool|tool_name|function)\\?[\"']\s*:[^{}]{0,200}"
    + r"[\"'](?:arguments|parameters|input|args)\\?[\"']\s*:",
    re.IGNORECASE,
)


# Such characters in a fact that was stored: as the escapes that they are shown as.
_ESCAPED = re.compile(
    r"\\x(?:1b[\]P_^]|9[bd]|ad|08|7f)|\\u(?:200b|202[a-e]|206[0-9a-f]|fe0[0-9a-f]|feff|3164)|\\U000e0[01]",
    re.IGNORECASE,
)


def orders_in(text: str) -> str:
    """What of a text is no fact but speaks to a model, in a few words; "" for nothing."""
    if sanitise(text) != text or _ESCAPED.search(text):
        return "characters that nobody sees"
    flat = unicodedata.normalize("NFKC", html.unescape(text))
    for what, pattern in (("tool call markup", _CALLS), ("a tag of a role", _ROLES), ("a closing tag", _CLOSING)):
        if pattern.search(text) or pattern.search(flat):
            return what
    return "an order to a model" if any(pattern.search(flat) for pattern in _ORDERS) else ""
