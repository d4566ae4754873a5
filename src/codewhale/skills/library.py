"""All skills and rules of a workspace as a session uses them: by name, by the files it touches, by what it is asked."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from codewhale.lib.text import one_line
from codewhale.permissions.markdown_files import read_markdown
from codewhale.protocol.events import SkillActivated
from codewhale.protocol.skills import Guided, Mentioned
from codewhale.skills.always import always_text
from codewhale.skills.globs import matching
from codewhale.skills.matching import offered
from codewhale.skills.mentions import mentions, plan_mention, resolve
from codewhale.skills.model import Activation, LoadedSkill, Skill, SkillList
from codewhale.skills.restriction import PreApproval, Token, approvals, read_tokens, restriction

# Descriptions are shortened before skills are left out.
DESCRIPTION_LIMITS, LISTING_LIMIT = (280, 140, 70), 12_000
FILE_LIMIT = 1 << 20
By = Literal["person", "model", "plan", "file", "always"]


class SkillFiles(Protocol):
    """Where skills or rules come from."""

    def of(self, workspace: str) -> SkillList: ...
    def read(self, skill: Skill) -> LoadedSkill | None:
        """It with its text; None where the file is no longer what it was."""


class SkillLibrary:
    def __init__(self, sources: Sequence[SkillFiles], canonical: Callable[[str], str]) -> None:
        """`canonical(name)` is the tool that a name stands for, "" for none."""
        self._sources = sources
        self._canonical = canonical
        self._current: dict[str, SkillList] = {}

    def of(self, workspace: str) -> SkillList:
        """Everything there is, by precedence."""
        lists = [source.of(workspace) for source in self._sources]
        found = SkillList(
            tuple(skill for one in lists for skill in one.skills),
            tuple(problem for one in lists for problem in one.problems),
            tuple(skill for one in lists for skill in one.off),
            tuple(skill for one in lists for skill in one.shadowed),
            tuple(skill for one in lists for skill in one.untrusted),
        )
        self._current[workspace] = found
        return found

    def current(self, workspace: str) -> SkillList:
        """Everything as it was last looked at: a turn goes on with what there was when it began."""
        return self._current[workspace] if workspace in self._current else self.of(workspace)

    def find(self, workspace: str, name: str) -> Skill | None:
        """The one of a name, or of a full name."""
        return self.current(workspace).find(name)

    def load(self, workspace: str, name: str) -> LoadedSkill | None:
        self.of(workspace)
        skill = self.find(workspace, name)
        return None if skill is None else self.read(skill)

    def read(self, skill: Skill) -> LoadedSkill | None:
        for source in self._sources:
            loaded = source.read(skill)
            if loaded is not None:
                return loaded
        return None

    def listing(self, workspace: str) -> str:
        """What a model is told: a line a skill, at most 12,000 characters; "" where there is none."""
        skills = [one for one in self.of(workspace).skills if one.activation is Activation.MODEL]
        for limit in DESCRIPTION_LIMITS:
            lines = [f"- {one.name}: {one_line(one.description, limit)} ({one_line(one.path)})" for one in skills]
            if sum(len(line) + 1 for line in lines) <= LISTING_LIMIT:
                return "\n".join(lines)
        listed, left = 0, LISTING_LIMIT
        while (left := left - len(lines[listed]) - 1) >= 0:
            listed += 1
        more = f"- {len(lines) - listed} more are not listed; load_skill finds them by name"
        return "\n".join([*lines[:listed], more])

    def always(self, workspace: str, contain: Callable[[str], str]) -> str:
        """The text of those that always apply; `contain(text)` is a text that closes no block."""
        always = (one for one in self.current(workspace).skills if one.activation is Activation.ALWAYS)
        return always_text((loaded for one in always if (loaded := self.read(one)) is not None), contain)

    def companion(self, skill: Skill, path: str) -> str | None:
        """The text of a file of a skill's folder, by its path there; None for what is no text of a bounded size."""
        folder = os.path.realpath(os.path.dirname(skill.file))
        file = os.path.realpath(os.path.join(folder, path))
        data = read_markdown(file, FILE_LIMIT) if os.path.commonpath((folder, file)) == folder else None
        try:
            return None if data is None or b"\0" in data else data.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def terms(self, skill: Skill) -> tuple[tuple[Token, ...], tuple[PreApproval, ...]]:
        """What the header of a skill says of tools: those it restricts to, and those it pre-approves."""
        tools = read_tokens(skill.tools or (), self._canonical)
        return tools, approvals(skill.name, read_tokens(skill.approved, self._canonical))

    def guided(self, workspace: str, skill: Skill, by: By, lasts: Literal["turn", "session"]) -> Guided | None:
        """What activating a skill comes to, by its full name where another one has its name. Only a person's word
        carries what it pre-approves."""
        loaded = self.read(skill)
        if loaded is None:
            return None
        scope, name = None, skill.name if self.find(workspace, skill.name) == skill else skill.full_name
        if skill.tools is not None:
            scope = restriction(name, read_tokens(skill.tools, self._canonical))
        approved = approvals(name, read_tokens(skill.approved, self._canonical)) if by == "person" else ()
        rules = tuple(rule for one in approved for rule in one.rules)
        event = SkillActivated(name, skill.path, skill.sha256, by, lasts, scope, rules)
        return Guided(event, loaded.body, loaded.companions)

    # ------------------------------------------------------------------ what a session asks

    def activation(self, workspace: str, name: str, by: By, lasts: Literal["turn", "session"]) -> Guided | None:
        skill = self.find(workspace, name)
        return None if skill is None else self.guided(workspace, skill, by, lasts)

    def standing(self, workspace: str) -> tuple[Guided, ...]:
        """Those that are always active and restrict something."""
        always = (one for one in self.current(workspace).skills if one.activation is Activation.ALWAYS)
        return self._all(workspace, (one for one in always if one.tools is not None), "always", "session")

    def mentioned(self, workspace: str, text: str) -> Mentioned:
        """What the `$names` in a person's message come to."""
        named = mentions(text)
        if not named:
            return Mentioned()
        resolved = resolve(named, self.current(workspace))
        return Mentioned(self._all(workspace, resolved.skills, "person", "turn"), resolved.notices, resolved.unclear)

    def offered(self, workspace: str, text: str) -> tuple[Skill, ...]:
        """What a message is about by its words."""
        return offered(text, self.current(workspace).skills)

    def planned(self, workspace: str, lines: Sequence[str]) -> tuple[Guided, ...]:
        """What the items of a plan activate: the first skill that one names and that allows it."""
        names = [name for line in lines if (name := plan_mention(line))]
        skills = [skill for name in names if (skill := self.find(workspace, name)) is not None]
        allowed = [one for one in skills if one.plan and one.activation is not Activation.MANUAL]
        return self._all(workspace, allowed[:1], "plan", "turn")

    def touching(self, workspace: str, paths: Sequence[str]) -> tuple[Guided, ...]:
        """Those that apply by glob to one of these files, absolute or below the workspace."""
        fitting = matching(self.current(workspace).skills, workspace, paths)
        return tuple(
            one
            for skill in fitting
            if (one := self.guided(workspace, skill, "file", "turn" if skill.tools is None else "session")) is not None
        )

    def _all(
        self, workspace: str, skills: Iterable[Skill], by: By, lasts: Literal["turn", "session"]
    ) -> tuple[Guided, ...]:
        return tuple(one for skill in skills if (one := self.guided(workspace, skill, by, lasts)) is not None)
