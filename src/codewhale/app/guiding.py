"""The skills and rules of workspaces for the sessions there; nothing is imported where a workspace has none."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from codewhale.protocol.skills import Guided, Mentioned

if TYPE_CHECKING:
    from codewhale.skills.library import SkillLibrary


class WorkspaceSkills:
    """Implements agent.guidance.GuidanceSource."""

    def __init__(self, library: "Callable[[], SkillLibrary]", there: Callable[[str], bool]) -> None:
        """`there(workspace)` tells whether there may be any."""
        self._get = library
        self._there = there
        self._some: dict[str, bool] = {}

    @property
    def _library(self) -> "SkillLibrary":
        return self._get()

    def look(self, workspace: str) -> bool:
        self._some[workspace] = self._there(workspace) and self._any(workspace)
        return self._some[workspace]

    def _any(self, workspace: str) -> bool:
        """Also one that may not be used: who names it is to read why."""
        there = self._library.of(workspace)
        return bool(there.skills or there.off or there.shadowed or there.untrusted)

    def some(self, workspace: str) -> bool:
        return self._some.get(workspace, False)

    def mentioned(self, workspace: str, text: str) -> Mentioned:
        return self._library.mentioned(workspace, text)

    def planned(self, workspace: str, lines: Sequence[str]) -> tuple[Guided, ...]:
        return self._library.planned(workspace, lines)

    def touching(self, workspace: str, paths: Sequence[str]) -> tuple[Guided, ...]:
        return self._library.touching(workspace, paths)

    def offered(self, workspace: str, text: str) -> tuple[tuple[str, str], ...]:
        return tuple((skill.name, skill.description) for skill in self._library.offered(workspace, text))

    def standing(self, workspace: str) -> tuple[Guided, ...]:
        return self._library.standing(workspace)

    def activation(
        self, workspace: str, name: str, by: Literal["person", "model"], lasts: Literal["turn", "session"]
    ) -> Guided | None:
        return self._library.activation(workspace, name, by, lasts)
