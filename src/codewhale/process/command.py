"""A command as it is ordered and as it ended, and the environment it gets: an allow-list, so that no credential of the
person's leaks into it."""

import functools
import os
import re
import sys
from collections.abc import Mapping

from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.process.programs import own_env
from codewhale.process.sandbox.profiles import ISOLATED


class Ceiling(Struct, frozen=True):
    """What a command's whole tree may take; 0 is unlimited. `memory` is resident bytes, `file_size` the largest
    file one process may write. Crossing the first two ends the tree."""

    processes: int = 0
    memory: int = 0
    file_size: int = 0


class SandboxProfile(Struct, frozen=True):
    """What a command may touch: the `profile` and `allowances` of a Launch."""

    profile: str
    allowances: tuple[str, ...] = ()


class Launch(Struct, frozen=True):
    """A command to run.

    `env` is added to the allow-listed environment. `stdin` is written and closed; empty, there is none at all, unless
    `keep_stdin` holds the pipe open. `seconds` bounds the command itself, not what it leaves behind. `merge` sends
    stderr into stdout; `tty` gives a pseudo-terminal, which merges them as well. `output_limit` bytes of each stream
    are kept. `attached` gives it the harness's own three streams instead, and with `foreground` it stays in the
    harness's session, in a process group of its own, so that it can be given the terminal. Unsupervised is for programs
    of the harness's own choice that start nothing lasting; `own` gives one an environment in which nothing leads into
    the workspace (see process.programs for where it is found). `declared` leaves of the person's environment what tells
    who and where they are, and nothing else.

    `profile` ("none", "read-only", "workspace-write", "isolated") with its `allowances` says what the sandbox lets it
    touch; there is none by itself, so that whoever starts something says how it is held. `workspace` is the root of
    what it works on ("" is `cwd`). In a sandbox /tmp is private to this run of the program, and a command that a signal
    ended has the exit code 128 and its number.
    """

    argv: tuple[str, ...]
    cwd: str
    profile: str
    env: dict[str, str] = {}
    stdin: bytes = b""
    keep_stdin: bool = False
    seconds: float | None = None
    allowances: tuple[str, ...] = ()
    workspace: str = ""
    tty: bool = False
    merge: bool = False
    attached: bool = False
    foreground: bool = False
    output_limit: int = 1_000_000
    supervised: bool = True
    own: bool = False
    declared: bool = False
    ceiling: Ceiling = Ceiling()


class Completed(Struct, frozen=True):
    """How a command ended.

    `exit_code` is negative for a signal and None when it is not known. `stdout_gap` is the offset in the kept bytes at
    which the middle was left out, -1 when all was kept. `leftovers` counts processes that outlived the command. `over`
    names the ceiling it crossed: "processes", "memory" or "". `confined` is the mechanism that held it: "bubblewrap",
    "landlock", "seatbelt" or "".
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    stdout_total: int
    stderr_total: int
    timed_out: bool
    killed: bool
    seconds: float
    leftovers: int
    stdout_gap: int = -1
    stderr_gap: int = -1
    over: str = ""
    confined: str = ""


_ALLOWED = frozenset(
    """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM COLORTERM NO_COLOR TZ TMPDIR TMP TEMP HOSTNAME CI
    XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION PYTHONPATH PYTHONDONTWRITEBYTECODE
    PYTHONPYCACHEPREFIX PIP_CACHE_DIR PIP_REQUIRE_VIRTUALENV UV_CACHE_DIR UV_PYTHON POETRY_HOME PIPX_HOME PDM_HOME
    CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS RUST_BACKTRACE RUST_LOG
    GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOPROXY GOTOOLCHAIN GOOS GOARCH CGO_ENABLED
    JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME ANDROID_HOME ANDROID_SDK_ROOT
    NODE_PATH NODE_ENV NVM_DIR NVM_BIN VOLTA_HOME FNM_DIR PNPM_HOME NPM_CONFIG_CACHE NPM_CONFIG_PREFIX COREPACK_HOME
    BUN_INSTALL DENO_DIR RBENV_ROOT GEM_HOME GEM_PATH BUNDLE_PATH DOTNET_ROOT SDKMAN_DIR OPAMROOT
    CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LIBRARY_PATH LD_LIBRARY_PATH CPATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
    SDKROOT MACOSX_DEPLOYMENT_TARGET HOMEBREW_PREFIX NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    """.split()
)
_PLACE = frozenset("PATH HOME USER LOGNAME SHELL LANG TERM TZ TMPDIR".split())
_SECRET_NAME = lazy(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_PR_SET_DUMPABLE = 4  # prctl(2)
_SECRET_VALUE = lazy(r"://[^/\s@]*@")
_FORCED = {
    "PYTHONIOENCODING": "utf-8",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}


def child_env(extra: Mapping[str, str] | None = None, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: the allowed names of `source` (this process's own by default), UTF-8 made sure of, no
    pager and no prompt, then `extra` as it is. A name or an address that carries a credential is never taken over."""
    own = os.environ if source is None else source
    env = {name: value for name, value in own.items() if _may_pass(name, value)}
    env.setdefault("PATH", os.defpath)
    env.setdefault("TERM", "dumb")
    if "utf" not in (env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or "").lower():
        for name in ("LC_ALL", "LC_CTYPE"):
            env.pop(name, None)
        env["LANG"] = "C.UTF-8"
    return {**env, **_FORCED, **(extra or {})}


def launch_env(launch: Launch) -> dict[str, str]:
    """The environment that a command was ordered with: for a program of the harness's own choice nothing of it leads
    into the workspace, and one that is isolated gets none of the person's."""
    if launch.profile == ISOLATED:
        return child_env(launch.env, {})
    if launch.declared:
        return child_env(launch.env, {name: value for name, value in os.environ.items() if name in _PLACE})
    source = own_env(os.environ, launch.workspace or launch.cwd) if launch.own else None
    return child_env(launch.env, source)


@functools.lru_cache(maxsize=512)
def _may_pass(name: str, value: str) -> bool:
    if name not in _ALLOWED and not name.startswith("LC_"):
        return False
    return not _SECRET_NAME().search(name) and not _SECRET_VALUE().search(value)


@functools.cache
def hide_own() -> None:
    """Let no other process of this user read this one's environment and memory (/proc/PID/environ holds the keys that
    it was started with). Once is enough; a program that is started is not affected, for it begins anew."""
    if sys.platform != "linux" or os.geteuid() == 0:  # Nothing is hidden from root.
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def home_inside(workspace: str) -> str:
    """Where the home folder lies below a workspace, "." for all of it, "" for outside."""
    inside = os.path.relpath(os.path.realpath(os.environ.get("HOME") or "/nonexistent"), os.path.realpath(workspace))
    return "" if inside.split("/")[0] == ".." or not os.path.isdir(os.path.join(workspace, inside)) else inside
