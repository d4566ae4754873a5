"""What to ask instead where nothing was found: which part of a question left out everything."""

from collections import Counter
from collections.abc import Sequence

from codewhale.codesearch.rank import Filter
from codewhale.codesearch.reader import Reader
from codewhale.lib.text import one_line

_MOST = 3
_MOST_GLOB = 100  # characters that are told of one
_WILD = frozenset("*?[]{}\\")


def hint(reader: Reader, only: Filter) -> str:
    """One or two sentences for whoever asked a question that found nothing."""
    spoken = Counter(file.lang or "plain" for file in reader.files if only.paths is None or only.paths(file.path))
    if not reader.files:
        return "There is no file here to search: the folder is empty, or what it holds is ignored. Look with list_dir."
    if not spoken:
        near = _folders_like(only.glob, reader.paths)
        instead = f" Do you mean {' or '.join(near)}?" if near else " Leave path_glob out, or look with list_dir."
        return (
            f"path_glob {one_line(only.glob, _MOST_GLOB)} fits none of the {len(reader.paths):,} files here.{instead}"
        )
    if only.lang and not spoken[only.lang]:
        others = ", ".join(f"{lang} {count:,}" for lang, count in spoken.most_common(_MOST))
        return f"No file {_within(only)}is in {only.lang}: {others}."
    where = _within(only).strip() or "here"
    if only.kind:
        return (
            f"No file {where} that defines a {only.kind} holds a word of the query. Leave kind out, or ask otherwise."
        )
    return f"No file {where} holds a word of the query. Ask in words that the code would use, or what it is for."


def _within(only: Filter) -> str:
    return f"in {one_line(only.glob, _MOST_GLOB)} " if only.glob else ""


def _folders_like(glob: str, paths: Sequence[str]) -> list[str]:
    """Globs of at most three folders that are called like the last plain folder of a glob, those first that share most
    of its other folders."""
    named = [part for part in glob.split("/") if part and not _WILD.intersection(part)]

    def likeness(folder: str) -> tuple[int, int, str]:
        return -len({*folder.split("/")} & {*named}), len(folder), folder

    for name in reversed(named):
        found = {path[: at + len(name) + 1] for path in paths if (at := f"/{path}".find(f"/{name}/")) >= 0}
        if found:
            return [f"{folder.rstrip('/')}/**" for folder in sorted(found, key=likeness)[:_MOST]]
    return []
