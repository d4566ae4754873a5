"""A command line of bubblewrap: the whole machine to look at, read-only; new namespaces for processes, network and
names; over that the few places that are private or may be written; and in those, what must stay as it is."""

import os
import stat
import time
from collections.abc import Iterator, Sequence

from msgspec import Struct

from codewhale.process.sandbox.landlock import ISOLATION, NULL_DEVICES, SeccompFilter, build_filter, scoped
from codewhale.process.sandbox.profiles import (
    Confinement,
    GitPlace,
    SandboxPlan,
    Site,
    beneath,
    cache_folders,
    folders_above,
    private_caches,
)
from codewhale.protocol.protected import (
    GIT_FILES,
    GIT_FOLDERS,
    HOME_FOLDERS,
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    RULE_FILES,
)

# Names that are taken while a command runs, if nothing stands there: what programs of many people act on unasked.
HELD = (
    ".git", ".codewhale", ".vscode", ".idea", ".gitmodules", ".gitconfig", ".mcp.json", ".ripgreprc", ".bashrc",
    ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv", "AGENTS.md",
)  # fmt: skip
_NAMES = frozenset(name.lower() for name in (*PROTECTED_FOLDERS, *PROTECTED_FILES, *RULE_FILES))
_HELD = frozenset(name.lower() for name in HELD)
_MOST_OPEN = 1000


class Guards(Struct, frozen=True):
    """`writable` are git directories to open (the workspace's own lies in it already and is pinned, so that it cannot
    be renamed away); `fixed` exist and must not change; `folders` and `pointers` are absent and must stay so. Of
    a `home` folder in the workspace only what is `open` may change."""

    writable: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    home: str = ""
    open: tuple[str, ...] = ()


def find_guards(site: Site) -> Guards:
    """The guards of a workspace that a command may write. Reads its top level and its git directories alone."""
    root = site.workspace
    names = sorted(entry.name for entry in os.scandir(root))
    free = {name for name in names if name.lower() in _HELD and _vacant(os.path.join(root, name))}
    present = {name.lower() for name in names if name.lower() in _HELD and name not in free}
    taken = {name for name in free.intersection(HELD) if not os.path.islink(os.path.join(root, name))}
    paths = [os.path.join(root, name) for name in names if name.lower() in _NAMES and name not in taken]
    fixed = [real for path in paths for real in _fixed(root, path)]
    folders = [os.path.join(root, name) for name in HELD if name.lower() not in present and root != site.home]
    dot_git = os.path.join(root, ".git")
    if os.path.isfile(dot_git):
        fixed.append(dot_git)
    home, opened = _home(site)
    git = _git(site.git)
    if site.state and beneath(site.state, root) and os.path.isdir(site.state):
        fixed.append(site.state)
    return Guards(
        writable=git.writable,
        fixed=tuple(dict.fromkeys((*fixed, *git.fixed))),
        folders=tuple(dict.fromkeys((*folders, *git.folders))),
        pointers=git.pointers,
        home=home,
        open=opened,
    )


def beside_guards(confinement: Confinement, site: Site) -> list[Guards]:
    """The guards of the folders beside the workspace that a command may write."""
    return [
        find_guards(
            Site(
                folder,
                folder,
                site.temp,
                state=site.state,
                git=(GitPlace(os.path.join(folder, ".git")),) if os.path.isdir(os.path.join(folder, ".git")) else (),
            )
        )
        for folder in confinement.folders
        if os.path.isdir(folder)
    ]


def _fixed(root: str, path: str) -> list[str]:
    """The path, or for a link what it leads to in the workspace."""
    real = os.path.realpath(path)
    return [real] if beneath(real, root) and real != root and os.path.exists(real) else []


def _vacant(path: str) -> bool:
    """Whether nothing stands there, or an empty folder: another command of ours may just have put it there."""
    try:
        return not os.listdir(path)
    except NotADirectoryError:
        return False
    except OSError:
        return not os.path.lexists(path)


def _git(places: tuple[GitPlace, ...]) -> Guards:
    fixed: list[str] = []
    folders: list[str] = []
    pointers: list[str] = []
    pinned: list[str] = []
    for place in places:
        below = [os.path.join(place.path, name) for name in (*GIT_FILES, *GIT_FOLDERS)]
        fixed += [path for path in below if os.path.exists(path)]
        if not place.linked:
            absent = [os.path.join(place.path, name) for name in GIT_FOLDERS]
            folders += [path for path in absent if _vacant(path)]
            pointers.append(os.path.join(place.path, "commondir"))
        modules = os.path.join(place.path, "modules")
        pinned += (place.path, modules) if os.path.isdir(modules) else (place.path,)
    return Guards(tuple(pinned), tuple(fixed), tuple(folders), tuple(pointers))


def _home(site: Site) -> tuple[str, tuple[str, ...]]:
    """A home folder in the workspace, in which nothing new can be made and nothing changes that programs act on by
    themselves; and what else stands in it, which is open."""
    if not site.home or not beneath(site.home, site.workspace):
        return "", ()
    rows = [entry for entry in os.scandir(site.home) if not entry.is_symlink() and not entry.name.startswith(".")]
    return site.home, tuple(entry.path for entry in rows if entry.name not in HOME_FOLDERS)[:_MOST_OPEN]


# Where it is looked for: never on PATH, which a project may have put its own folder on.
PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap")
# Of /run, whose services listen there, this much is seen: programs of some systems, and names for the network.
_RUN = ("/run/current-system", "/run/wrappers", "/run/opengl-driver", "/run/systemd/resolve", "/run/resolvconf",
        "/run/NetworkManager/resolv.conf", "/run/nscd")  # fmt: skip
# Below the home folder: what gives access elsewhere. Seen only by commands that may have the network.
_CREDENTIALS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".netrc",
                ".git-credentials", ".npmrc", ".pypirc")  # fmt: skip
_MOST_SOCKETS = 64
TEMPORARY = ("/tmp", "/var/tmp")


def bubblewrap(program: str, argv: Sequence[str], confinement: Confinement, site: Site) -> SandboxPlan:
    """The plan for one command. `site.temp` becomes /tmp. Reads what the guards and the machine's sockets need."""
    if confinement.isolated:
        args = [program, *_namespaces(confinement, site), *_isolated(confinement), "--seccomp", "{filter}", "--", *argv]
        return SandboxPlan(tuple(args), {}, build_filter(ISOLATION), inits=1)
    guards = find_guards(site) if confinement.writes else Guards()
    beside = beside_guards(confinement, site)
    fixed = (*guards.fixed, *(path for one in beside for path in one.fixed))
    vacancies = (*guards.folders, *(path for one in beside for path in one.folders))
    pointers = (*guards.pointers, *(path for one in beside for path in one.pointers))
    args = [program, *_namespaces(confinement, site), *_machine(site), *_toolchains(confinement, site)]
    own, absent = _own(confinement, site)
    args += _writable(confinement, site, guards)
    args += (word for one in beside for path in one.writable for word in ("--bind", path, path))
    args += own
    for path in dict.fromkeys((*fixed, *site.arms, *vacancies, *pointers)):
        args += ("--ro-bind", path, path)
    args += _hidden(confinement, site)
    sealed = ("--remount-ro", site.home) if confinement.home is not None else ()
    args += ("{masks}", *sealed, "--seccomp", "{filter}", "--chdir", site.cwd, "--", *argv)
    return SandboxPlan(
        argv=scoped(args) if confinement.network else tuple(args),
        env={"TMPDIR": "/tmp", "TMP": "/tmp", "TEMP": "/tmp", **private_caches(confinement.caches, "/tmp/.cache")},
        filter=build_filter(SeccompFilter(network=confinement.network)),
        masks=tuple(_sockets(site)),
        folders=(*vacancies, *absent),
        pointers=pointers,
        inits=1,
        held=(*fixed, *pointers),
    )


def _isolated(confinement: Confinement) -> Iterator[str]:
    """An empty machine with what is seen laid into it, where nothing can be written."""
    for path in dict.fromkeys(confinement.seen):
        real = os.path.realpath(path)
        linked = os.path.islink(path) and real in confinement.seen
        yield from ("--symlink", os.readlink(path), path) if linked else ("--ro-bind", real, path)
    for path in NULL_DEVICES:
        yield from ("--dev-bind", path, path)
    yield from ("--remount-ro", "/", "--chdir", "/")


def probe_command(program: str) -> tuple[str, ...]:
    """A command that succeeds where the namespaces and mounts of every plan are to be had."""
    site = Site("/", "/", "/")
    return (program, *_namespaces(Confinement(), site), *_view(), "--", "/bin/true")


def _namespaces(confinement: Confinement, site: Site) -> Iterator[str]:
    """As root of a workspace of somebody else, the rights over files stay those of root; nothing else does."""
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL")
    if site.foreign:
        yield from ("--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_FOWNER")
    else:
        yield "--unshare-user"
    if not confinement.network:
        yield "--unshare-net"
    if not site.lasting:
        yield "--die-with-parent"


def _view() -> tuple[str, ...]:
    """/proc read-only: as root, the kernel's settings in it could be written from any user namespace."""
    return ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")


def _machine(site: Site) -> Iterator[str]:
    yield from _view()
    for place in ("/run", "/var/run"):
        if os.path.isdir(place) and not os.path.islink(place):
            yield from ("--tmpfs", place)
    for place in _RUN:
        if os.path.exists(place):
            yield from ("--ro-bind", place, place)
    for place in TEMPORARY:
        if os.path.isdir(place) and not os.path.islink(place) and not beneath(place, site.workspace):
            yield from ("--bind", site.temp, place)


def _toolchains(confinement: Confinement, site: Site) -> Iterator[str]:
    """An empty home, and what is seen of it in its place; what is bound later stands in it as well."""
    if confinement.home is not None:
        yield from ("--tmpfs", site.home)
        for path in confinement.home:
            yield from ("--ro-bind", os.path.realpath(path), path)


def _covered(path: str, *more: str) -> bool:
    """Whether a private folder lies over this place, so that it must be bound to be seen."""
    return any(beneath(path, place) for place in (*TEMPORARY, "/run", "/var/run", *more))


def _writable(confinement: Confinement, site: Site, guards: Guards) -> Iterator[str]:
    places = (site.workspace, *(place.path for place in site.git))
    covers = () if confinement.home is None else (site.home,)
    for path in confinement.seen:
        if _covered(path, *covers) and os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    if not confinement.writes:
        for path in places:
            if _covered(path, *covers):
                yield from ("--ro-bind", path, path)
    else:
        yield from ("--bind", site.workspace, site.workspace)
        if guards.home:
            yield from ("--ro-bind", guards.home, guards.home)
        for path in dict.fromkeys((*guards.open, *places[1:], *guards.writable)):
            yield from ("--bind", path, path)
    for path in confinement.folders:
        if os.path.isdir(path):
            yield from ("--bind", path, path)
    for path in cache_folders(confinement.caches, site.home, os.environ):
        yield from ("--bind", path, path)


def _own(confinement: Confinement, site: Site) -> tuple[list[str], tuple[str, ...]]:
    """The words that keep what the harness runs from, where it lies in a place that may be written, with the folders on
    the way pinned, so that none can be renamed away; and which of it is absent and must stay so."""
    places = (site.workspace, *(place.path for place in site.git)) if confinement.writes else ()
    opened = (*places, *confinement.folders, *cache_folders(confinement.caches, site.home, os.environ))
    kept = [path for path in site.own if any(beneath(path, place) for place in opened)]
    above = {one for path in kept for one in folders_above(path)} - set(opened)
    pins = sorted(one for one in above if any(beneath(one, place) for place in opened))
    rows = [*(("--bind", one) for one in pins), *(("--ro-bind", path) for path in kept)]
    return [word for row in rows for word in (*row, row[1])], tuple(path for path in kept if _vacant(path))


def _hidden(confinement: Confinement, site: Site) -> Iterator[str]:
    """Secrets that lie in files."""
    paths = [os.path.join(site.state, "secrets")] if site.state else []
    if not confinement.network and site.home:
        paths += [os.path.join(site.home, name) for name in _CREDENTIALS]
    for path in (*paths, *confinement.hidden):
        if _covered(path) and not beneath(path, site.workspace):
            continue
        if os.path.isdir(path):
            yield from ("--tmpfs", os.path.realpath(path))
        elif os.path.exists(path):
            yield from ("--ro-bind", "/dev/null", os.path.realpath(path))


def _sockets(site: Site) -> list[str]:
    """The named sockets by which services of the machine take orders: those of this network namespace that lie outside
    the workspace, that no private folder covers, that can be reached from inside, and that are older than a second:
    newer ones come and go. At most 64."""
    try:
        with open("/proc/net/unix", "rb") as table:
            lines = table.read(1 << 20).splitlines()
    except OSError:
        return []
    paths = {os.fsdecode(fields[7]) for line in lines if b" /" in line and len(fields := line.split(None, 7)) == 8}
    dotted = f"{site.home}/." if beneath(site.home, site.workspace) else "\0"
    outside = {path for path in paths if path.startswith(dotted) or not beneath(path, site.workspace)}
    seen = [path for path in sorted(outside) if not _covered(path)]
    lasting = (path for path in seen if os.path.realpath(path) == path and _lasting(path))
    return [path for path in lasting if site.foreign or _open_way(path)][:_MOST_SOCKETS]


def _open_way(path: str) -> bool:
    """Whether the folders above a place let its user through: root has no right over those of others in a namespace of
    its own, where nothing can be laid over what lies in them, or connect to it."""
    try:
        ways = [os.stat(folder) for folder in folders_above(path)]
    except OSError:
        return False
    groups = {os.getegid(), *os.getgroups()}
    return all(
        way.st_mode & (0o100 if way.st_uid == os.geteuid() else 0o010 if way.st_gid in groups else 0o001)
        for way in ways
    )


def _lasting(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(status.st_mode) and status.st_mtime < time.time() - 1.0
