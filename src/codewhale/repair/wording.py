"""Plain words as arguments: a search said as a question, a checklist written as lines, a question with its choices."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.repair.fit import fold

_STOP = frozenset(
    """a about after all an and any are as at be been by can code codebase defined definition did do does every file
    files find for from function functions get given handled handles has have how i implemented implementation in
    into is it its list locate look me method my new of on or our place places project repo repository search see
    set show that the their there these this to use used uses using want was we were what when where which who why
    will with work works would you your""".split()
)
_ENDINGS = """bash c cc cfg cjs cpp cs css csv env go h hpp html ini ipynb java js json jsx kt lock lua md mjs php
    pl properties proto py pyi rb rs rst scala scss sh sql svelte swift tf toml ts tsx txt vue xml yaml yml""".split()
_FILE = re.compile(rf"[\w@./+-]+\.(?:{'|'.join(_ENDINGS)})|(?:.*/)?(?:Makefile|Dockerfile|LICENSE|README|Cargo\.lock)")
_STRUCTURE = re.compile(
    r"(?i)\b(?:structure|overview|layout|architecture|directory tree|file tree|project map|codemap)\b"
)
_CODE = re.compile(r"[(){}\[\]=<>;:&|\"'$#]|^\s*(?:def|class|import|from|func|fn|struct|const|let|var|return|raise)\s")
_QUOTED = re.compile(r"""["'`“](?P<text>[^"'`“”]{2,})["'`”]""")
_BOX = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])?\s*(?:\[(?P<box>[ xX~>/-])\]\s*)?(?P<text>.*)", re.S)
_BOXES = {"x": "completed", "~": "in_progress", ">": "in_progress", "/": "in_progress", "-": "in_progress"}
_YES_NO = re.compile(r"(?i)\s*(?:should|do|does|did|is|are|was|can|could|shall|may|would|will|has|have|ok(?:ay)?)\b")
_LONGEST_WORD = 60
_LONGEST_QUERY = 500
_MOST_STEPS = 200


class Search(Struct, frozen=True):
    """A search as a call; `chosen` where the words could have meant another one."""

    tool: str
    arguments: dict[str, Any]
    chosen: bool = False


def search_words(query: str, kind: str = "") -> Search:
    """What to look for, and by which tool. A word of code is looked for as it stands; a question by its words."""
    bare = query.strip()
    if len(bare) > _LONGEST_QUERY:
        return Search("grep_files", {"pattern": bare})
    if kind in ("structure", "map", "tree", "overview"):
        return Search("project_map", {})
    if kind in ("file", "files", "filename", "name", "path"):
        return Search("file_search", _file(bare))
    if kind in ("content", "text", "symbol", "literal", "exact"):
        return Search("grep_files", {"pattern": re.escape(bare)})
    if " " not in bare:
        if "*" in bare and not _CODE.search(bare):
            return Search("file_search", _file(bare), chosen=True)
        if _FILE.fullmatch(bare):
            return Search("file_search", {"query": bare}, chosen=True)
        return Search("grep_files", {"pattern": re.escape(bare)})
    quoted = _QUOTED.search(bare)
    if quoted is not None:
        return Search("grep_files", {"pattern": re.escape(quoted["text"])}, chosen=True)
    if _CODE.search(bare):
        return Search("grep_files", {"pattern": re.escape(bare)}, chosen=True)
    if _STRUCTURE.search(bare):
        return Search("project_map", {}, chosen=True)
    words = list(dict.fromkeys(_stem(word) for word in re.findall(r"[\w.]+", bare) if word.lower() not in _STOP))
    pattern = "|".join(re.escape(word[:_LONGEST_WORD]) for word in words[:8]) or re.escape(bare)
    return Search("grep_files", {"pattern": pattern, "case_insensitive": True, "context_lines": 0}, chosen=True)


def _file(glob: str) -> dict[str, Any]:
    """A pattern of names as the letters that occur in them, in order."""
    plain = re.sub(r"/{2,}", "/", glob.replace("*", "").replace("?", "")).lstrip("/")
    ending = re.search(r"\.(\w{1,10})$", glob)
    if "*" not in glob or not plain:
        return {"query": plain or "."}
    return {"query": plain, "extensions": [ending[1]]} if ending else {"query": plain}


def _stem(word: str) -> str:
    """A word less the ending that texts and code differ in."""
    bare = word.strip(".")
    cut = re.sub(r"(?:ings?|ed|es|s)$", "", bare)
    return cut if len(cut) >= 4 and bare.islower() else bare


def checklist(value: Any, key: str) -> Any:
    """Steps as rows of text under `key` and status, from rows, texts or lines with boxes; None where none came."""
    if isinstance(value, str):
        value = decoded(value)
    if isinstance(value, str):
        value = [line for line in value.splitlines() if line.strip()]
        if any(line.lstrip()[:1] in "{}" or '":' in line for line in value):
            return value  # rows that are damaged: no text of a step
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    return [_step(item, key) for item in value] if len(value) <= _MOST_STEPS else value


def decoded(value: str) -> Any:
    """The JSON list or object that a text is, else the text."""
    if value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return value
    return found if isinstance(found, list | dict) else value


def _step(item: Any, key: str) -> Any:
    if isinstance(item, str):
        line = _BOX.fullmatch(item.strip())
        if line is None or not line["text"]:
            return item
        return {key: line["text"], "status": _BOXES.get((line["box"] or " ").lower(), "pending")}
    if not isinstance(item, dict):
        return item
    rest = dict(item)
    text = _first(rest, key, "content step text title task item name todo description")
    if not isinstance(text, str):
        return item
    done = _first(rest, "done completed checked finished")
    status = _first(rest, "status state") or ("completed" if done is True else "pending")
    for name in list(rest):
        if fold(name) in ("id", "priority", "activeform"):
            del rest[name]
    return {key: text, "status": status, **rest}


def question(asked: Any, number: int) -> dict[str, Any] | None:
    """A question as a person is shown it: heading, id, text, choices; None for what holds no question."""
    rest = {"question": asked} if isinstance(asked, str) else dict(asked) if isinstance(asked, dict) else {}
    text = _first(rest, "question prompt message text query q content")
    if not isinstance(text, str) or not text.strip():
        return None
    given = _first(rest, "options choices answers suggestions")
    if isinstance(given, str):
        given = decoded(given)
    if isinstance(given, str):
        given = [word.strip() for word in re.split(r"[\n|]" if re.search(r"[\n|]", given) else ",", given)]
        given = [word for word in given if word]
    choices = [_choice(one) for one in given[:_MOST_STEPS]] if isinstance(given, list) else []
    if not choices and _YES_NO.match(text):
        choices = [_choice("Yes"), _choice("No")]
    if not choices:
        choices = [
            {"label": "My own words", "description": "Type the answer."},
            {"label": "You decide", "description": "Go on with what seems best, and say what it was."},
        ]
    if len(choices) == 1:
        choices.append({"label": "Something else", "description": "Say what instead."})
    words = [word for word in re.findall(r"\w+", text[:_LONGEST_QUERY]) if word.lower() not in _STOP]
    header = _first(rest, "header title topic") or " ".join(words[:2]).capitalize() or "Question"
    name = _first(rest, "id key") or f"question_{number}"
    return {"header": str(header)[:40], "id": str(name), "question": text.strip(), "options": choices}


def _choice(said: Any) -> Any:
    if not isinstance(said, dict):
        return {"label": str(said), "description": str(said)[:500]}
    rest = dict(said)
    label = _first(rest, "label text title name value option")
    about = _first(rest, "description detail details explanation")
    return {"label": label, "description": about if about is not None else label}


def _first(rest: dict[str, Any], *names: str) -> Any:
    for name in " ".join(names).split():
        for key in list(rest):
            if fold(key) == fold(name) and rest[key] is not None:
                return rest.pop(key)
    return None
