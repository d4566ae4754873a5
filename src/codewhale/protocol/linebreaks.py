"""Text whose line breaks came as the two characters of their escape."""

import re

_ESCAPE = re.compile(r"\\(?:r\\n|[nrt\"\\/])")
_MEANT = {"\\r\\n": "\n", "\\n": "\n", "\\r": "\r", "\\t": "\t", '\\"': '"', "\\\\": "\\", "\\/": "/"}
# Apostrophes that are no quotes, and quotes that span lines.
_NO_QUOTE = re.compile(r"(?<=[A-Za-z])'(?=(?:t|s|re|ve|ll|d|m)\b)|\"{3}|'{3}")
_DRIVE = re.compile(r"(?:^|\W)[A-Za-z]:$")
# A backslash that only code or prose with backslashes of its own holds: a regular expression, TeX, a folder.
_OTHER = re.compile(r"\\[^nrt\"'\\/]|[/\[(|?^%]\\+n|\\+n[\])*+?|/{]")


def unescaped(text: str) -> str:
    """The text with real line breaks where it holds none and its escapes of them can only be meant as such: outside
    of quotes, and with no other backslash about. "" for any other text."""
    if "\\n" not in text or "\n" in text or _OTHER.search(text):
        return ""
    lines = _ESCAPE.sub(lambda match: _MEANT[match.group()], text).replace("\r", "")
    if any(not closed(_NO_QUOTE.sub("", line.replace("\\'", ""))) for line in lines.split("\n")):
        return ""
    return lines


def closed(line: str) -> bool:
    within = ""
    for mark in line:
        if within:
            within = "" if mark == within else within
        elif mark in "\"'`":
            within = mark
        elif mark == "\0":
            return False
    return not within and not _DRIVE.search(line)
