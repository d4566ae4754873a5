"""Where configuration lives. Separate because start-up needs it before anything is read."""

import os
from collections.abc import Mapping

from codewhale.protocol.errors import ConfigError

CONFIG_NAME = "config.toml"
PROJECT_PATH = os.path.join(".codewhale", CONFIG_NAME)


def home_dir(environ: Mapping[str, str]) -> str:
    """The absolute state directory: CODEWHALE_HOME, else ~/.codewhale. It need not exist. Raises ConfigError
    when neither can be told."""
    named = environ.get("CODEWHALE_HOME", "")
    if "\0" in named:
        raise ConfigError("CODEWHALE_HOME holds a NUL byte; set it to a directory or unset it")
    base = environ.get("HOME", "") or os.path.expanduser("~")
    if named.startswith("~/") or named == "~":
        named = base + named[1:]
    if named:
        return os.path.abspath(named)
    if not os.path.isabs(base):
        raise ConfigError("no home directory is known; set HOME or CODEWHALE_HOME to an absolute path")
    return os.path.join(base, ".codewhale")


def config_file(home: str) -> str:
    """The person's own configuration file."""
    return os.path.join(home, CONFIG_NAME)


def project_file(workspace: str) -> str:
    """The configuration file a project may carry."""
    return os.path.join(workspace, PROJECT_PATH)


def refuse_foreign(home: str) -> None:
    """Raises ConfigError when the state directory exists and belongs to another user: what it says may be
    anyone's wish."""
    try:
        owner = os.stat(home).st_uid
    except OSError:
        return
    if owner != os.geteuid():
        raise ConfigError(
            f"{home} belongs to user {owner}, not to you ({os.geteuid()}), and is not used; set CODEWHALE_HOME to a "
            "folder of your own"
        )
