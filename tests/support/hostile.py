"""Text that would take a terminal over, and what a stream of bytes to a terminal may hold."""

import re

SEQUENCES = (
    "\x1b]52;c;RVZJTA==\x07",
    "\x1b]0;EVILTITLE\x07",
    "\x1b]8;;http://evil.example\x1b\\",
    "\x1bP1$tEVIL\x1b\\",
    "\x1b_EVILAPC\x1b\\",
    "\x1b[2J",
    "\x1b[6n",
    "\x1b[5;53m",
    "\x1bc",
    "\x9b31;5m",
    "\x9d0;EVILC1\x9c",
    "\x1b]0;unterminated",
)
HIDDEN = "\u202eEVIL\u202c\u200b\u2066\ufeff\U000e0041\u0008\r"
MARKUP = (
    "[bold red]EVILBOLD[/] [@click=app.leave]EVILCLICK[/] [safe](file:///etc/passwd) [link=http://evil.example]l[/link]"
)
PAYLOAD = "".join(SEQUENCES) + HIDDEN + MARKUP
# What may stand in the name of a file.
NAME = "na\x1b[2J\x1b]0;EVILTITLE\x07\u202eme.txt"

# All that the program itself sends: colours without blinking, places, erasing, modes it sets and asks for, its title.
_OURS = re.compile(
    r"\x1b\[(?:[0-9;]*m|\d+;\d+H|\?(?:7|25|1000|1003|1004|1006|1015|1049|2004|2026|2048)[hl]|\?20(?:26|48)\$p|>\d+u|<u"
    r"|2[23];2t|0?K|\d+X)"
    r"|\x1b\](?:[012];[^\x00-\x1f\x7f-\x9f]*|22;[a-z]*)\x07"
    r"|\r\n"
)
_FOREIGN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


def foreign(raw: bytes) -> list[str]:
    """What of a stream to a terminal is not the program's own: each with what stands around it."""
    text = raw.decode("utf-8", "replace")
    found = [sequence for sequence in SEQUENCES if sequence in text]
    # What was read may end within a sequence; the rest of it is on its way.
    rest = re.sub(r"\x1b(?:\[[0-9;?]*)?$", "", _OURS.sub("", text))
    return found + [rest[max(0, match.start() - 30) : match.end() + 30] for match in _FOREIGN.finditer(rest)][:20]
