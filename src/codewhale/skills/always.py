"""The text of the skills and rules that always apply, for the beginning of a session: the same bytes for the same
files, within a budget that names what it left out."""

from collections.abc import Callable, Iterable

from codewhale.lib.text import one_line, sanitise
from codewhale.skills.model import LoadedSkill

ALWAYS_LIMIT = 24_000  # characters of all
WINDSURF_TOTAL = 12_000  # of those of Windsurf's, as there; what is beyond is left out
_MOST_NAMED = 20
_MARKS = str.maketrans('"<>', "'()")
_HEAD = "# Rules\nThese always apply here. Later ones are closer to the work and win where two disagree."


def always_text(loaded: Iterable[LoadedSkill], contain: Callable[[str], str]) -> str:
    """A block for each, those of the person first and those of the nearest folder last, "" for none; where there is no
    room for all, the nearest stay. `contain(text)` is a text that closes no block."""
    ordered = sorted(loaded, key=lambda one: (one.skill.folder.count("/"), one.skill.folder, one.skill.name))
    blocks: list[str] = []
    left_out: list[str] = []
    windsurf = 0
    left = ALWAYS_LIMIT
    bodies = []
    for one in ordered:
        body = sanitise(one.body.strip())
        if one.skill.program == "windsurf":
            windsurf += len(body)
            body = _cut(body, len(body) + WINDSURF_TOTAL - windsurf, one.skill.path)
        bodies.append(body)
    for one, body in zip(reversed(ordered), reversed(bodies), strict=True):
        skill, source = one.skill, one_line(one.skill.path).translate(_MARKS)
        block = (
            f'<{skill.kind} name="{skill.name.translate(_MARKS)}" source="{source}">\n{contain(body)}\n</{skill.kind}>'
        )
        if len(block) <= left:
            left -= len(block)
            blocks.append(block)
        else:
            left_out.append(f"- {skill.name} ({source}, {len(one.body):,} characters)")
    if not blocks and not left_out:
        return ""
    return "\n".join([_HEAD, *reversed(blocks), *_missing(left_out[::-1])])


def _cut(text: str, room: int, path: str) -> str:
    room = max(0, room)
    more = f"{len(text) - room:,} characters are left out: Windsurf reads {WINDSURF_TOTAL:,} of all its rules"
    return text if len(text) <= room else f"{text[:room].rstrip()}\n({more}; read_file {one_line(path)})".lstrip()


def _missing(lines: list[str]) -> list[str]:
    if not lines:
        return []
    head = "There was no room for these; read one with load_skill NAME before work that it may be about:"
    more = len(lines) - _MOST_NAMED
    return [head, *lines[:_MOST_NAMED], *([f"- and {more} more, which /rules lists"] if more > 0 else [])]
