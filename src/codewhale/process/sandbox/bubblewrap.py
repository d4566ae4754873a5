"""A command line of bubblewrap: the whole machine to look at, read-only; new namespaces for processes, network and
names; and over that the few places that are private or may be written."""

import os
import stat
import time
from collections.abc import Iterator, Sequence

from codewhale.process.sandbox.caches import cache_folders, private_caches
from codewhale.process.sandbox.guards import Guards, find_guards, vacant
from codewhale.process.sandbox.landlock import scoped
from codewhale.process.sandbox.profiles import Confinement, Plan, Site, beneath, folders_above
from codewhale.process.sandbox.seccomp import Filter, build_filter

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


def bubblewrap(program: str, argv: Sequence[str], confinement: Confinement, site: Site) -> Plan:
    """The plan for one command. `site.temp` becomes /tmp. Reads what the guards and the machine's sockets need."""
    guards = find_guards(site) if confinement.writes else Guards()
    args = [program, *_namespaces(confinement, site), *_machine(site)]
    own, absent = _own(confinement, site)
    args += (*_writable(confinement, site, guards), *own)
    for path in dict.fromkeys((*guards.fixed, *site.arms, *guards.folders, *guards.pointers)):
        args += ("--ro-bind", path, path)
    args += _hidden(confinement, site)
    args += ("{masks}", "--seccomp", "{filter}", "--chdir", site.cwd, "--", *argv)
    return Plan(
        argv=scoped(args) if confinement.network else tuple(args),
        env={"TMPDIR": "/tmp", "TMP": "/tmp", "TEMP": "/tmp", **private_caches(confinement.caches, "/tmp/.cache")},
        filter=build_filter(Filter(network=confinement.network)),
        masks=tuple(_sockets(site)),
        folders=(*guards.folders, *absent),
        pointers=guards.pointers,
        inits=1,
        held=(*guards.fixed, *guards.pointers),
    )


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


def _covered(path: str) -> bool:
    """Whether a private folder lies over this place, so that it must be bound to be seen."""
    return any(beneath(path, place) for place in (*TEMPORARY, "/run", "/var/run"))


def _writable(confinement: Confinement, site: Site, guards: Guards) -> Iterator[str]:
    places = (site.workspace, *(place.path for place in site.git))
    for path in confinement.seen:
        if _covered(path) and os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    if not confinement.writes:
        for path in places:
            if _covered(path):
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
    return [word for row in rows for word in (*row, row[1])], tuple(path for path in kept if vacant(path))


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
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_mtime < time.time() - 1.0
