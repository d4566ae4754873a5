"""Whether a folder is a skill by the open standard, to the letter: what `codewhale skills check` says."""

import os
import unicodedata
from typing import Any

from msgspec import Struct

from codewhale.lib.bounded import check_nesting
from codewhale.lib.text import one_line, told_line
from codewhale.permissions.markdown_files import HEAD_LIMIT, read_markdown, split_head
from codewhale.permissions.skill_folders import FILES
from codewhale.skills.header import DESCRIPTION_LIMIT, name_faults, read_header
from codewhale.skills.places import SkillFolder, skill_files
from codewhale.skills.reading import FILE_LIMIT

FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_COMPATIBILITY_LIMIT = 500


class Checked(Struct, frozen=True):
    """A folder: what the standard has against it, and what of our own fields is not as it was meant."""

    path: str
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.faults


def check(folder: str) -> list[Checked]:
    """The skill in a folder; where it has none of its own, every skill beneath it."""
    if not any(os.path.lexists(os.path.join(folder, name)) for name in FILES):
        beneath = [os.path.dirname(file.path) for file in skill_files([SkillFolder(folder, folder, "")])]
        return [_checked(path) for path in beneath] or [Checked(told_line(folder), ("it has no SKILL.md",))]
    return [_checked(folder)]


def _checked(folder: str) -> Checked:
    file = next(path for name in FILES if os.path.lexists(path := os.path.join(folder, name)))
    data = read_markdown(file, FILE_LIMIT)
    if data is None:
        fault = f"{os.path.basename(file)} must be a regular file of at most {FILE_LIMIT:,} bytes"
        return Checked(told_line(folder), (fault,))
    try:
        faults = _faults(_members(data), os.path.basename(os.path.realpath(folder)))
    except ValueError as error:
        faults = [one_line(str(error))]
    try:
        notes = [note for note in read_header(os.path.realpath(file), data)[1] if note not in faults]
    except ValueError:
        notes = []
    return Checked(told_line(folder), tuple(faults), tuple(notes))


def _faults(members: dict[str, Any], folder: str) -> list[str]:
    faults = [f"'{one_line(name, 80)}' is no field of the standard" for name in members if name not in FIELDS]
    name, description = members.get("name"), members.get("description")
    if not isinstance(name, str) or not name.strip():
        faults.append("it has no name")
    else:
        faults += name_faults(unicodedata.normalize("NFKC", name.strip()), folder)
    if not isinstance(description, str) or not description.strip():
        faults.append("it has no description")
    elif len(description) > DESCRIPTION_LIMIT:
        faults.append(f"its description is longer than {DESCRIPTION_LIMIT:,} characters")
    compatibility = members.get("compatibility", "")
    if not isinstance(compatibility, str):
        faults.append("its compatibility is not a text")
    elif len(compatibility) > _COMPATIBILITY_LIMIT:
        faults.append(f"its compatibility is longer than {_COMPATIBILITY_LIMIT} characters")
    return faults


def _members(data: bytes) -> dict[str, Any]:
    """The members of a header of the strict YAML that the standard means. Raises ValueError with what is wrong."""
    try:
        head, _ = split_head(data.decode("utf-8").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    if head is None or not data.startswith(b"---"):
        raise ValueError("it does not begin with a header between two lines ---")
    if len(head) > HEAD_LIMIT:
        raise ValueError(f"its header is longer than {HEAD_LIMIT:,} characters")
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        check_nesting(head.encode())
        for event in yaml.parse(head, loader):
            if getattr(event, "anchor", None):
                raise ValueError("its header repeats parts of itself, by & and *")
            if getattr(event, "flow_style", None):
                raise ValueError("its header has lists or tables in brackets")
            if getattr(event, "tag", None):
                raise ValueError("its header has a tag, which begins with !")
        node = yaml.compose(head, loader)
        _check_once(node)
        members = yaml.load(head, loader)
    except (yaml.YAMLError, RecursionError) as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", "")
        raise ValueError(f"its header is not valid YAML{problem and ': ' + problem}") from None
    if not isinstance(members, dict):
        raise ValueError("its header is no table of names and values")
    return members


def _check_once(node: Any) -> None:
    """Raises ValueError for a table in which a name stands twice."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        names = [name.value for name, _ in node.value if isinstance(name, yaml.ScalarNode)]
        if len(set(names)) < len(node.value):
            raise ValueError("its header has a name twice")
        for _, value in node.value:
            _check_once(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_once(value)
