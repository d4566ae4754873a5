"""Where package managers and compilers keep what they fetched and built, by family.

A cache that commands can write is a way from one project into another, so each family's is opened only by name; without
that its variable leads into the private folder for temporary files, and work begins cold instead of failing.
"""

import functools
import os
from collections.abc import Iterable, Mapping

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
