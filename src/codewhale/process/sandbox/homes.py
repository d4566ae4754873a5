"""What commands that run unasked see of the home: what toolchains need to run, build and test, and no more. No place
here is one where keys are kept: of a toolchain whose folder has its keys too, the parts beside them are named, and a
file of settings is shown where it holds none. Git's settings are not shown: it is given a copy of the harmless ones."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping

from codewhale.process.sandbox.gitfiles import read_small
from codewhale.process.sandbox.profiles import FAMILIES, beneath

# Below the home: programs and interpreters by family, then what they build from. Shown as it is, never to be changed.
TOOLCHAINS: Mapping[str, tuple[str, ...]] = {
    "programs": (".local/bin", ".local/lib", "bin", ".linuxbrew", ".nix-profile", ".nix-defexpr",
        ".local/state/nix", ".asdf", ".local/share/mise/installs", ".local/share/mise/shims", ".proto/bin",
        ".proto/tools", ".proto/shims"),
    "python": (".pyenv", ".local/share/uv/python", ".local/share/uv/tools", ".local/share/pipx/venvs",
        ".local/pipx/venvs", ".local/share/pypoetry", ".virtualenvs", ".local/share/virtualenvs", "miniconda3",
        "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda/pkgs", ".rye/py", ".rye/shims",
        ".cache/pre-commit"),
    "node": (".nvm", ".volta", ".fnm", ".local/share/fnm", ".nodenv", ".n", ".bun/bin", ".deno/bin", ".yarn/bin",
        ".npm-global/bin", ".npm-global/lib", ".cache/ms-playwright", ".cache/corepack"),
    "rust": (".cargo/bin", ".cargo/env", ".cargo/config.toml", ".rustup"),
    "go": ("go/bin", "go/pkg", ".go", ".goenv", ".gvm", "sdk"),
    "java": (".sdkman/candidates", ".jdks", ".jenv", ".gradle/caches", ".gradle/wrapper", ".m2/repository",
        ".m2/wrapper", ".ivy2/cache", ".sbt/boot", ".cache/coursier", ".konan"),
    "ruby": (".rbenv", ".rvm", ".gem/ruby", ".local/share/gem/ruby"),
    "other": (".dotnet/dotnet", ".dotnet/host", ".dotnet/packs", ".dotnet/sdk", ".dotnet/shared", ".dotnet/tools",
        ".nuget/packages", ".ghcup", ".stack/pantry", ".stack/programs", ".stack/snapshots",
        ".cabal/bin", ".cabal/store", ".cabal/packages",
        ".opam", ".elan", ".juliaup", ".julia/packages", ".julia/artifacts", ".julia/compiled", ".mix",
        ".hex/packages", ".pub-cache/hosted", ".pub-cache/bin", "flutter", ".swiftly", ".zvm",
        ".config/composer/vendor"),
    "git": (".config/git/ignore", ".config/git/attributes"),
}  # fmt: skip
# Caches whose folder holds keys as well; what may be seen of them stands above.
_WITH_KEYS = frozenset((".gradle", ".gem", ".local/share/gem", ".local/share/uv", ".npm"))
# Files of settings at the top of a toolchain's folder: addresses in them have keys of private registries.
_SETTINGS = frozenset((".condarc", "condarc", "pip.conf", ".npmrc", ".netrc", ".pypirc", ".env"))
_CARGO = ".cargo/config.toml"
# Of cargo's settings, what says how to build; of others a value may be a key.
_BUILDING = frozenset(("build", "target", "profile", "alias", "net", "source", "term", "unstable"))
_ADDRESS_WITH_KEY = re.compile(rb"://[^/\s\"']*@")
_NAMED = ("VIRTUAL_ENV", "PYENV_ROOT", "CONDA_PREFIX", "NVM_DIR", "RUSTUP_HOME", "GOROOT", "JAVA_HOME", "DOTNET_ROOT")


def can_narrow(workspace: str) -> bool:
    """Whether the home can be hidden from commands of a workspace: not where it lies in it, or is the whole machine."""
    home = os.path.realpath(os.environ.get("HOME") or "/nonexistent")
    return home != "/" and not (os.path.isdir(home) and beneath(home, os.path.realpath(workspace)))


def places(environ: Mapping[str, str], home: str) -> Iterator[str]:
    """All that is named, whether it is there or not, absolute and below the home."""
    caches = (place for family in FAMILIES.values() for place in family.places if place not in _WITH_KEYS)
    for place in (*(place for row in TOOLCHAINS.values() for place in row), *caches, ".npm/_cacache"):
        yield os.path.join(home, place)
    named = [environ.get(name, "") for name in _NAMED]
    programs = [os.path.realpath(folder) for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    yield from (*programs, *(os.path.realpath(folder) for folder in named if folder))
    for above in map(os.path.dirname, programs):
        if above not in (home, os.path.join(home, ".local")):
            yield from (os.path.join(above, name) for name in ("lib", "libexec", "pyvenv.cfg"))


def shown(environ: Mapping[str, str], home: str) -> tuple[str, ...]:
    """What is there of it, none within another; nothing that is, or leads to, the home itself or a folder above."""
    kept: list[str] = []
    for place in sorted(set(places(environ, home))):
        inside = beneath(place, home) and place != home and os.path.exists(place)
        if inside and not beneath(home, os.path.realpath(place)) and not any(beneath(place, one) for one in kept):
            kept.append(place)
    keyless = (place for place in kept if place != os.path.join(home, _CARGO) or _only_builds(place))
    return tuple(part for place in keyless for part in _without_settings(place))


def _without_settings(place: str) -> Iterator[str]:
    names = os.listdir(place) if os.path.isdir(place) and os.access(place, os.R_OK) else []
    kept = sorted(os.path.join(place, name) for name in names if name not in _SETTINGS)
    yield from (place,) if len(kept) == len(names) else kept


def _only_builds(path: str) -> bool:
    """Whether cargo's settings say how to build and nothing else."""
    data = read_small(path) or b"="
    try:
        tables = tomllib.loads(data.decode())
    except ValueError:
        return False
    return _BUILDING.issuperset(tables) and not _ADDRESS_WITH_KEY.search(data)
