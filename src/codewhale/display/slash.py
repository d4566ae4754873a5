"""Which typed lines are slash commands."""

import re

_COMMAND = re.compile(r"/[^\W\d_][\w-]*(?:\s|$)")


def is_command(prompt: str) -> bool:
    """Whether a prompt is a slash command, "/name args", and not a path or plain words."""
    return _COMMAND.match(prompt) is not None
