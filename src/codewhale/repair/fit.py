"""Fitting arguments to the schema of their tool where what was meant cannot be mistaken.

Each change is recorded by its code; a change that chose between readings is lossy. What does not fit is left as it
is, for validation to refuse.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from codewhale.catalog.schema import fits
from codewhale.catalog.shapes import Schema
from codewhale.repair.codes import RepairCode
from codewhale.repair.payload import Unreadable, read

_NAMES_FILE = Path(__file__).with_name("othernames.json")
_MAX_DEPTH = 16
_MAX_MEMBERS = 100
_MAX_ITEMS = 2000
# Names under which models wrap the arguments once more, and what may stand beside them.
_WRAPPERS = frozenset(
    "arguments args input inputs params parameters kwargs tool_input tool_args toolinput function_args payload".split()
)
_BESIDE = frozenset("name tool tool_name toolname function function_name recipient_name type id call_id".split())
# Remarks that change nothing of what a call does.
_REMARKS = frozenset(
    """explanation reason reasoning rationale thought thoughts thinking comment comments note notes justification
    intent purpose why summary title toolsummary toolaction _meta description
    nickname""".split()
)
_TIMES = frozenset("timeout timeoutseconds timeoutsecs timeouts timeoutsec seconds".split())
# Arguments whose text may come as its lines.
_TEXTS = ("content", "search", "replace", "patch")
# Texts that a model writes for nothing, and arguments whose text may be just that.
_NOTHING = ("null", "None", "undefined")
_FREE = frozenset("command content explanation input pattern patch query replace search stdin symbol text".split())
_INTEGER = re.compile(r"\s*[-+]?\d{1,18}(?:\.0+)?\s*")
_DECIMAL = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?\s*")


class _OtherNames(Struct, frozen=True):
    """What other harnesses and models say for ours: the names of an argument (`tool.argument`: of that tool's alone),
    and the words for a choice, folded; members that say what is done anyway, with the values that do; what a member of
    a tool (`tool.member`) means with this value: an argument and its value; the globs of a kind of file."""

    keys: dict[str, str]
    choices: dict[str, str]
    anyway: dict[str, tuple[Any, ...]]
    means: dict[str, tuple[Any, str, Any]]
    file_types: dict[str, list[str]]


@cache
def other_names() -> _OtherNames:
    """The table of other names."""
    return msgspec.json.decode(_NAMES_FILE.read_bytes(), type=_OtherNames)


class Fitted(Struct, frozen=True):
    """Arguments after fitting: what was changed, and whether a choice was made on the way."""

    arguments: dict[str, Any]
    repairs: tuple[RepairCode, ...] = ()
    lossy: bool = False


def fit(arguments: dict[str, Any], schema: Schema, tool: str = "", *, guess: bool = True, own: bool = True) -> Fitted:
    """The arguments as near to the schema as can be without doubt, or, where `guess`, with it and marked lossy. Only of
    a tool of our `own` it is known that an address of a file stands for its path."""
    return _Fitter(guess, own).whole(arguments, schema, tool)


def fold(name: str) -> str:
    """A name without case and separators."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def spelt(given: dict[str, Any], argument: str) -> str:
    """The name under which an argument of ours came, "" for none."""
    return next((key for key in given if fold(key) in (fold(argument), *other_names().keys[argument].split())), "")


class _Fitter:
    def __init__(self, guess: bool = True, own: bool = True) -> None:
        self._guess = guess
        self._own = own
        self._codes: dict[RepairCode, None] = {}
        self._lossy = False
        self._tool = ""

    def whole(self, arguments: dict[str, Any], schema: Schema, tool: str) -> Fitted:
        """Fit a call's arguments."""
        self._tool = tool
        given = self._unwrap(arguments, schema, tool)
        given = self._object(given, schema, 0)
        return Fitted(given, tuple(self._codes), self._lossy)

    def _note(self, code: RepairCode, *, lossy: bool = False) -> None:
        self._codes[code] = None
        self._lossy = self._lossy or lossy

    # ------------------------------------------------------------------ whole objects

    def _unwrap(self, given: dict[str, Any], schema: Schema, tool: str) -> dict[str, Any]:
        """Arguments that stand one level too deep, alone or beside the call's own name."""
        properties = schema.get("properties", {})
        for _ in range(3):
            if len(given) > _MAX_MEMBERS:
                return given
            inner = [key for key in given if self._wraps(key, given[key], properties, tool)]
            rest = [key for key in given if key not in inner]
            function = given.get("function")
            free = properties.get("function", {"type": "string"}).get("type") == "string"
            if isinstance(function, dict) and free and all(fold(key) in _BESIDE for key in given):
                given = function
                self._note(RepairCode.NESTED)
                continue
            if len(inner) != 1 or not all(self._is_beside(key, given[key], properties, tool) for key in rest):
                return given
            value = given[inner[0]]
            if isinstance(value, str):
                value = self._decoded(value, dict)
            if not isinstance(value, dict):
                return given
            self._note(RepairCode.NESTED)
            given = value
        return given

    @staticmethod
    def _wraps(key: str, value: object, properties: dict[str, Schema], tool: str) -> bool:
        """Whether a member holds the arguments: by its name, where the tool has no such argument of that type."""
        if fold(key) not in _WRAPPERS and fold(key) != fold(tool):
            return False
        if key not in properties:
            return True
        another = properties[key].get("type") not in ("object", None)
        return another and isinstance(value, dict) and any(name in properties for name in value)

    @staticmethod
    def _is_beside(key: str, value: object, properties: dict[str, Schema], tool: str) -> bool:
        """Whether a member may stand beside wrapped arguments: what a call says of itself, or a remark."""
        if fold(key) in _REMARKS:
            return key not in properties
        if fold(key) not in _BESIDE:
            return False
        return isinstance(value, str) and (fold(value) in (fold(tool), "function", "tooluse") or value[:4] == "call")

    def _object(self, given: dict[str, Any], schema: Schema, depth: int) -> dict[str, Any]:
        properties: dict[str, Schema] | None = schema.get("properties")
        if properties is None or depth > _MAX_DEPTH or len(given) > max(_MAX_MEMBERS, len(properties)):
            return given
        required = schema.get("required", ())
        closed = schema.get("additionalProperties", False) is False
        if "timeout_ms" in properties and closed:
            given = self._milliseconds(given, properties["timeout_ms"])
        found = self._named(self._meant(given), properties, closed=closed)
        fitted: dict[str, Any] = {}
        for key, value in found.items():
            wanted = properties.get(key)
            if wanted is not None and key not in required and _is_nothing(key, value, wanted):
                self._note(RepairCode.NULL)
            elif wanted is not None:
                fitted[key] = self._value(value, wanted, depth + 1, key)
            elif not closed:
                fitted[key] = value
            elif value is None or fold(key) in _REMARKS or value in other_names().anyway.get(fold(key), ()):
                self._note(RepairCode.UNKNOWN_KEY)
            elif self._guess and self._is_extra(key, found, properties):
                self._note(RepairCode.UNKNOWN_KEY, lossy=True)
            else:
                fitted[key] = value
        return fitted

    def _meant(self, given: dict[str, Any]) -> dict[str, Any]:
        """Members that say by another name and another value what an argument says."""
        found: dict[str, Any] = {}
        for key, value in given.items():
            said, name, word = other_names().means.get(f"{self._tool}.{fold(key)}", (None, "", None))
            free = name and given.get(name) is None and type(value) is type(said) and value == said
            found[name if free else key] = word if free else value
            if free:
                self._note(RepairCode.OTHER_KEY)
        return found

    def _milliseconds(self, given: dict[str, Any], wanted: Schema) -> dict[str, Any]:
        """A time limit under another name as milliseconds, where the bounds leave one reading of the number."""
        named = [key for key in given if fold(key) in _TIMES]
        if len(named) != 1 or given.get("timeout_ms") is not None or fold(named[0]) == "timeoutms":
            return given
        value = milliseconds(given[named[0]], seconds=fold(named[0]) != "timeout")
        if value is None or not wanted.get("minimum", 0) <= value <= wanted.get("maximum", value):
            return given
        self._note(RepairCode.OTHER_KEY)
        return {("timeout_ms" if key == named[0] else key): value if key == named[0] else given[key] for key in given}

    @staticmethod
    def _is_extra(key: str, given: dict[str, Any], properties: dict[str, Schema]) -> bool:
        """Whether a member says nothing that the tool wants: its key is a word, like none of the arguments that did
        not come, and it is not all that came."""
        if len(given) > _MAX_MEMBERS or not re.fullmatch(r"[A-Za-z_$][\w$.-]{0,63}", key):
            return False
        missing = [fold(name) for name in properties if name not in given]
        said = fold(key)
        near = any(said[:4] == name[:4] or (len(said) > 3 and (said in name or name in said)) for name in missing)
        alone = not any(name in properties for name in given)
        return not near and not (alone and not isinstance(given[key], bool) and bool(properties))

    def _named(self, given: dict[str, Any], properties: dict[str, Schema], *, closed: bool) -> dict[str, Any]:
        """Members under the schema's own names: written otherwise, or, where it takes no others, called what other
        harnesses call them."""
        unknown = [key for key in given if key not in properties]
        if not unknown or len(unknown) > _MAX_MEMBERS:
            return given
        free = {key for key in properties if given.get(key) is None}
        renamed: dict[str, str] = {}
        for meaning in (lambda folded, name: folded == fold(name), self._alias)[: 2 if closed else 1]:
            for key in unknown:
                if key in renamed or given[key] is None or (meaning == self._alias and fold(key) in _REMARKS & free):
                    continue
                meant = [
                    name for name in free if meaning(fold(key), name) and self._could_be(given[key], properties[name])
                ]
                if len(meant) == 1:
                    renamed[key] = meant[0]
                    free.discard(meant[0])
                    self._note(RepairCode.OTHER_KEY)
        kept = {key: value for key, value in given.items() if value is not None or key not in renamed.values()}
        return {renamed.get(key, key): value for key, value in kept.items()}

    def _alias(self, folded: str, name: str) -> bool:
        keys = other_names().keys
        return any(folded in keys.get(row, "").split() for row in (name, f"{self._tool}.{name}"))

    def _could_be(self, value: object, wanted: Schema) -> bool:
        if isinstance(value, list) and len(value) > 1 and wanted.get("type") == "string":
            return False
        trial = _Fitter(self._guess, self._own)
        tried = trial._value(value, wanted, 1, "")
        return tried is None or fits(tried, wanted)

    # ------------------------------------------------------------------ values

    def _value(self, value: Any, wanted: Schema, depth: int, name: str) -> Any:
        if depth > _MAX_DEPTH:
            return value
        if "anyOf" in wanted:
            return self._any(value, wanted["anyOf"], depth, name)
        if "enum" in wanted:
            return self._choice(value, wanted["enum"])
        kind = wanted.get("type")
        if isinstance(value, list) and len(value) == 1 and kind not in ("array", None):
            inner = value[0]
            if isinstance(inner, dict) == (kind == "object"):
                self._note(RepairCode.LIST_FOR_ONE)
                value = inner
        scalars = {"integer": self._integer, "number": self._decimal, "boolean": self._boolean, "string": self._text}
        if kind in scalars:
            return scalars[kind](value, wanted, name)
        if kind == "array":
            return self._array(value, wanted, depth, name)
        if kind == "object":
            if isinstance(value, str):
                value = self._decoded(value, dict)
            return self._object(value, wanted, depth) if isinstance(value, dict) else value
        return value

    def _any(self, value: Any, options: list[Schema], depth: int, name: str) -> Any:
        if any(fits(value, option) for option in options):
            return value
        for option in options:
            trial = _Fitter(self._guess, self._own)
            fitted = trial._value(value, option, depth + 1, name)
            if fits(fitted, option):
                for code in trial._codes:
                    self._note(code, lossy=trial._lossy)
                return fitted
        return value

    def _choice(self, value: Any, choices: list[Any]) -> Any:
        """One of a list, in another case or spelling; "5" for 5."""
        if value in choices or value is None:
            return value
        if isinstance(value, list) and len(value) == 1 and value[0] in choices:
            self._note(RepairCode.LIST_FOR_ONE)
            return value[0]
        said = fold(str(value))
        for wanted in (said, fold(other_names().choices.get(said, ""))):
            same = [choice for choice in choices if wanted and fold(str(choice)) == wanted]
            if len(same) == 1:
                self._note(RepairCode.TYPE if isinstance(value, str) != isinstance(same[0], str) else RepairCode.CHOICE)
                return same[0]
        return value

    def _integer(self, value: Any, wanted: Schema, name: str) -> Any:
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            self._note(RepairCode.TYPE)
            value = int(float(value)) if "." in value else int(value)
        if self._guess and value == 0 and wanted.get("minimum") == 1 and "line" in name and not isinstance(value, bool):
            self._note(RepairCode.LINE_ZERO, lossy=True)
            return 1
        return value

    def _decimal(self, value: Any, wanted: Schema, name: str) -> Any:
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            self._note(RepairCode.TYPE)
            return int(value) if _INTEGER.fullmatch(value) and "." not in value else float(value)
        return value

    def _boolean(self, value: Any, wanted: Schema, name: str) -> Any:
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            self._note(RepairCode.TYPE)
            return value.strip().lower() == "true"
        if not self._guess:
            return value
        if isinstance(value, str) and value.strip().lower() in ("yes", "no", "1", "0", "on", "off"):
            self._note(RepairCode.TYPE, lossy=True)
            return value.strip().lower() in ("yes", "1", "on")
        if isinstance(value, int) and not isinstance(value, bool) and value in (0, 1):
            self._note(RepairCode.TYPE, lossy=True)
            return bool(value)
        return value

    def _text(self, value: Any, wanted: Schema, name: str) -> Any:
        if self._guess and isinstance(value, int) and not isinstance(value, bool):
            self._note(RepairCode.TYPE, lossy=True)
            return str(value)
        if self._own and isinstance(value, str) and value[:7].lower() == "file://" and _is_path(name):
            self._note(RepairCode.DRESSED_PATH)
            return unquote(re.sub(r"(?i)^file://(localhost)?", "", value))
        if isinstance(value, list) and name == "command" and value and all(isinstance(item, str) for item in value):
            return self._command(value)
        if self._own and isinstance(value, dict) and value.keys() == {"type", "text"} and name not in _TEXTS:
            self._note(RepairCode.LIST_FOR_ONE)
            return value["text"]
        if name in _TEXTS and isinstance(value, list | dict) and value:
            return self._lines(value, name)
        return value

    def _lines(self, value: list[Any] | dict[str, Any], name: str) -> Any:
        """A text that came as its lines, or as the JSON that it holds. Only lines with their ends leave no choice."""
        lines = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
        texts = bool(lines) and len(lines) == len(value)
        if texts and all(line.endswith("\n") for line in lines[:-1]) and len(lines) > 1:
            self._note(RepairCode.LIST_FOR_ONE)
            return "".join(lines)
        if not self._guess or not (texts or name == "content"):
            return value
        self._note(RepairCode.LIST_FOR_ONE, lossy=True)
        if texts:
            return "\n".join(lines) + ("\n" if name == "content" else "")
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"

    def _command(self, argv: list[str]) -> str:
        """A command given as a list of words; the text of a `sh -c` as it stands."""
        import shlex

        self._note(RepairCode.LIST_FOR_ONE)
        shell = argv[0].rsplit("/", 1)[-1]
        if len(argv) == 3 and shell in ("sh", "bash", "zsh", "dash") and re.fullmatch(r"-[a-z]*c", argv[1]):
            return argv[2]
        return shlex.join(argv)

    def _array(self, value: Any, wanted: Schema, depth: int, name: str) -> Any:
        items: Schema = wanted.get("items", {})
        if isinstance(value, str) and value.lstrip()[:1] == "[":
            value = self._decoded(value, list)
        if not isinstance(value, list) and value is not None:
            if isinstance(value, str) and "type" in items and items["type"] != "string":
                value = self._decoded(value, dict)
            if _is_one(value, items):
                self._note(RepairCode.ONE_FOR_LIST)
                value = [value]
        if not isinstance(value, list) or not items or len(value) > _MAX_ITEMS:
            return value
        return [self._value(item, items, depth + 1, name) for item in value]

    def _decoded(self, value: str, kind: type) -> Any:
        """A JSON text inside a string, where it holds what is wanted; else the string."""
        if value.lstrip()[:1] not in ("{", "["):
            return value
        try:
            reading = read(value)
        except Unreadable:
            return value
        if not isinstance(reading.value, kind):
            return value
        self._note(RepairCode.TEXT_FOR_JSON)
        for code in reading.repairs:
            self._note(code, lossy=reading.lossy)
        return reading.value


def _is_one(value: Any, items: Schema) -> bool:
    """Whether what stands for a list is one element of it, and cannot be more than one."""
    kind = items.get("type")
    if isinstance(value, dict):
        return kind in ("object", None)
    if not isinstance(value, str):
        return kind in ("integer", "number", "boolean", None)
    if value.lstrip()[:1] in ("", "[", "{") or kind in ("object", "array"):
        return False
    return kind != "string" or "," not in value or "{" in value


def _is_nothing(key: str, value: Any, wanted: Schema) -> bool:
    """Whether an optional argument came to say that there is none."""
    if _takes(wanted, "null") or (isinstance(value, str) and value in wanted.get("enum", ())):
        return False
    return value is None or (isinstance(value, str) and value in _NOTHING and key not in _FREE)


def milliseconds(value: object, *, seconds: bool) -> int | None:
    """A time limit in milliseconds: of a number of seconds, or of one that can only be the one or the other."""
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,9}(?:\.\d{1,3})?", str(value)):
        return None
    number = float(str(value))
    if number and (seconds or number <= 600):
        return int(number * 1000)
    return int(number) if 1000 <= number <= 600_000 else None


def _takes(wanted: Schema, kind: str) -> bool:
    return wanted.get("type") == kind or any(option.get("type") == kind for option in wanted.get("anyOf", ()))


def _is_path(name: str) -> bool:
    return bool(re.search(r"path|file|dir|folder|root|cwd", name.lower()))
