"""Rule files, ours and those of other programs, as skills: each header is read as its program reads it."""

import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from codewhale.lib.bounded import check_nesting
from codewhale.lib.text import one_line, scrub_surrogates, told_line
from codewhale.permissions.markdown_files import HEAD_LIMIT, parse_head, split_head
from codewhale.permissions.trust import TrustStore
from codewhale.skills.globs import MOST_EXPANDED, expanded
from codewhale.skills.model import Activation, LoadedSkill, Skill, SkillList
from codewhale.skills.reading import FileReader, bounded, text_of, trusted_rows
from codewhale.skills.rule_folders import KnownFolders, RuleFile, rule_files
from codewhale.skills.switches import Switches

WINDSURF_LIMIT = 6_000  # characters of a file of Windsurf's; it leaves out the rest
_TRIGGERS = {
    "always_on": Activation.ALWAYS, "glob": Activation.GLOB, "model_decision": Activation.MODEL,
    "manual": Activation.MANUAL,
}  # fmt: skip
_TITLE = re.compile(r"^(?:#+[ \t]+)?(\S.*)$", re.MULTILINE)
# A list that is no set of characters.
_BRACKETS = re.compile(r"\[(?:[^\[\]]*[*/,\"'][^\[\]]*)?\]")
_CODING_AGENTS = ("coding-agent", "cloud-agent")

Mode = tuple[Activation, tuple[str, ...]]


class RuleStore:
    def __init__(self, home: str, trust: TrustStore) -> None:
        """`home` is the harness's own folder; `trust` knows which files of workspaces the person has approved."""
        self._home = home
        self._trust = trust
        self._reader, self._switches = FileReader(), Switches(home)
        self._folders: KnownFolders = {}

    def of(self, workspace: str) -> SkillList:
        """The rules of a workspace and of the person, those that win first, each under a name of its own."""
        files = rule_files(workspace, self._home, self._folders)
        rules, untrusted, off = dict[str, Skill](), dict[str, Skill](), dict[str, Skill]()
        problems, left, switched = list(files.problems), MOST_EXPANDED, self._switches.read()
        trusted = trusted_rows(self._trust, problems) if any(file.folder for file in files.files) else {}
        for file in files.files:
            try:
                rule = self._standing(file, rules.keys() | untrusted.keys() | off.keys())
                if switched.covers(rule, file.place):
                    off[rule.name] = rule
                    continue
                if file.folder and not self._trust.holds(file.path, rule.sha256, trusted):
                    untrusted[rule.name] = rule
                    raise ValueError(f"{_described(rule)}, not trusted; to use it: codewhale trust add "
                                     f"{shlex.quote(file.path)}")  # fmt: skip
                left -= expanded(rule.globs, rule.program)
                if left < 0:
                    raise ValueError(f"the rules before it have {MOST_EXPANDED:,} globs, and no more are used")
                rules[rule.name] = rule
            except ValueError as error:
                problems.append(f"{file.shown}: {error}")
        return SkillList(
            tuple(rules.values()), bounded(problems), tuple(off.values()), untrusted=tuple(untrusted.values())
        )

    def _standing(self, file: RuleFile, taken: Collection[str]) -> Skill:
        """The rule of a file as it stands now. Raises ValueError with why it is none."""
        if scrub_surrogates(file.path) != file.path:
            raise ValueError("its path is not UTF-8")
        read = self._reader.read(file.path, partial(_understood, file))
        if read.skill is None:
            raise ValueError("; ".join(read.notes))
        return replace(_placed(read.skill, file), name=_name(file, taken), path=told_line(file.shown))

    def read(self, skill: Skill) -> LoadedSkill | None:
        """A rule with its text; None where its file is no longer what it was, or a skill's."""
        text = text_of(skill) if skill.kind == "rule" else None
        if text is None:
            return None
        text = text.lstrip("\ufeff")
        head, body = split_head(text)
        whole = _stands_alone(skill.file, skill.program) or (skill.program == "cline" and not _is_yaml(head or ""))
        body = (text if whole else body).replace("\r\n", "\n").strip()
        if skill.program == "windsurf" and len(body) > WINDSURF_LIMIT:
            more = (
                f"Windsurf reads {WINDSURF_LIMIT:,} characters of a rule; {len(body) - WINDSURF_LIMIT:,} are left out"
            )
            body = f"{body[:WINDSURF_LIMIT].rstrip()}\n({more}: read_file {skill.path})"
        return LoadedSkill(skill, body)


def _placed(rule: Skill, file: RuleFile) -> Skill:
    """A rule as it is meant where it stands: one of Cursor's in a folder of the workspace is for the files there."""
    if file.nested and rule.program == "cursor" and rule.activation is Activation.ALWAYS:
        return replace(rule, activation=Activation.GLOB, globs=("**",))
    return rule


def _described(rule: Skill) -> str:
    return f"{rule.activation} {', '.join(rule.globs)}".strip() + f", {rule.size:,} bytes"


def _understood(file: RuleFile, data: bytes) -> tuple[Skill, tuple[str, ...]]:
    """Raises ValueError with why a file is no rule."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    members: Mapping[str, Any] = {}
    mode: Mode = Activation.ALWAYS, ()
    body = text  # of a file that stands alone all is text
    if not _stands_alone(file.path, file.program):
        head, body = split_head(text)
        if head is not None and len(head) > HEAD_LIMIT:
            raise ValueError(f"its header is longer than {HEAD_LIMIT:,} characters")
        members = _members(file.program, text, head)
        mode = _MODES[file.program](members)
    if not body.strip():
        raise ValueError("it has no text")
    if mode[0] is Activation.GLOB and not mode[1]:
        raise ValueError("it applies by glob, and names none")
    expanded(mode[1], file.program)
    title = _TITLE.search(body[:HEAD_LIMIT])
    description = one_line(_text(members.get("description")) or (title.group(1) if title else ""), 280)
    rule = Skill(
        "", description, file.shown, file.path, kind="rule",
        space=f"{file.program}-rules" if file.program != "codewhale" else "rules" if file.folder else "user-rules",
        program=file.program, activation=mode[0], globs=mode[1], folder=file.folder, plan=False, size=len(data),
        sha256=sha256(data).hexdigest(),
    )  # fmt: skip
    return rule, ()


def _members(program: str, text: str, head: str | None) -> Mapping[str, Any]:
    """What a header says. Cline takes one that is no YAML for text; the others read it line by line."""
    if program == "cline":
        return parse_head(head, texts=True) if head is not None and _is_yaml(head) else {}
    if head is None and text.startswith(("---\n", "---\r\n")):
        raise ValueError("its header does not end: a line --- is missing")
    return parse_head(head, texts=True) if head is not None else {}


def _is_yaml(head: str) -> bool:
    import yaml

    try:
        check_nesting(head.encode("utf-8", "replace"))
        yaml.compose(head)
    except (yaml.YAMLError, RecursionError, ValueError):
        return False
    return True


# ---------------------------------------------------------------------- when a rule applies, as its program says


def _ours(members: Mapping[str, Any]) -> Mode:
    globs, named = _globs(members.get("globs")), _text(members.get("activation")).lower()
    if named and named not in list(Activation):
        raise ValueError(f"its activation is {one_line(named, 40)!r}, not {', '.join(Activation)}")
    return Activation(named) if named else Activation.GLOB if globs else Activation.ALWAYS, globs


def _cursor(members: Mapping[str, Any]) -> Mode:
    globs = _globs(members.get("globs"))
    if _text(members.get("alwaysApply")).lower() == "true":
        return Activation.ALWAYS, ()
    if globs:
        return Activation.GLOB, globs
    return Activation.MODEL if _text(members.get("description")) else Activation.MANUAL, ()


def _windsurf(members: Mapping[str, Any]) -> Mode:
    globs, trigger = _globs(members.get("globs")), _text(members.get("trigger")).lower()
    if trigger and trigger not in _TRIGGERS:
        raise ValueError(f"its trigger is {one_line(trigger, 40)!r}, not {', '.join(_TRIGGERS)}")
    return _TRIGGERS[trigger] if trigger else Activation.GLOB if globs else Activation.ALWAYS, globs


def _cline(members: Mapping[str, Any]) -> Mode:
    if "paths" in members and not _globs(members["paths"]):
        raise ValueError("its paths are empty, so it never applies")
    return _by_paths(members)


def _by_paths(members: Mapping[str, Any]) -> Mode:
    globs = _globs(members.get("paths"))
    return Activation.GLOB if globs else Activation.ALWAYS, globs


def _copilot(members: Mapping[str, Any]) -> Mode:
    excluded = _globs(members.get("excludeAgent"))
    if any(agent in excluded for agent in _CODING_AGENTS):
        raise ValueError("its excludeAgent leaves out coding agents")
    globs = _globs(members.get("applyTo"))
    if globs:
        return Activation.GLOB, globs
    return Activation.MODEL if _text(members.get("description")) else Activation.MANUAL, ()


_MODES: dict[str, Callable[[Mapping[str, Any]], Mode]] = {
    "codewhale": _ours, "cursor": _cursor, "windsurf": _windsurf, "cline": _cline, "claude": _by_paths,
    "copilot": _copilot,
}  # fmt: skip


def _stands_alone(path: str, program: str) -> bool:
    """Whether a file is all of a program's rules, without a header: the older form of several programs."""
    name = os.path.basename(path)
    return name == f".{program}rules" or (program == "copilot" and name == "copilot-instructions.md")


def _globs(value: object) -> tuple[str, ...]:
    """The globs of a text or a list; between those of a text stand commas, none of them within braces. A list in
    brackets and quotes that are no YAML are taken off."""
    if isinstance(value, list):
        return tuple(dict.fromkeys(item.strip() for item in value if isinstance(item, str) and item.strip()))
    text = _text(value)
    if _BRACKETS.fullmatch(text):
        text = text[1:-1]
    items, depth = [""], 0
    for char in text:
        depth = max(0, depth + (char == "{") - (char == "}"))
        if char == "," and depth == 0:
            items.append("")
        else:
            items[-1] += char
    return tuple(dict.fromkeys(item for one in items if (item := one.strip().strip("\"'").strip())))


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _name(file: RuleFile, taken: Collection[str]) -> str:
    """A name that no other rule has: that of the file, with its folder or a number where it must be."""
    inner = os.path.relpath(file.path, file.within) if file.path != file.within else os.path.basename(file.path)
    stem = re.sub(r"(?:\.instructions)?\.(?:mdc?|txt)$", "", inner.lstrip("."))
    names = (stem.rpartition("/")[2], stem, f"{stem}-{file.program}", f"{os.path.dirname(file.shown)}-{stem}")
    slugs = [re.sub(r"[\W_]+", "-", name).strip("-").lower()[:64] or "rule" for name in names]
    numbered = (f"{slugs[-1]}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (*slugs, *numbered) if name not in taken)
