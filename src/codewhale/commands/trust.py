"""/trust: which of the project's own files may steer the harness."""

import os

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.permissions.trust import ProjectFile, TrustStore
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.ops import CommandOutput
from codewhale.skills.places import project_texts

MOST_FILES = 20


class TrustCommand:
    """/trust."""

    def __init__(self, store: TrustStore) -> None:
        self._store = store

    @command("/trust", "[add|remove FILE...]")
    async def trust(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the project's own configuration files and their trust, or trust or untrust some as they are now."""
        action, *names = args.split() or ["list"]
        try:
            found = {
                item.path: item for item in self._store.survey(context.workspace, project_texts(context.workspace))
            }
            if action == "list" and not names:
                return CommandOutput(
                    "\n".join(map(_line, found.values())) or "The project has no configuration files of its own."
                )
            if action not in ("add", "remove") or not names:
                return misuse("Use /trust, /trust add FILE... or /trust remove FILE...")
            root = os.path.realpath(context.workspace)
            paths = [os.path.normpath(os.path.join(root, name)) for name in names]
            missing = [path for path in paths if path not in found]
            if missing and action == "add":
                return misuse(f"{missing[0]} is not a project file; this project has {', '.join(found) or 'none'}.")
            return self._add([found[path] for path in paths]) if action == "add" else self._remove(paths)
        except ConfigError as error:
            return CommandOutput(str(error), ok=False)

    def _add(self, items: list[ProjectFile]) -> CommandOutput:
        for item in items:
            self._store.add(item)
        told = "\n".join(f"trusted as it is now: {item.path} (sha256 {item.sha256[:12]})" for item in items)
        when = "Skills and rules can be used from now on; what always applies counts from the next start on."
        return CommandOutput(f"{told}\n{when}")

    def _remove(self, paths: list[str]) -> CommandOutput:
        gone = [path for path in paths if self._store.remove(path)]
        if not gone:
            return CommandOutput("None of these were trusted.", ok=False)
        return CommandOutput("\n".join(f"no longer trusted: {path}" for path in gone))


def _line(item: ProjectFile) -> str:
    more = "".join(f"\n  {path} has changed" for path in item.changed[:MOST_FILES])
    more += f"\n  {len(item.changed) - MOST_FILES} more have changed" if len(item.changed) > MOST_FILES else ""
    more += f"\n  cannot be trusted: {item.problem}" if item.problem else ""
    return f"{item.state:<8} {item.path}{more}"
