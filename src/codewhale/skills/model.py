"""What a skill or rule is: its text guides a model, its header says when it applies and what it restricts."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct


class Activation(StrEnum):
    """When the text of a skill or rule reaches the model: in the system text; once a matching file is touched; when
    the model loads it; when a person names it."""

    ALWAYS = "always"
    GLOB = "glob"
    MODEL = "model"
    MANUAL = "manual"


class Skill(Struct, frozen=True):
    """A skill, or a rule file of some program. `path` is its file as it may be shown, `file` where it is, `folder` the
    one that its globs start from (absolute, "" for a person's own). `space` is its namespace, `program` whose format
    it has. `tools` are the tools that it restricts a session to as its header names them (None: it restricts nothing),
    `approved` those that it pre-approves, `workflow` a file of its folder. `plan`: a model's plan line may name it.
    `size` is that of its file in bytes, `sha256` of its bytes; `license` and `compatibility` are as its header has
    them."""

    name: str
    description: str
    path: str
    file: str
    kind: Literal["skill", "rule"] = "skill"
    space: str = "user"
    program: str = "codewhale"
    activation: Activation = Activation.MODEL
    globs: tuple[str, ...] = ()
    folder: str = ""
    tools: tuple[str, ...] | None = None
    approved: tuple[str, ...] = ()
    workflow: str = ""
    plan: bool = True
    size: int = 0
    sha256: str = ""
    license: str = ""
    compatibility: str = ""

    @property
    def full_name(self) -> str:
        """The name that no other source has."""
        return f"{self.space}:{self.name}"


class LoadedSkill(Struct, frozen=True):
    """A skill with what its file says below the header, and the other files of its folder."""

    skill: Skill
    body: str
    companions: tuple[str, ...] = ()


class SkillList(Struct, frozen=True):
    """The skills and rules of a workspace by precedence, those that were switched off, those whose name one before
    them has (their full name is their own), those that nobody trusts yet, and a line for each file that is none, is
    left out, or is used although something is wrong with it ("loaded anyway")."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()
    off: tuple[Skill, ...] = ()
    shadowed: tuple[Skill, ...] = ()
    untrusted: tuple[Skill, ...] = ()

    def find(self, name: str) -> Skill | None:
        """The one that a name or a full name stands for."""
        named = (skill for skill in self.skills if skill.name == name)
        return next(named, None) or next(
            (skill for skill in (*self.skills, *self.shadowed) if skill.full_name == name), None
        )
