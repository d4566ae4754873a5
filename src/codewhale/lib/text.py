"""Text: cutting it, making it safe for a terminal, making it ASCII for a JSON line."""

import re

_UNPRINTED = re.compile(r"[^\x00-\x7e]")
# C0 but tab and newline, DEL, C1, zero-width, bidi, fillers, line separators, BOM, tags, lone surrogates. A joiner is
# no part of it between emoji or letters that join, nor a variation selector behind a sign that has variants.
_EMOJI = "\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_JOINING = "\u0620-\u064a\u066e-\u06d3\u0750-\u077f\u0900-\u0dff"
_HAN = "\u3000-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_VARIED = f"{_EMOJI}{_HAN}0-9#*\xa9\xae\u1000-\u109f\u1800-\u18af\u203c\u2049\u2100-\u24ff\ua840-\ua87f\uff00-\uffef"
_UNSAFE = (  # as text: it takes milliseconds to compile, and most text is ASCII
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-"
    "\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff]"
    f"|\u200d(?:(?<![{_EMOJI}\ufe0f{_JOINING}]\u200d)|(?![{_EMOJI}{_JOINING}]))"
    f"|\u200c(?:(?<![{_JOINING}]\u200c)|(?![{_JOINING}]))"
    f"|[\ufe00-\ufe0f\u180b-\u180f](?<![{_VARIED}].)|[\U000e0100-\U000e0fff](?<![{_HAN}].)"
)
_LONE = re.compile("[\ud800-\udfff]")


def sanitise(text: str) -> str:
    """Text that cannot move a cursor, set a title or reorder itself: every control, bidi, zero-width and tag
    character but tab and newline is shown as an escape."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f]" if text.isascii() else _UNSAFE, lambda m: _escape(m.group()), text)


def one_line(text: str, limit: int = 200) -> str:
    """Sanitised text on one line of at most `limit` characters."""
    flat = sanitise(" ".join(text.split()))
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def counted(count: int, noun: str) -> str:
    """A number and its noun: 1 file, 2 files."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def told_line(text: str) -> str:
    """All of a text, sanitised, on one line, its line breaks as escapes: for a path, which is told as it is."""
    return sanitise(text).replace("\n", r"\x0a")


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def ascii_json(data: bytes) -> str:
    """JSON bytes (UTF-8) as printable ASCII text: DEL and characters beyond ASCII, which can only stand inside strings,
    become \\uXXXX escapes."""
    text = data.decode()
    return text if text.isascii() and "\x7f" not in text else _UNPRINTED.sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def fenced(text: str) -> str:
    """Text in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((fence, text.removesuffix("\n"), fence))


def scrub_surrogates(text: str) -> str:
    """Text that encodes as UTF-8: lone surrogates become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _LONE.sub("\ufffd", text)
    return text


def head_tail(text: str, limit: int) -> tuple[str, str, int]:
    """Cut text to about `limit` bytes of UTF-8, two thirds from its head and one third from its tail, both at
    line ends where one is near. Returns (head, tail, bytes left out); tail is "" and the count 0 when it fits."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text, "", 0
    head = _decode(data[: limit * 2 // 3])
    tail = _decode(data[-(limit // 3) :])
    cut = head.rfind("\n")
    if cut > len(head) // 2:
        head = head[: cut + 1]
    cut = tail.find("\n")
    if 0 <= cut < len(tail) // 2:
        tail = tail[cut + 1 :]
    kept = len(head.encode("utf-8", "surrogatepass")) + len(tail.encode("utf-8", "surrogatepass"))
    return head, tail, len(data) - kept


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "ignore")
