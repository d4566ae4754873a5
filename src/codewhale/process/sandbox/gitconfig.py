"""What stands in a git configuration file, read as git reads it, and which of it can make git run or open something.

Stands alone, with nothing of ours: the program beside a command reads it too.
"""

import os
import re

_HEADER = re.compile(r"\[\s*([-.a-zA-Z0-9]+)\s*(?:\"((?:[^\"\\\n]|\\[^\n])*)\")?\s*\]")
_NAME = re.compile(r"([a-zA-Z][-a-zA-Z0-9]*)[ \t]*")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}
MOST_ENTRIES = 20_000
# Settings that choose no program, no file and no other place, whatever their value.
_PLAIN = re.compile(
    r"""core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol
    |safecrlf|abbrev|bigfilethreshold|compression|loosecompression|quotepath|trustctime|checkstat|untrackedcache
    |protecthfs|protectntfs|longpaths|sparsecheckout|sparsecheckoutcone|commentchar|whitespace|fscache|hidedotfiles
    |preferSymlinkRefs|sharedrepository|multipackindex|commitgraph|deltabasecachelimit|packedgitlimit
    |packedgitwindowsize|preloadindex|splitindex|warnambiguousrefs)
    |extensions\.(objectformat|worktreeconfig|partialclone|refstorage|noop|compatobjectformat|preciousobjects)
    |remote\..*\.(fetch|push|tagopt|prune|prunetags|mirror|skipdefaultupdate|skipfetchall|promisor|partialclonefilter)
    |branch\..*\.(remote|pushremote|merge|rebase|description|vscode-merge-base|gh-merge-base)
    |submodule\..*\.(active|branch|ignore|shallow|fetchrecursesubmodules)|submodule\.(active|recurse|fetchjobs)
    |user\.(name|email|useconfigonly)|author\.(name|email)|committer\.(name|email)|init\.defaultbranch
    |gc\.(auto|autodetach|autopacklimit|pruneexpire|reflogexpire|reflogexpireunreachable|worktreepruneexpire|packrefs
    |writecommitgraph|cruftpacks|bigpackthreshold|rerereresolved|rerereunresolved)|pack\.[a-z]+|index\.(version|threads|sparse|skiphash)|feature\.[a-z]+|color\..*|column\..*|advice\..*
    |push\.(default|autosetupremote|followtags)|pull\.(rebase|ff)|fetch\.(prune|prunetags|parallel|writecommitgraph)
    |merge\.(ff|conflictstyle|renames|renamelimit|stat|log)|rebase\.(autostash|autosquash|updaterefs|stat)
    |diff\.(renames|renamelimit|algorithm|noprefix|mnemonicprefix|colormoved|context|suppressblankempty)
    |status\.(short|branch|showuntrackedfiles|relativepaths)|log\.(date|decorate|follow|abbrevcommit)
    |rerere\.(enabled|autoupdate)|commit\.(verbose|cleanup|status)|tag\.sort|lfs\.repositoryformatversion
    |maintenance\.(auto|strategy)|receive\.(denycurrentbranch|denynonfastforwards|denydeletes|autogc)
    |transfer\.[a-z]+|clone\.[a-z]+|checkout\.(defaultremote|guess|workers)|stash\.[a-z]+|http\.postbuffer
    """.replace("\n", "").replace(" ", ""),
    re.IGNORECASE | re.DOTALL,
)  # fmt: skip
# An address, unless it names a program to speak through: `ext::sh -c x`, `fd::3`, `--upload-pack=x`.
_ADDRESS = re.compile(r"(remote\..*\.(push)?url|submodule\..*\.url)", re.DOTALL)
_HELPER = re.compile(r"\s*-|[a-z0-9.+-]+::", re.IGNORECASE)
_UPDATE = re.compile(r"submodule\..*\.update", re.DOTALL)


def entries(data: bytes) -> "list[tuple[str, str]]":
    """(name, value) in their order, section and variable in small letters. Raises ValueError for what git would not
    read either, or for more than 20,000."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")
    found: list[tuple[str, str]] = []
    section, at = "", 0
    while at < len(text):
        character = text[at]
        if character.isspace():
            at += 1
        elif character in "#;":
            at = _line_end(text, at)
        elif character == "[":
            header = _HEADER.match(text, at)
            if header is None:
                raise ValueError("a section's name cannot be read")
            section, at = _section(header), header.end()
        else:
            name = _NAME.match(text, at)
            if name is None or not section:
                raise ValueError("a line cannot be read")
            value, at = _value(text, name.end())
            found.append((f"{section}.{name[1].lower()}", value))
        if len(found) > MOST_ENTRIES:
            raise ValueError("too many settings")
    return found


def _section(header: "re.Match[str]") -> str:
    name = header[1].lower()
    return name if header[2] is None else name + "." + re.sub(r"\\(.)", r"\1", header[2])


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _value(text: str, at: int) -> "tuple[str, int]":
    if at >= len(text) or text[at] in "\n#;":
        return "true", _line_end(text, at)
    if text[at] != "=":
        raise ValueError("a variable without a value")
    out, quoted, at = [], False, at + 1
    while at < len(text) and (text[at] != "\n" or quoted):
        character = text[at]
        if character == "\n":
            raise ValueError("a quotation mark is not closed")
        if character == "\\":
            following = text[at + 1 : at + 2]
            if following not in _ESCAPES and following != "\n":
                raise ValueError("an escape that there is not")
            out.append(_ESCAPES.get(following, ""))
            at += 2
            continue
        if character in "#;" and not quoted:
            break
        if character == '"':
            quoted = not quoted
        else:
            out.append(character)
        at += 1
    return "".join(out).strip(), _line_end(text, at)


def steers(name: str, value: str) -> bool:
    """Whether a setting can make git run a program, open a file or go elsewhere, as far as its name and value tell."""
    if _ADDRESS.fullmatch(name):
        return bool(_HELPER.match(value))
    if _UPDATE.fullmatch(name):
        return value.lower() not in ("checkout", "rebase", "merge", "none")
    return _PLAIN.fullmatch(name) is None


def steering(data: bytes) -> "list[tuple[str, str]]":
    """The settings of a file that steer git; one that cannot be read does."""
    try:
        return [(name, value) for name, value in entries(data) if steers(name, value)]
    except ValueError as error:
        return [("unreadable", str(error))]


def named_files(data: bytes, folder: str) -> "tuple[list[str], list[str]]":
    """The files that a configuration in `folder` includes, and the folders that it takes hooks from, as they are
    written but for `folder` before what is relative."""
    try:
        found = entries(data)
    except ValueError:
        return [], []
    included = [value for name, value in found if name == "include.path" or re.fullmatch(r"includeif\..*\.path", name)]
    hooks = [value for name, value in found if name == "core.hookspath"]
    return [os.path.join(folder, os.path.expanduser(path)) for path in included], hooks
