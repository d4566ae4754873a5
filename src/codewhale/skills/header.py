"""What the header of a SKILL.md says: the fields of the open standard, ours under `metadata`, and those by which other
programs say the same. Whatever can be used is, with a note on what is wrong with it."""

import os
import re
import unicodedata
from hashlib import sha256
from typing import Any

from codewhale.lib.globs import GlobError, Globs
from codewhale.lib.text import one_line, sanitise
from codewhale.permissions.markdown_files import HEAD_LIMIT, parse_head, split_head
from codewhale.skills.model import Activation, Skill

NAME_LIMIT, DESCRIPTION_LIMIT = 64, 1024
_LONGEST_NAME = 200
_STANDARD_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_TITLE = re.compile(r"^#+[ \t]+(\S.*)$", re.MULTILINE)
_NO = ("false", "no", "off", "0")


def read_header(file: str, data: bytes) -> tuple[Skill, tuple[str, ...]]:
    """The skill of a file with these bytes, and what is wrong with it though it can be used. Raises ValueError with why
    it cannot."""
    text = data.decode("utf-8", "replace")
    folder, notes = os.path.basename(os.path.dirname(file)), list[str]()
    members = _members(text)
    ours = _ours(members, notes)
    name = _name(members, folder, notes)
    description = _text(members.get("description")).strip()
    if not description:
        raise ValueError("it has no description")
    if len(description) > DESCRIPTION_LIMIT:
        notes.append(f"its description is longer than {DESCRIPTION_LIMIT:,} characters")
    globs = _globs(ours.get("codewhale-globs", members.get("paths")), notes)
    activation = _activation(members, ours, globs, notes)
    tools = tokens(ours["codewhale-tools"]) if "codewhale-tools" in ours else None
    if tools == ():
        notes.append("codewhale-tools names no tool, so it leaves none")
    skill = Skill(
        name, description, "", file, activation=activation, globs=globs, tools=tools,
        approved=tokens(members.get("allowed-tools")), workflow=_workflow(ours, notes),
        plan=activation is not Activation.MANUAL and _text(ours.get("codewhale-plan")).lower() not in _NO,
        size=len(data), sha256=sha256(data).hexdigest(),
        license=_text(members.get("license")), compatibility=_text(members.get("compatibility")),
    )  # fmt: skip
    return skill, tuple(notes)


def listed(value: object) -> list[str]:
    """What a text or a list names, one by one; between them stand commas and spaces, none of them within brackets."""
    if isinstance(value, list):
        return [item for one in value if isinstance(one, str) for item in listed(one)]
    items, depth = [""], 0
    for char in value if isinstance(value, str) else "":
        depth = max(0, depth + (char in "({") - (char in ")}"))
        if depth == 0 and (char == "," or char.isspace()):
            items.append("")
        else:
            items[-1] += char
    return [item.strip() for item in items if item.strip()]


def tokens(value: object) -> tuple[str, ...]:
    """The tools that a field names, each as it is written with its pattern."""
    return tuple(dict.fromkeys(listed(value)))


def name_faults(name: str, folder: str) -> list[str]:
    """What the open standard has against a name in a folder. Letters of every script are letters."""
    faults = []
    if len(name) > NAME_LIMIT:
        faults.append(f"its name is longer than {NAME_LIMIT} characters")
    if name != name.lower():
        faults.append("its name has capitals")
    if not _STANDARD_NAME.fullmatch(name):
        faults.append("its name is not made of letters, digits and single hyphens between them")
    if name != unicodedata.normalize("NFKC", folder):
        faults.append(f"its name is not that of its folder, '{one_line(folder, 80)}'")
    return faults


def _members(text: str) -> dict[str, Any]:
    head, _ = split_head(text)
    if head is None:
        title = _TITLE.search(text[:HEAD_LIMIT])
        return {"description": title.group(1)} if title else {}
    if len(head) > HEAD_LIMIT:
        raise ValueError(f"its header is longer than {HEAD_LIMIT:,} characters")
    try:
        return parse_head(head, texts=True)
    except ValueError as error:
        raise ValueError(f"{error}; so it has no description") from None


def _ours(members: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """The fields under `metadata`. One of ours beside it counts too: a restriction must not go unread."""
    beside = {key: value for key, value in members.items() if isinstance(key, str) and key.startswith("codewhale-")}
    if beside:
        notes.append(f"{', '.join(beside)} belongs under metadata")
    metadata = members.get("metadata", {})
    if not isinstance(metadata, dict):
        notes.append("its metadata is no table of names and values")
        metadata = {}
    return beside | metadata


def _name(members: dict[str, Any], folder: str, notes: list[str]) -> str:
    name = members.get("name", folder)
    name = " ".join(unicodedata.normalize("NFKC", name).split()) if isinstance(name, str) else ""
    if not name or len(name) > _LONGEST_NAME or name != sanitise(name) or "/" in name or "\\" in name:
        shown = one_line(_text(members.get("name", folder)), 80)
        raise ValueError(f"its name '{shown}' cannot be used: it must be 1 to 64 letters, digits and hyphens")
    notes += name_faults(name, folder)
    return name


def _activation(members: dict[str, Any], ours: dict[str, Any], globs: tuple[str, ...], notes: list[str]) -> Activation:
    named = _text(ours.get("codewhale-activation")).strip().lower()
    if named and named not in list(Activation):
        notes.append(f"codewhale-activation is '{one_line(named, 40)}', not {', '.join(Activation)}")
    elif named and (named != Activation.GLOB or globs):
        return Activation(named)
    elif named:
        notes.append("codewhale-activation is glob, but codewhale-globs names none")
    by_hand = _text(members.get("disable-model-invocation")).lower() not in ("", *_NO)
    if by_hand or _text(members.get("invocation")).strip() == "explicit-only":
        return Activation.MANUAL
    return Activation.GLOB if globs else Activation.MODEL


def _globs(value: object, notes: list[str]) -> tuple[str, ...]:
    globs = tuple(dict.fromkeys(listed(value)))
    try:
        Globs(globs)
    except GlobError as error:
        notes.append(f"its globs cannot be used: {error}")
        return ()
    return globs


def _workflow(ours: dict[str, Any], notes: list[str]) -> str:
    path = _text(ours.get("codewhale-workflow")).strip()
    if path and (path.startswith(("/", "~")) or "\0" in path or "\\" in path or ".." in path.split("/")):
        notes.append(f"codewhale-workflow '{one_line(path, 80)}' is no path below its folder")
        return ""
    return path


def workflow_fault(skill: Skill) -> str:
    """Why the file that a skill names as its workflow is none now, "" where it is one."""
    folder = os.path.realpath(os.path.dirname(skill.file))
    file = os.path.realpath(os.path.join(folder, skill.workflow))
    inside = file.startswith(folder + os.sep) and os.path.isfile(file)
    return "" if inside else f"codewhale-workflow '{one_line(skill.workflow, 80)}' is no file of its folder"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
