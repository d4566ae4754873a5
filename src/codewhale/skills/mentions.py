"""`$name` in a message: which words of it name a skill, and what a person is told where none is activated.

What looks like a shell variable, a price, code or a quotation names nothing. Where a command line cannot be told from
a sentence, no skill is activated, and the person is told so.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from msgspec import Struct

from codewhale.lib.text import counted, one_line
from codewhale.skills.matching import STOP_WORDS
from codewhale.skills.model import Skill, SkillList

# What may stand before and behind a name that has no space there.
_OPENING, _CLOSING = "(（「『【《〈", "，。；：、！？）」』】》〉…—–"
_MENTION = re.compile(rf"(?<![^\s{_OPENING}{_CLOSING}])\$(?P<token>[^\W\d_][^\s{_CLOSING}]*)")
_ID = re.compile(r"[^\W\d_][\w-]*(:[\w-]+)?")
_TRAILING = ".,;:!?)"

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})(.*)")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)\s*\S|\s*>")
_QUOTED = re.compile(
    r'(?<![\w"])"(?:[^"\n]|\n(?![ \t]*\n))*"(?!\w)'
    r"|(?<![\w'])'(?=\S)[^'\n]*'(?!\w)"
    r"|“[^“”]*”|‘[^‘’\n]*’|«[^«»]*»|「[^「」]*」|『[^『』]*』|„[^„“]*“"
)
_MATH = re.compile(r"\$[^\s$](?:[^$\n]{0,200}[^\s$\\])?\$(?![\w$])")
_COMMENT = re.compile(r"\s*(?:#|//)")
_COMMAND_LINE = re.compile(r"\s*(?:(?:\S*[@:~]\S*)?[$❯] |(?:echo|export)(?:\s|$))")
# The first words of command lines; some begin a sentence, too.
_COMMANDS = frozenset(
    ". : [ [[ { alias apt awk basename break brew bundle bzip2 cargo case cat cc cd chgrp chmod chown clear cmake cmp "
    "command continue cp curl cut date dd declare df diff dirname do docker done du elif else env esac eval exec exit "
    "false fgrep fi file find for function gcc getopts git go grep egrep gunzip gzip hash head helm if install java "
    "jobs join jq kill kubectl ld let ln local ls make mkdir mktemp mv nice node nohup npm npx od patch perl php pip "
    "pip3 pnpm podman popd print printf ps pushd pwd pytest python python3 read readlink readonly return rm rmdir "
    "rsync ruby scp sed select seq set sh bash zsh shift shopt sleep sort source ssh stat su sudo systemctl tail tar "
    "tee terraform test then time touch tr trap true tty type typeset ulimit umask uname uniq unset until unzip uv "
    "wait wc wget which while xargs xz yarn zip !".split()
)
_SYNTAX = re.compile(
    r"^\s*[\w.]+\+?=|^\s*[\w-]+\(\)|&&|\|\||;;|;\s*\S|\s\|&?\s|(?<!\S)\d?[<>]|<<|->|::|\$[({@*?!]|\$\d(?!\S)"
    r"|[;{}\\&|]\s*$|^\s*[{}()<|]|\s\[\[?\s|^\s*\.{0,2}/\S|^\s*--?\w|^[^$]*\s--?[A-Za-z]|`|^\s*\$\w+\s*[-+*/.]?=\s"
)
# What stands in no sentence, whatever its words.
_CODE = re.compile(
    r"^\s*[\w.]+\s*[?:+]?=(?:\s|$)|;\s*$"
    r"|\b(?:my|our|local|foreach|while|if)\s*\(?[$@%]?\(?\$\w+\s*(?:=|\)|,)|\b(?:my|our)\s+[$@%(]"
    r"|\$\w+\s*(?:[-+.*/|&]?=~?\s)|^\s*(?:foreach|while|for|if|elsif)\s*\(|\w\(.*\$\w+.*\);"
    r"|</?[a-z]+[ >]|\|\|=|=>|\$\w+\[|::"
)
_WORD = re.compile(r"(?<![^\s(,;])[a-z]{2,}(?:'[a-z]+)?(?=[\s,.;:!?)]|$)")
# Words of sentences that command lines do without.
_PROSE = (STOP_WORDS | {"broken", "fails", "failed", "skill"}) - frozenset(
    "all as case do done down for from get go if in let make new no now on once per put set show take tell then time "
    "try until up which while".split()
)
_OFF = "is switched off; to use it: /skills on {0.full_name}"
_TRUST = "is not trusted yet, so it is not used; to use it: codewhale trust add {0.file}"
# Namespaces that are places: written alone they mean no skill.
_PLACES = re.compile(
    r"(?:user.*|agents|project|opencode|claude|cursor|codewhale|codex|kimi|system|configured|builtin)(?:-\d+)?"
)
_MOST_NAMED, _MOST_NOTICES = 8, 5


class Mention(Struct, frozen=True):
    """A word of a message that may name a skill: `token` is what stands behind the `$`, which is at offset `start`.
    `command`: its line looks like one for a shell."""

    token: str
    start: int
    command: bool = False


class SkillResolution(Struct, frozen=True):
    """The skills that a message activates, in its order, and lines for the person. `unclear` asks the person for
    another message: this one activates nothing, and is not sent."""

    skills: tuple[Skill, ...] = ()
    notices: tuple[str, ...] = ()
    unclear: str = ""


def mentions(text: str) -> tuple[Mention, ...]:
    """What a message may mean as names of skills."""
    if "$" not in text:
        return ()
    visible, start, before, seen = _without_code(text), 0, False, list[Mention]()
    for line in visible.splitlines(keepends=True):
        command = not _COMMENT.match(line) and _looks_like_a_command(line, before)
        if "$" in line and not _COMMENT.match(line) and not _COMMAND_LINE.match(line):
            seen += (Mention(match["token"], start + match.start(), command) for match in _MENTION.finditer(line))
        start, before = start + len(line), command
    return tuple(seen)


def plan_mention(line: str) -> str:
    """The skill that an item of a plan names: its first word, and nothing further on. "" where it names none."""
    first = next(iter(mentions(line)), None)
    name = "" if first is None or first.start or first.command else first.token.rstrip(_TRAILING)
    return name if _may_name(name) else ""


def names(found: SkillList) -> tuple[tuple[str, Skill], ...]:
    """What may be typed behind a `$`: the name of each skill, with its namespace where another one comes first."""
    return (*((skill.name, skill) for skill in found.skills), *((skill.full_name, skill) for skill in found.shadowed))


def described(found: SkillList) -> tuple[tuple[str, str], ...]:
    """What may be typed, and what it stands for."""
    return tuple((name, _restriction(skill) + one_line(skill.description, 280)) for name, skill in names(found))


def resolve(mentioned: Iterable[Mention], found: SkillList) -> SkillResolution:
    """What these words activate of the skills that there are."""
    skills, notices = dict[str, Skill](), dict[str, None]()
    for mention in mentioned:
        fitting = _exact(mention.token, found.skills, found.shadowed)
        if mention.command:
            if fitting:
                notices[f"${fitting[0].name} stays as text: its line looks like a command."] = None
        elif len(fitting) == 1:
            skills[fitting[0].file] = fitting[0]
        elif fitting:
            return SkillResolution(unclear=_several(mention.token, (_typed(skill.full_name) for skill in fitting)))
        else:
            unnamed = _unnamed(mention.token, found)
            if unnamed.unclear:
                return unnamed
            notices |= dict.fromkeys(unnamed.notices)
    unclear = _cannot_combine(tuple(skills.values()))
    return SkillResolution(() if unclear else tuple(skills.values()), tuple(notices)[:_MOST_NOTICES], unclear)


def _restriction(skill: Skill) -> str:
    return "" if skill.tools is None else f"restricts to {counted(len(skill.tools), 'tool')}: "


def _without_code(text: str) -> str:
    """The text with what is code, a formula or a quotation blotted out; all else stands where it stood."""
    lines, fence, script = list[str](), "", False
    for line in text.splitlines(keepends=True):
        script = script or line.startswith("#!")
        match = _FENCE.match(line)
        hidden = script or bool(fence) or match is not None or _INDENTED.match(line) is not None
        if match and not fence:
            fence = match[1] if match[1][0] == "~" or "`" not in match[2] else ""
            hidden = bool(fence)
        elif match and match[1].startswith(fence) and not match[2].strip():
            fence = ""
        lines.append(_blot(line) if hidden else line)
    visible, pieces, shown = "".join(lines), list[str](), 0
    for start, end in _code_spans(visible):
        pieces += visible[shown:start], _blot(visible[start:end])
        shown = end
    visible = "".join((*pieces, visible[shown:]))
    return _MATH.sub(_formula, _QUOTED.sub(lambda match: _blot(match[0]), visible))


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Inline code: from a run of backticks to the next one of its length, within a paragraph."""
    runs = list(re.finditer(r"`+|\n[ \t]*(?=\n)", text))
    closing, following = list[int](), dict[int, int]()
    for index in range(len(runs) - 1, -1, -1):
        if runs[index][0][0] == "\n":
            following.clear()
        length = len(runs[index][0])
        closing.append(following.get(length, 0))
        following[length] = index
    closing.reverse()
    index = 0
    while index < len(runs):
        if runs[index][0][0] == "`" and closing[index]:
            yield runs[index].start(), runs[closing[index]].end()
            index = closing[index]
        index += 1


def _formula(match: re.Match[str]) -> str:
    return _blot(match[0]) if re.search(r"[\\^_=+{}*/<>]", match[0]) else match[0]


def _blot(text: str) -> str:
    return re.sub(r"[^\r\n]", "\0", text)


def _looks_like_a_command(line: str, follows: bool) -> bool:
    """Whether a line is rather one for a shell than a sentence; `follows` says so of the line before it."""
    if _COMMAND_LINE.match(line) or _CODE.search(line):
        return True
    first = line.split(maxsplit=1)[:1]
    if not first or not (follows or first[0] in _COMMANDS or _SYNTAX.search(line)):
        return False
    if not line.isascii() and any(char.isalpha() for char in line if char > "\x7f"):
        return False
    return _PROSE.isdisjoint(_WORD.findall(line.lower()))


def _may_name(token: str) -> bool:
    return token == token.lower() and _ID.fullmatch(token) is not None


def _exact(token: str, *lists: tuple[Skill, ...]) -> list[Skill]:
    """The skills of exactly this name: those of the first list come first, full names count in all lists."""
    typed = unicodedata.normalize("NFKC", token)
    while typed == typed.lower():
        fitting = [skill for skill in lists[0] if skill.name == typed]
        fitting = fitting or [skill for several in lists for skill in several if skill.full_name == typed][:1]
        if fitting or typed[-1:] not in _TRAILING or not typed:
            return fitting
        typed = typed[:-1]
    return []


def _near(typed: str, found: SkillList) -> list[str]:
    """The names that begin with what was typed or have it in them; a short one has to begin with it."""

    def fits(name: str) -> bool:
        return name.lower().startswith(typed) or (len(typed) > 2 and typed in name.lower())

    return [
        _typed(name if fits(skill.name) else skill.full_name)
        for name, skill in names(found)
        if fits(skill.name) or (fits(skill.full_name) and (":" in typed or not _PLACES.fullmatch(skill.space)))
    ]


def _unnamed(token: str, found: SkillList) -> SkillResolution:
    """What is said of a word that is no skill's name: nothing where it cannot be one."""
    for skills, how in ((found.off, _OFF), (found.untrusted, _TRUST)):
        fitting = _exact(token, skills)
        if fitting:
            return SkillResolution(notices=(one_line(f"The skill {fitting[0].name} {how.format(fitting[0])}", 400),))
    typed = token.rstrip(_TRAILING)
    if not _may_name(typed):
        return SkillResolution()
    near = _near(typed, found) if len(typed) > 1 else []
    if len(near) > 1:
        return SkillResolution(unclear=_several(typed, near))
    known = {name.lower(): _typed(name) for name, _ in names(found)}
    near = near or [known[name] for name in get_close_matches(typed.rpartition(":")[2], known, 3, 0.8)]
    hint = f"; did you mean {' or '.join(near)}?" if near else "; it stays as text."
    return SkillResolution(notices=(f"There is no skill {one_line(typed, 64)}{hint}",))


def _typed(name: str) -> str:
    """How a skill is called: behind a `$` no name has capitals."""
    return f"${name}" if name == name.lower() else f"/skill {name}"


def _several(typed: str, choices: Iterable[str]) -> str:
    every = list(choices)
    more = ", ..." if len(every) > _MOST_NAMED else ""
    typed = one_line(typed, 64)
    return (
        f"${typed} may be one of several skills: {', '.join(every[:_MOST_NAMED])}{more}. Nothing was sent: "
        f"write the whole name, or \\${typed} for the text as it is."
    )


def _cannot_combine(skills: tuple[Skill, ...]) -> str:
    """Why these skills cannot be active together: one that guides and one that restricts can, and no others."""
    if len(skills) < 2 or (len(skills) == 2 and (skills[0].tools is None) != (skills[1].tools is None)):
        return ""
    called = ", ".join(f"${skill.name}" for skill in skills[:_MOST_NAMED])
    both = "both restrict the tools" if skills[0].tools is not None else "neither restricts the tools"
    why = f"and {both}" if len(skills) == 2 else f"but {len(skills)} are named"
    return (
        f"{called}: two skills can be used at once when one of them restricts the tools and the other does not, {why}. "
        "Nothing was sent: name fewer of them."
    )
