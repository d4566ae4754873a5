"""The environment a child process gets: an allow-list, so that no credential of the person's leaks into it."""

import functools
import os
import re
import sys
from collections.abc import Mapping

from codewhale.process.command import Launch
from codewhale.process.sandbox.trusted import own_env

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
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_PR_SET_DUMPABLE = 4  # prctl(2)
_SECRET_VALUE = re.compile(r"://[^/\s@]*@")
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
    into the workspace."""
    source = own_env(os.environ, launch.workspace or launch.cwd) if launch.own else None
    return child_env(launch.env, source)


@functools.lru_cache(maxsize=512)
def _may_pass(name: str, value: str) -> bool:
    if name not in _ALLOWED and not name.startswith("LC_"):
        return False
    return not _SECRET_NAME.search(name) and not _SECRET_VALUE.search(value)


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
