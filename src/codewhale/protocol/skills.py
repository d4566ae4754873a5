"""What a skill or rule brings into a conversation."""

from msgspec import Struct

from codewhale.protocol.events import SkillActivated


class Guided(Struct, frozen=True):
    """A skill that becomes active: the event, its text ("" where the conversation has it), and the other files of its
    folder."""

    event: SkillActivated
    body: str
    companions: tuple[str, ...] = ()


class Mentioned(Struct, frozen=True):
    """What the `$names` in a person's message come to: the skills that become active, lines for the person, and why
    nothing is activated where it is not clear what was meant ("" where it is)."""

    guided: tuple[Guided, ...] = ()
    notices: tuple[str, ...] = ()
    unclear: str = ""
