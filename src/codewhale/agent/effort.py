"""How hard the model is to think in a turn: as the person chose, or as the words of the turn suggest."""

import re
from collections.abc import Mapping

from codewhale.models.dialects.base import Fact

LEVELS = ("off", "low", "medium", "high", "max")
CHOICES = ("", *LEVELS, "auto")
_ASLEEP = "asleep"

# Latin words may stand right beside Chinese or Japanese ones. Compiled when `auto` is first asked.
_TROUBLE = (
    r"(?<![a-z])(?:debug[a-z]*|errors?|bugs?|buggy|crash(?:e[sd]|ing)?|tracebacks?|stack ?traces?|exceptions?"
    r"|fail(?:s|ed|ing|ures?)?|panic[a-z]*|segfault[a-z]*|deadlock[a-z]*|regressions?)(?![a-z])"
    r"|调试|除错|错误|报错|异常|崩溃|故障|失败|調試|偵錯|除錯|錯誤|報錯|異常|崩潰|失敗"
    r"|デバッグ|エラー|バグ|例外|クラッシュ|不具合|障害"
)
_LOOKUP = (
    r"(?<![a-z])(?:search[a-z]*|look(?:s|ing)? ?up|grep|locate)(?![a-z])"
    r"|搜索|查找|查询|检索|搜尋|查詢|檢索|検索|調べ|探して"
)


def turn_effort(chosen: str, text: str, child: bool = False) -> str:
    """The level for a turn that begins with `text`: a chosen level as it is ("" is the model's own measure); of auto
    the least for a sub-agent, the most for trouble, little for looking something up, much for everything else."""
    if chosen != "auto":
        return chosen
    if child:
        return "low"
    if re.search(_TROUBLE, text, re.IGNORECASE):
        return "max"
    return "low" if re.search(_LOOKUP, text, re.IGNORECASE) else "high"


def facts_at(effort: str, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """The facts that messages are written by when a head is pinned at this effort: a conversation that begins without
    thinking sends none back, makes none up, and is marked as such."""
    if effort == "off" and facts.get("replays_reasoning"):
        return {**facts, "replays_reasoning": False, _ASLEEP: True}
    return dict(facts)


def wakes(effort: str, pinned: Mapping[str, Fact]) -> bool:
    return effort != "off" and bool(pinned.get(_ASLEEP))
