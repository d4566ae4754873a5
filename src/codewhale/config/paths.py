"""Where configuration lives. Separate because start-up needs it before anything is read."""

import os
import stat
from collections.abc import Mapping

from codewhale.protocol.errors import ConfigError

CONFIG_NAME = "config.toml"
PROJECT_PATH = os.path.join(".codewhale", CONFIG_NAME)


def home_dir(environ: Mapping[str, str]) -> str:
    """The absolute state directory: CODEWHALE_HOME, else ~/.codewhale. It need not exist. Raises ConfigError
    when neither can be told."""
    named = environ.get("CODEWHALE_HOME", "")
    if "\0" in named:
        raise ConfigError("CODEWHALE_HOME contains a NUL byte; set it to a directory or unset it")
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


def refuse_unusable(home: str) -> None:
    """Raises ConfigError when there is something at the state directory's path that cannot be one: no directory, or
    another user's, for what that says may be anyone's wish."""
    remedy = "set CODEWHALE_HOME to a folder of your own"
    try:
        found = os.stat(home)
    except NotADirectoryError as error:
        raise ConfigError(f"{home} cannot be the state directory: a part of its path is a file; {remedy}") from error
    except OSError:
        return
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"{home} cannot be the state directory: it is not a directory; {remedy}")
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"{home} belongs to user {found.st_uid}, not to you ({os.geteuid()}), so it is not used; {remedy}"
        )
