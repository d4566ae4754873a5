"""Whether a skill, or a place of skills, is enabled: the state of each that a person switched off or on again is stored
in `skills_state.toml` in the harness's own folder."""

import fcntl
import os
from typing import Any, Literal

from msgspec import Struct

from codewhale.lib.files import atomic_write, private_dir
from codewhale.lib.text import one_line
from codewhale.lib.toml import parse_toml
from codewhale.permissions.markdown_files import read_markdown
from codewhale.protocol.errors import ConfigError
from codewhale.skills.model import Skill

_MOST = 1 << 20
Key = Literal["disabled", "places_off"]


class Off(Struct, frozen=True):
    """What is off: names or full names of skills, and places. `problem` is why the file cannot be read, and all is on
    ("" where it can)."""

    disabled: tuple[str, ...] = ()
    places_off: tuple[str, ...] = ()
    problem: str = ""

    def covers(self, skill: Skill, place: str) -> bool:
        return skill.name in self.disabled or skill.full_name in self.disabled or place in self.places_off


class Switches:
    def __init__(self, home: str) -> None:
        self._home, self.path = home, os.path.join(home, "skills_state.toml")

    def read(self) -> Off:
        if not os.path.lexists(self.path):
            return Off()
        data = read_markdown(self.path, _MOST)
        try:
            if data is None:
                raise ValueError(f"must be a regular file of at most {_MOST:,} bytes")
            tree = parse_toml(data)
            return Off(_names(tree, "disabled"), _names(tree, "places_off"))
        except ValueError as error:
            return Off(
                problem=f"{self.path}: {one_line(str(error))}; all skills are on until it is repaired or removed"
            )

    def change(self, key: Key, name: str, *, off: bool) -> None:
        """Switch off or on. Raises ConfigError, and then nothing has changed."""
        import tomlkit

        try:
            lock = os.open(private_dir(self._home), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigError(f"{self._home}: cannot be used: {error.strerror or error}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            now = self.read()
            if now.problem:
                raise ConfigError(now.problem)
            others = [one for one in getattr(now, key) if one != name]
            document = tomlkit.parse((read_markdown(self.path, _MOST) or b"").decode("utf-8-sig"))
            document[key] = sorted([*others, name] if off else others)
            atomic_write(self.path, document.as_string().encode(), 0o600)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        finally:
            os.close(lock)


def _names(tree: dict[str, Any], key: Key) -> tuple[str, ...]:
    names = tree.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{key} must be a list of texts")
    return tuple(names)
