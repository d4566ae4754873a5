"""What is configured of sub-agents."""

from typing import Annotated

from msgspec import Meta, Struct

MOST, HARD_CAP = 10, 20


class ChildSettings(Struct, frozen=True):
    """The `[subagents]` table. `max_concurrent` sub-agents of a session and of all that work for it run at once. The
    others bound one task of a child: `steps` are model calls, `seconds` its whole time, `silence_seconds` how long
    nothing may come from the model; tokens and cost 0 are no bound of its own. `models` are those of a role, where
    they are not the session's."""

    max_concurrent: Annotated[int, Meta(ge=1, le=HARD_CAP)] = MOST
    steps: Annotated[int, Meta(ge=1)] = 200
    seconds: Annotated[float, Meta(ge=1, le=86_400)] = 1800.0
    silence_seconds: Annotated[float, Meta(ge=1, le=3600)] = 300.0
    tokens: Annotated[int, Meta(ge=0)] = 0
    cost: Annotated[float, Meta(ge=0)] = 0.0
    models: dict[str, str] = {}
