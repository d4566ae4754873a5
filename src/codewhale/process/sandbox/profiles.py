"""The profiles, what may be allowed beyond them, and the plan that a mechanism makes of both; and the caches of package
managers. A cache that commands can write leads from one project into another, so each family's is opened by name;
without that its variable leads into the private folder for temporary files, and work begins cold instead of failing."""

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct


class Family(Struct, frozen=True):
    """A family's caches below the home folder, and the variables that name them: variable -> folder below a cache
    root of ours. `places` are what the variables stand for when they are not set."""

    places: tuple[str, ...]
    variables: Mapping[str, str] = {}


FAMILIES: Mapping[str, Family] = {
    "npm": Family((".npm", ".cache/node", ".cache/node-gyp"), {"npm_config_cache": "npm", "NPM_CONFIG_CACHE": "npm"}),
    "yarn": Family((".cache/yarn", ".yarn/berry"), {"YARN_CACHE_FOLDER": "yarn"}),
    "pnpm": Family((".local/share/pnpm", ".cache/pnpm")),
    "bun": Family((".bun/install/cache",), {"BUN_INSTALL_CACHE_DIR": "bun"}),
    "deno": Family((".cache/deno",)),
    "pip": Family((".cache/pip",), {"PIP_CACHE_DIR": "pip"}),
    "uv": Family((".cache/uv", ".local/share/uv"), {"UV_CACHE_DIR": "uv"}),
    "poetry": Family((".cache/pypoetry",), {"POETRY_CACHE_DIR": "poetry"}),
    "cargo": Family((".cargo/registry", ".cargo/git")),
    "go": Family(("go/pkg/mod", ".cache/go-build"), {"GOCACHE": "go-build"}),
    "maven": Family((".m2/repository",)),
    "gradle": Family((".gradle",)),
    "ruby": Family((".gem", ".bundle/cache", ".local/share/gem")),
    "composer": Family((".cache/composer",), {"COMPOSER_CACHE_DIR": "composer"}),
    "nuget": Family((".nuget/packages", ".local/share/NuGet")),
    "ccache": Family((".cache/ccache", ".ccache"), {"CCACHE_DIR": "ccache"}),
}


def cache_folders(families: Iterable[str], home: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The existing cache folders of these families, real paths."""
    named: list[str] = []
    for name in families:
        family = FAMILIES[name]
        named += [os.path.join(home, place) for place in family.places if home]
        named += [environ[variable] for variable in family.variables if os.path.isabs(environ.get(variable, ""))]
    return tuple(dict.fromkeys(os.path.realpath(path) for path in named if os.path.isdir(path)))


@functools.lru_cache(maxsize=64)
def private_caches(opened: tuple[str, ...], root: str) -> Mapping[str, str]:
    """The variables that lead every family but the opened ones to a cache below `root`."""
    closed = [family for name, family in FAMILIES.items() if name not in set(opened)]
    return {variable: os.path.join(root, folder) for family in closed for variable, folder in family.variables.items()}


NONE, READ_ONLY, WORKSPACE_WRITE = PROFILES = ("none", "read-only", "workspace-write")
# For a program of the harness that runs a model's code: it reads our interpreter and what is allowed, and no more.
ISOLATED = "isolated"
NETWORK, CACHE, WRITE, READ = "network", "cache:", "write:", "read:"
# Narrower than the profile: a place that cannot be seen, and that nobody offers the network.
HIDE, OFFLINE, TOOLCHAINS_ALONE = "hide:", "offline", "home:toolchains"


class Confinement(Struct, frozen=True):
    """A profile with its allowances: whether the workspace and the network are open, which families' package caches
    are the real ones, and which folders beside the workspace may be written, or must be seen, and which places must not
    be (absolute). `home` is all that is seen of the home, None where that is everything. `isolated`: of the whole
    machine `seen` alone is there, nothing is written and no process is started."""

    writes: bool = False
    network: bool = False
    caches: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    home: tuple[str, ...] | None = None
    isolated: bool = False


class GitPlace(Struct, frozen=True):
    """A git directory that a command in the workspace works on, `linked` where it is that of a linked worktree."""

    path: str
    linked: bool = False


class Site(Struct, frozen=True):
    """Where a command runs. `workspace`, `cwd` and `temp` (a private folder for temporary files) are absolute and
    real; `home` is the person's home and `state` the harness's own folder, "" where there is none. `git` are the
    directories of the workspace's repository. `foreign`: the workspace is another user's and this process is root.
    `lasting`: what the command leaves running may outlive it. `arms` are files of further git directories that must
    stay as they are, `own` places that the harness runs from, wherever they lie."""

    workspace: str
    cwd: str
    temp: str
    home: str = ""
    state: str = ""
    git: tuple[GitPlace, ...] = ()
    foreign: bool = False
    lasting: bool = True
    arms: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


class SandboxPlan(Struct, frozen=True):
    """A command as it must be started to be held. `filter` is a seccomp program whose descriptor number replaces the
    word `{filter}` of argv; in the place of `{masks}` stand the words that lay /dev/null over each of `masks` that is
    still there at that moment; `folders` and `pointers` are names that must be taken while it runs, so that nothing can
    be put there (empty folders, and git's pointer to itself). `inits`: processes of the mechanism itself that stay as
    long as anything of the command does. `broker` are the
    launcher's words for what makes names for it. `held` are places that it cannot change."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    filter: bytes = b""
    masks: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    inits: int = 0
    broker: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


def parse_profile(profile: str, allowances: Sequence[str] = ()) -> Confinement:
    """The confinement that a profile's name and its allowances stand for: "network", "cache:FAMILY", "write:FOLDER",
    "read:FOLDER" for one that the private /tmp would cover, "hide:PATH" for what must not be seen, "offline" where the
    network is not to be had at all, "home:toolchains" where of the home only toolchains are seen; paths are
    absolute. "isolated" knows "read:PATH" alone. Raises ValueError, with what there is, for a name that is not
    known."""
    if profile not in (READ_ONLY, WORKSPACE_WRITE, ISOLATED):
        raise ValueError(f"unknown sandbox profile {profile!r}; it is one of {', '.join(PROFILES)}")
    wider = [allowance for allowance in allowances if profile == ISOLATED and not allowance.startswith(READ)]
    if wider:
        raise ValueError(f"the sandbox profile {ISOLATED} cannot be given {wider[0]!r}; it is one of {READ}/path")
    caches, folders, seen, hidden, network = [], [], [], [], False
    for allowance in allowances:
        if allowance == NETWORK:
            network = True
        elif allowance.startswith(CACHE) and allowance[len(CACHE) :] in FAMILIES:
            caches.append(allowance[len(CACHE) :])
        elif allowance.startswith(WRITE) and os.path.isabs(allowance[len(WRITE) :]):
            folders.append(os.path.realpath(allowance[len(WRITE) :]))
        elif allowance.startswith(READ) and os.path.isabs(allowance[len(READ) :]):
            seen.append(os.path.realpath(allowance[len(READ) :]))
        elif allowance.startswith(HIDE) and os.path.isabs(allowance[len(HIDE) :]):
            hidden.append(os.path.realpath(allowance[len(HIDE) :]))
        elif allowance not in (OFFLINE, TOOLCHAINS_ALONE):
            kinds = f"{NETWORK}, {WRITE}/folder, {READ}/folder, {HIDE}/path, {OFFLINE}, {TOOLCHAINS_ALONE}"
            known = f"{kinds}, {CACHE}FAMILY with one of {', '.join(FAMILIES)}"
            raise ValueError(f"unknown sandbox allowance {allowance!r}; it is one of {known}")
    network = network and OFFLINE not in allowances
    home = () if TOOLCHAINS_ALONE in allowances else None
    return Confinement(
        writes=profile == WORKSPACE_WRITE,
        network=network,
        caches=tuple(caches),
        folders=tuple(folders),
        seen=tuple(seen),
        hidden=tuple(hidden),
        home=home,
        isolated=profile == ISOLATED,
    )


def beneath(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both normal and absolute."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def folders_above(path: str) -> Iterator[str]:
    """The folders that an absolute path lies in, the nearest first."""
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above
