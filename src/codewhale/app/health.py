"""The doctor of memory with what other rooms know: the law, the rules and the attached sources of a workspace."""

import os
from collections.abc import Callable, Iterator, Sequence

from codewhale.lib.text import told_line
from codewhale.memory.doctor import MemoryDoctor, Surroundings
from codewhale.memory.model import MemoryFault
from codewhale.memory.originals import Homes
from codewhale.memory.places import Places
from codewhale.memory.promote import INSTRUCTION_NAMES
from codewhale.permissions.clauses import parse_clauses
from codewhale.permissions.constitution_files import constitution_files
from codewhale.permissions.rules import read_permissions
from codewhale.process.repository import find_root
from codewhale.protocol.errors import ConfigError
from codewhale.session.references import dead_references
from codewhale.skills.rule_folders import rule_files, upwards


def memory_doctor(
    home: str,
    workspace: str,
    places: Places,
    sources: Callable[[str], Sequence[MemoryFault]],
    hide: Callable[[str], str],
) -> MemoryDoctor:
    """The one for a home, as it is seen from a workspace."""
    workspace = os.path.realpath(workspace)
    homes = Homes(home, os.path.expanduser("~"), places.folder(workspace))

    def beside(workspace: str) -> Iterator[MemoryFault]:
        yield from sources(workspace)
        yield from _law(workspace)
        yield from _references(workspace)

    return MemoryDoctor(homes, workspace, Surroundings(hide, beside, places.known))


def _law(workspace: str) -> Iterator[MemoryFault]:
    """What of the constitutions of a workspace nothing reads."""
    for path, _ in constitution_files(workspace):
        try:
            data = read_permissions(path)
            notices = () if data is None else parse_clauses(path, data).notices
        except ConfigError as error:
            notices = (str(error),)
        for notice in notices:
            yield MemoryFault("unknown_law", "warning", told_line(notice), "correct or remove the field", path)


def _references(workspace: str) -> Iterator[MemoryFault]:
    """Files that are named in instructions and rules and are gone."""
    own = [os.path.join(folder, name) for folder in upwards(workspace) for name in INSTRUCTION_NAMES]
    files = [*filter(os.path.isfile, own), *(file.path for file in rule_files(workspace).files)]
    for dead in dead_references(files, find_root(workspace) or workspace):
        text = f"{told_line(dead.path)}:{dead.line}: names {told_line(dead.name)}, which is not there"
        yield MemoryFault("dead_reference", "warning", text, "correct the line", dead.path)
