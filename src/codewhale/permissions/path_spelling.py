"""Paths as models write them: in quotes, tags and links, with a line number, under another's folder.
Which file is meant is known only where it is there, so nothing is guessed: a path that leads somewhere stays."""

import os
from collections.abc import Iterator

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.patterns import lazy

_LONGEST = 1000
# What may stand around a path; the group is the path. No file is called like that, but by mistake.
_DRESSES = tuple(
    lazy(f"(?s){pattern}")
    for pattern in (
        r"\s+(.*)|(.*\S)\s+",
        r"(.*\.\w+[\"'`>)]*):\d+(?:[:-]\d+)?|(.+)#L\d+(?:-L?\d+)?",
        r"\"(.+)\"|'(.+)'|`+(.+?)`+|[“‘](.+)[”’]|[\"`](.+)|(.+)[\"`]",
        r"<([A-Za-z_][\w-]*)[^<>]*>(?P<inner>.+)</\1>|<([^<>]+)>",
        r"!?\[[^\[\]]*\]\(<?([^()<>]+)>?\)",
        r"(?i)(?:file[ _-]?path|file[ _-]?name|path|file|target)\s*[:=]\s*(?!//)(.+)",
        r"\$(?:\{[A-Z_]+\}|[A-Z_]+|\(pwd\))/+(.+)",
    )
)
_DIFFS = ("a", "b")
_CALLED = ("workspace", "repo", "project")
# Where other machines keep the workspace.
_ELSEWHERE = lazy(r"/+(?:(?:workspaces/[^/]+|workspace|repo|project|app|code|testbed|mnt/data|home/[^/]+|root)/+)?(.+)")


def bare(path: str) -> str:
    for _ in range(4):
        before = path
        for dress in _DRESSES:
            match = dress().fullmatch(path) if len(path) <= _LONGEST else None
            if match is not None:
                groups = match.groupdict() or {}
                path = groups.get("inner") or next(group for group in reversed(match.groups()) if group is not None)
        if path == before:
            return path
    return path


def meant(root: Root, path: str) -> str:
    """What is there under the name that a path which leads nowhere was meant to be, "" for nothing."""
    if _leads(root, path):
        return ""
    return next((reading for reading in _readings(root, path) if _leads(root, reading)), "")


def undressed(root: Root, path: str, *, folders: bool = True) -> str:
    """The path of a new file that was meant by one that no file is made under: dressed, or (`folders`) below a folder
    that is not there and belongs to a diff or to the way the workspace is called. "" where it can be taken as it is."""
    if _leads(root, path) or (path.startswith("/") and _allowed(root, path) and bare(path) == path):
        return ""
    plain = path
    for _ in range(4):
        before = plain
        plain = bare(plain).replace("\\", "/")
        if plain.startswith("@") and _is_mention(root, plain):
            plain = plain[1:]
        if folders:
            below = _below(root, plain)
            plain = next((shorter for shorter in below if _leads(root, os.path.dirname(shorter) or ".")), plain)
        if plain == before:
            break
    return plain if plain != path and _allowed(root, plain) else ""


def _is_mention(root: Root, path: str) -> bool:
    """Whether the @ before a path marks it as one: there is no folder of that name, and one without it."""
    folder, _, rest = path.partition("/")
    return len(folder) > 1 and (not rest or (_leads(root, folder[1:]) and not _leads(root, folder)))


def _allowed(root: Root, path: str) -> bool:
    try:
        return root.relative(path) != "."
    except PathRefused:
        return False


def _readings(root: Root, path: str) -> Iterator[str]:
    plain = bare(path)
    for form in dict.fromkeys((plain, plain.replace("\\", "/"), bare(plain.replace("\\", "/")))):
        yield form
        yield from (bare(form[1:]),) if form.startswith("@") and len(form) > 1 else ()
        yield from _below(root, form, _CALLED)


def _below(root: Root, path: str, called: tuple[str, ...] = ()) -> Iterator[str]:
    """A path less the folder it begins with, where that is not there."""
    name = os.path.basename(root.path)
    if path.startswith("/") and not os.path.lexists(path) and not _allowed(root, path):
        before, marked, after = path.partition(f"/{name}/")
        if marked and not before.startswith(root.path):
            yield after
        elsewhere = _ELSEWHERE().fullmatch(path)
        if elsewhere is not None:
            yield elsewhere[1]
            yield path.lstrip("/")
    folder, _, rest = path.removeprefix("./").partition("/")
    if rest and folder in (*_DIFFS, name, *called) and not _leads(root, folder):
        yield rest.lstrip("/")


def _leads(root: Root, path: str) -> bool:
    """Whether a path leads to anything inside. What cannot be told counts as something: it is not ours to read on."""
    try:
        root.stat(path)
    except FileNotFoundError:
        return False
    except PathRefused:
        return False
    except OSError as error:
        return not isinstance(error, NotADirectoryError)
    return True
