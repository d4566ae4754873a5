"""CodeWhale itself on this machine: the places that its code runs from, and how its interpreter is started again so
that nothing of the current folder, the environment or a project steers it."""

import functools
import os
import sys
import time

import codewhale
from codewhale.process.sandbox.profiles import beneath

_PACKAGES = ("site-packages", "dist-packages")
# What the program imports of others.
DEPENDENCIES = frozenset(
    """
    Stemmer anyio cronsim curl h11 httpcore2 iregexp_check jsonpath_rfc9535 mcp mcp_types msgspec numpy pycurl
    pypdfium2 pypdfium2_raw regex selectolax semble_grammars textual tomlkit tree_sitter tree_sitter_bash tzdata yaml
    """.split()
)
_MOST_LINKS = 40
_SETTLED_NS = 2_000_000_000
# What programs are made of that the system installed: shared libraries with what finds them, and names of time zones.
_LIBRARIES = (
    "/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/local/lib",
    "/usr/local/lib64", "/usr/share/zoneinfo", "/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew/Cellar",
    "/home/linuxbrew/.linuxbrew/lib", "/home/linuxbrew/.linuxbrew/opt", "/etc/ld.so.cache", "/System/Library",
    "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes", "/Library/Apple",
)  # fmt: skip


def package() -> str:
    return os.path.realpath(os.path.dirname(os.path.abspath(codewhale.__file__)))


def interpreter() -> str:
    """The interpreter, whatever its links are made to lead to meanwhile."""
    return _real(sys.executable)


def runtime_places() -> list[str]:
    """What a bare interpreter of ours reads: itself, Python's own modules and libraries, and the system's. In a prefix
    that is shared with other things (the home, or ~/.local) that is less than all of its libraries."""
    program = interpreter()
    prefix = os.path.dirname(os.path.dirname(program))
    home = os.path.realpath(os.environ.get("HOME") or "/nonexistent")
    settings = os.path.join(prefix, "pyvenv.cfg")
    places = [*_LIBRARIES, program, settings, os.path.dirname(os.__file__)]
    for base in {sys.base_prefix} if os.path.exists(settings) else dict.fromkeys((prefix, sys.base_prefix)):
        for folder in {os.path.join(base, name) for name in ("lib", sys.platlibdir)}:
            shared = base in (home, os.path.join(home, ".local")) or beneath(home, base)
            names = os.listdir(folder) if os.path.isdir(folder) else []
            parts = [name for name in names if name.startswith(("libpython", f"python{sys.version_info[0]}."))]
            places += [os.path.join(folder, name) for name in parts] if shared else [folder]
    return list(dict.fromkeys(path for path in places if os.path.exists(path)))


def own_path() -> list[str]:
    """The folders that modules are taken from: Python's own and its packages', in no case the current one. Others stand
    behind them, and only where they hold what would be missing."""
    kept = [os.path.realpath(entry) for entry in sys.path if _is_usual(entry)]
    others = [entry for entry in sys.path if os.path.isabs(entry) and not _is_usual(entry)]
    others = [entry for entry in map(os.path.realpath, others) if os.path.isdir(entry) and entry not in _passing()]
    missing = DEPENDENCIES.difference(*map(_modules, kept)) if others else frozenset()
    return list(dict.fromkeys((*kept, *(entry for entry in others if missing & _modules(entry)))))


def narrow() -> None:
    """Take modules from there alone, from here on, and keep none in a folder that the environment names."""
    sys.path[:] = own_path()
    codewhale.__path__[:] = [package()]
    sys.pycache_prefix = None
    interpreter()


def own_python(code: str, *args: str) -> tuple[str, ...]:
    """The command line that runs `code`, with `args` in sys.argv[1:], as this program runs: no environment, no start-up
    file and no current folder has a say in it."""
    prefixes = f"sys.prefix, sys.exec_prefix = {sys.prefix!r}, {sys.exec_prefix!r}"
    parent = os.path.dirname(package())
    first = f"import sys; {prefixes}; sys.path[:] = {[*own_path(), parent]!r}; import codewhale; sys.path.pop()"
    return (interpreter(), "-I", "-S", "-c", f"{first}\n{code}", *args)


def own_places(workspace: str) -> tuple[str, ...]:
    """What must stay as it is in a workspace for nothing of it to run as CodeWhale: files and folders, real paths; the
    workspace itself where it lies in such a folder."""
    root, places = os.path.realpath(workspace), _places()
    if any(beneath(root, place) for place in places):
        return (root,)
    inside = {place for place in places if beneath(place, root)}
    inside |= {place for place in _prefixes() if beneath(place, root) and place != root}
    return tuple(sorted(place for place in inside if not any(place.startswith(f"{one}/") for one in inside)))


def start_folders(workspace: str) -> tuple[str, ...]:
    """The folders of a workspace that are on the path of the interpreter at its start, before any code of ours runs."""
    root = os.path.realpath(workspace)
    return tuple(sorted(place for place in _listed() if beneath(place, root)))


def _places() -> frozenset[str]:
    places = [package(), *own_path()]
    compiled = os.environ.get("PYTHONPYCACHEPREFIX", "")
    places += [os.path.join(compiled, place.lstrip("/")) for place in places if compiled]
    for prefix in _prefixes():
        places += [os.path.join(prefix, name) for name in ("bin", "pyvenv.cfg")]
    named = [sys.executable, os.path.dirname(os.path.abspath(codewhale.__file__))]
    named += [sys.argv[0]] if os.path.basename(sys.argv[0]).startswith("codewhale") else []
    return frozenset({*map(os.path.realpath, places), *(way for path in named for way in _ways(path))})


def _prefixes() -> frozenset[str]:
    return frozenset(map(os.path.realpath, (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)))


def _listed() -> frozenset[str]:
    """The folders that the environment and the lists of packages put on the path of the interpreter."""
    listed = {entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    for folder in filter(os.path.isdir, own_path()):
        for name in _names(folder)[1]:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file.read(1 << 16).splitlines()]
            listed |= {os.path.join(folder, line) for line in lines if line and not line.startswith(("#", "import"))}
    return frozenset(map(os.path.realpath, listed))


def _is_usual(entry: str) -> bool:
    """Whether it is Python's own, or where packages are installed."""
    library = os.path.dirname(os.__file__)
    usual = beneath(entry, library) or (entry.endswith(".zip") and os.path.dirname(entry) == os.path.dirname(library))
    return os.path.isabs(entry) and (usual or os.path.basename(entry.rstrip("/")) in _PACKAGES)


def _passing() -> set[str]:
    """Folders on the path for the sake of one script, or of our own package alone."""
    return {os.path.dirname(package()), os.path.dirname(_real(sys.argv[0])), os.path.dirname(interpreter())}


def _modules(folder: str) -> frozenset[str]:
    try:
        return _names(folder)[0]
    except OSError:
        return frozenset()


def _names(folder: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """What a folder of packages holds: its modules, and its lists of folders. Listed anew when it has changed, and as
    long as its time of change could not tell one change from the next. Raises OSError."""
    changed = os.stat(folder).st_ctime_ns  # unlike the other times of a file, nobody can set it
    settled = abs(time.time_ns() - changed) > _SETTLED_NS
    return (_names_at if settled else _names_at.__wrapped__)(folder, changed)


@functools.lru_cache(maxsize=32)
def _names_at(folder: str, changed: int) -> tuple[frozenset[str], tuple[str, ...]]:
    names = os.listdir(folder)
    return frozenset(name.partition(".")[0] for name in names), tuple(name for name in names if name.endswith(".pth"))


@functools.lru_cache(maxsize=8)
def _real(path: str) -> str:
    return os.path.realpath(path)


def _ways(path: str) -> list[str]:
    """What a path really is, and every link on the way there."""
    ways: list[str] = []
    todo = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        link = next((one for one in _downwards(todo) if os.path.islink(one)), "")
        if not link:
            break
        ways.append(link)
        rest = os.path.relpath(todo, link)
        todo = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link), rest))
    return [*ways, os.path.realpath(path)]


def _downwards(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]
