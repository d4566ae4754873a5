"""Skills: folders whose SKILL.md tells a model how to do one kind of task."""

from codewhale.services.skills.store import LoadedSkill, Skill, SkillList, SkillStore

__all__ = ["LoadedSkill", "Skill", "SkillList", "SkillStore"]
