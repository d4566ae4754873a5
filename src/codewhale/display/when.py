"""Times as people say them: how long ago something was."""

from datetime import datetime

from codewhale.display.words import Words

_MINUTE, _HOUR, _DAY, _WEEK = 60, 3600, 86_400, 7 * 86_400


def ago(words: Words, at: str, now: float) -> str:
    """How long before `now` (seconds since 1970) an RFC 3339 time was; the day where that is a week or more, or where
    it is still to come."""
    try:
        seconds = now - datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return ""
    if seconds < -_MINUTE or seconds >= _WEEK:
        return at[:10]
    if seconds < _MINUTE:
        return words("when.now")
    for size, name in ((_DAY, "days"), (_HOUR, "hours"), (_MINUTE, "minutes")):
        if seconds >= size:
            return words(f"when.{name}", n=int(seconds // size))
    return ""
