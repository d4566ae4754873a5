"""One entry of a file that names MCP servers, checked by itself: what is wrong with it names the key and the remedy,
and leaves every other entry as it is."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from codewhale.lib.patterns import lazy
from codewhale.lib.text import one_line

Source = Literal["user", "project"]
STDIO, HTTP = "stdio", "http"
CONNECT_SECONDS, CALL_SECONDS, READ_SECONDS, MOST_SECONDS = 10.0, 60.0, 120.0, 3600.0
MOST_NAME, MOST_TEXT, MOST_WORDS = 64, 8192, 256
SANDBOXES = ("none", "workspace-write", "read-only")
_TRANSPORTS = {
    "stdio": STDIO, "local": STDIO, "http": HTTP, "streamable-http": HTTP, "streamable_http": HTTP,
    "streamableHttp": HTTP, "remote": HTTP,
}  # fmt: skip
_TIMES = ("connect_timeout", "execute_timeout", "read_timeout")
_KEYS = frozenset(
    """command args env cwd url transport type headers connect_timeout execute_timeout read_timeout disabled enabled
    required enabled_tools disabled_tools always_load sampling sandbox description""".split()
)
_VARIABLE = lazy(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = lazy(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ADDRESS = lazy(r"https?://(?P<login>[^/?#@]*@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^/?#@:\s]+)(:\d{1,5})?([/?#]\S*)?")


class Times(Struct, frozen=True):
    """Seconds that a server has to answer: when it is connected, when a tool is called, when a resource is read."""

    connect: float = CONNECT_SECONDS
    call: float = CALL_SECONDS
    read: float = READ_SECONDS


class ConfigFault(Struct, frozen=True):
    """What is wrong in a file, where, and what to do."""

    file: str
    key: str
    text: str
    remedy: str

    @property
    def line(self) -> str:
        return f"{self.file}: {self.key}: {self.text}. {self.remedy}."


class ConfiguredServer(Struct, frozen=True):
    """A server as a file names it. `argv` is its program as it is written, or `url` its address; texts may hold
    `${NAME}`. `enabled_tools` are the only ones where there are any, `always_load` those that join the array ("*" is
    every one). `fault` is why it cannot be used."""

    name: str
    file: str
    source: Source
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    times: Times = Times()
    disabled: bool = False
    required: bool = False
    enabled_tools: tuple[str, ...] = ()
    disabled_tools: tuple[str, ...] = ()
    always_load: tuple[str, ...] = ()
    sampling: bool = False
    sandbox: str = "none"
    fault: ConfigFault | None = None

    @property
    def transport(self) -> str:
        return HTTP if self.url else STDIO

    @property
    def key(self) -> str:
        """What it is kept under."""
        return f"{self.file}#{self.name}"

    def takes(self, tool: str) -> bool:
        """Whether a tool of it is to be had."""
        return tool not in self.disabled_tools and (not self.enabled_tools or tool in self.enabled_tools)

    def always(self, tool: str) -> bool:
        return "*" in self.always_load or tool in self.always_load

    @property
    def digest(self) -> str:
        """What is written of how it is reached, as a hash."""
        said = (self.argv, dict(self.env), self.cwd, self.url, dict(self.headers), self.sandbox, self.sampling)
        return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()


class EntryFault(Exception):
    """A key that is wrong: its name, what is wrong, and what to do."""

    def __init__(self, key: str, text: str, remedy: str) -> None:
        super().__init__(text)
        self.key, self.text, self.remedy = key, text, remedy


def read_entry(name: str, row: Any, file: str, source: Source, times: Times) -> ConfiguredServer:
    """The server of an entry; one with a fault holds that alone."""
    try:
        _check_name(name)
        if not isinstance(row, dict):
            raise EntryFault(
                "", f"is {_kind(row)}", 'Write an object such as {"command": "npx", "args": ["-y", "..."]}'
            )
        return _server(name, row, file, source, times)
    except EntryFault as wrong:
        place = ".".join(filter(None, ("servers", one_line(name, 80) or '""', wrong.key)))
        required = isinstance(row, dict) and row.get("required") is True
        fault = ConfigFault(file, place, wrong.text, wrong.remedy)
        return ConfiguredServer(name, file, source, required=required, fault=fault)


def read_times(row: Any) -> Times:
    """The times of a file's `timeouts`, or of an entry's own. Raises EntryFault."""
    if not isinstance(row, dict):
        raise EntryFault("timeouts", f"is {_kind(row)}", 'Write an object such as {"connect_timeout": 10}')
    if unknown := sorted(set(row) - set(_TIMES)):
        raise EntryFault(f"timeouts.{unknown[0]}", "is unknown", f"Known are {', '.join(_TIMES)}")
    return _times(row, Times(), "timeouts.")


def _check_name(name: str) -> None:
    if not name or len(name) > MOST_NAME or not name.isprintable() or name != name.strip():
        text = "is no name for a server"
        raise EntryFault("", text, f"Use 1 to {MOST_NAME} letters, digits, - and _")


def _server(name: str, row: dict[str, Any], file: str, source: Source, times: Times) -> ConfiguredServer:
    _check_keys(row)
    argv, url = _argv(row), _url(row)
    if bool(argv) == bool(url):
        text = "names both a program (command) and an address (url)" if url else "names neither a command nor a url"
        raise EntryFault("command", text, "Keep command and args for a program of this machine, or url for an address")
    _check_transport(row, HTTP if url else STDIO)
    only, without = _names(row, "enabled_tools"), _names(row, "disabled_tools")
    if both := sorted(set(only) & set(without)):
        text = f"names {one_line(both[0], 80)}, and disabled_tools does too"
        raise EntryFault("enabled_tools", text, "Take it out of one of the two")
    return ConfiguredServer(
        name, file, source, argv, _env(row), _text(row, "cwd"), url, _headers(row, url), _times(row, times, ""),
        _disabled(row), _flag(row, "required"), only, without, _always(row), _flag(row, "sampling"), _sandbox(row, url),
    )  # fmt: skip


def _check_keys(row: dict[str, Any]) -> None:
    for key in row:
        if key not in _KEYS:
            import difflib

            near = difflib.get_close_matches(key, sorted(_KEYS), n=1)
            hint = f"Write {near[0]}, or take it out" if near else f"Take it out; known are {', '.join(sorted(_KEYS))}"
            raise EntryFault(one_line(key, 80), "is unknown", hint)


def _argv(row: dict[str, Any]) -> tuple[str, ...]:
    if "command" not in row:
        if "args" in row:
            raise EntryFault("args", "stands without a command", "Add command, the program that takes these arguments")
        return ()
    command = row["command"]
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise EntryFault("command", f"is {_kind(command)}", 'Write the name or path of one program, such as "npx"')
    if " " in command.strip() and "/" not in command.split()[0]:
        first, *rest = command.split()
        remedy = f'Write "command": "{one_line(first, 80)}" and put {one_line(" ".join(rest), 80)} into args'
        raise EntryFault("command", "is a whole command line", remedy)
    args = row.get("args", [])
    if not isinstance(args, list) or not all(isinstance(word, str) and "\0" not in word for word in args):
        raise EntryFault("args", f"is {_kind(args)}", 'Write a list of texts, such as ["-y", "package"]')
    if len(args) > MOST_WORDS or any(len(word) > MOST_TEXT for word in args):
        raise EntryFault("args", "is too long", f"At most {MOST_WORDS} arguments of {MOST_TEXT} characters are taken")
    return (command.strip(), *args)


def _url(row: dict[str, Any]) -> str:
    if "url" not in row:
        return ""
    url = row["url"]
    if not isinstance(url, str) or len(url) > MOST_TEXT or not _ADDRESS().fullmatch(url):
        raise EntryFault("url", f"is {_kind(url)}", 'Write an address such as "https://example.com/mcp"')
    match = _ADDRESS().fullmatch(url)
    if match is not None and match["login"]:
        raise EntryFault("url", "holds a user name or a password", "Put them into headers, as ${NAME} of a variable")
    return url


def _check_transport(row: dict[str, Any], wanted: str) -> None:
    for key in ("transport", "type"):
        if key not in row:
            continue
        said = row[key]
        if said == "sse":
            text = "is sse, the transport that the protocol has given up"
            raise EntryFault(key, text, 'Write the streamable address of the server as url, and "http"')
        if not isinstance(said, str) or said not in _TRANSPORTS:
            raise EntryFault(key, f"is {one_line(str(said), 80)}", "It is stdio or http; or leave it out")
        if _TRANSPORTS[said] != wanted:
            what = "a command" if wanted == STDIO else "a url"
            raise EntryFault(key, f"is {said}, and the entry has {what}", f"Write {wanted}, or leave it out")


def _env(row: dict[str, Any]) -> dict[str, str]:
    env = row.get("env", {})
    if not isinstance(env, dict):
        raise EntryFault("env", f"is {_kind(env)}", 'Write an object such as {"TOKEN": "${TOKEN}"}')
    for name, value in env.items():
        if not _VARIABLE().fullmatch(name):
            raise EntryFault(f"env.{one_line(name, 80)}", "is no name of a variable", "Use letters, digits and _")
        if not isinstance(value, str) or "\0" in value or len(value) > MOST_TEXT:
            raise EntryFault(f"env.{name}", f"is {_kind(value)}", "Write its value in quotes")
    return env


def _headers(row: dict[str, Any], url: str) -> dict[str, str]:
    headers = row.get("headers", {})
    if "headers" in row and not url:
        raise EntryFault("headers", "stands with a command", "A program is given what it needs by env")
    if not isinstance(headers, dict):
        raise EntryFault("headers", f"is {_kind(headers)}", 'Write an object such as {"Authorization": "..."}')
    for name, value in headers.items():
        if not _HEADER().fullmatch(name):
            raise EntryFault(f"headers.{one_line(name, 80)}", "is no name of a header", "Use letters, digits and -")
        if not isinstance(value, str) or len(value) > MOST_TEXT or not value.isprintable():
            raise EntryFault(f"headers.{name}", f"is {_kind(value)}", "Write its value on one line, in quotes")
    return headers


def _times(row: dict[str, Any], default: Times, before: str) -> Times:
    found = []
    for key, least in zip(_TIMES, (default.connect, default.call, default.read), strict=True):
        value = row.get(key, least)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_SECONDS:
            remedy = f"Write seconds above 0 and at most {MOST_SECONDS:g}"
            raise EntryFault(f"{before}{key}", f"is {one_line(str(value), 40)}", remedy)
        found.append(float(value))
    return Times(*found)


def _disabled(row: dict[str, Any]) -> bool:
    disabled, enabled = _flag(row, "disabled"), _flag(row, "enabled", True)
    if {"disabled", "enabled"} <= row.keys() and disabled == enabled:
        raise EntryFault("enabled", "contradicts disabled", "Keep one of the two")
    return disabled or not enabled


def _flag(row: dict[str, Any], key: str, default: bool = False) -> bool:
    value = row.get(key, default)
    if not isinstance(value, bool):
        raise EntryFault(key, f"is {_kind(value)}", "Write true or false")
    return value


def _text(row: dict[str, Any], key: str) -> str:
    value = row.get(key, "")
    if not isinstance(value, str) or "\0" in value or len(value) > MOST_TEXT:
        raise EntryFault(key, f"is {_kind(value)}", "Write a path in quotes")
    return value


def _names(row: dict[str, Any], key: str) -> tuple[str, ...]:
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise EntryFault(key, f"is {_kind(value)}", 'Write a list of names of tools, such as ["search"]')
    return tuple(dict.fromkeys(value))


def _always(row: dict[str, Any]) -> tuple[str, ...]:
    value = row.get("always_load", [])
    return ("*",) * value if isinstance(value, bool) else _names(row, "always_load")


def _sandbox(row: dict[str, Any], url: str) -> str:
    value = row.get("sandbox", "none")
    if value not in SANDBOXES or (url and value != "none"):
        what = "stands with a url" if url else f"is {one_line(str(value), 40)}"
        raise EntryFault("sandbox", what, f"It is one of {', '.join(SANDBOXES)}, for a command")
    return str(value)


def expand(text: str, environ: Mapping[str, str], key: str, used: Callable[[str], None] | None = None) -> str:
    """A text with each `${NAME}` in it replaced by the variable, `${NAME:-else}` by what stands behind where there is
    none. Raises EntryFault."""

    def value(match: re.Match[str]) -> str:
        name, otherwise = match[1], match[2]
        if used is not None:
            used(name)
        if name in environ:
            return environ[name]
        if otherwise is None:
            raise EntryFault(key, f"needs the variable {name}, which is not set", f"Set {name}, or write ${{{name}:-}}")
        return otherwise

    return _REFERENCE().sub(value, text)


_REFERENCE = lazy(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def _kind(value: Any) -> str:
    if value == "" or (isinstance(value, str) and not value.strip()):
        return "empty"
    names = {dict: "an object", list: "a list", str: "not such a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
