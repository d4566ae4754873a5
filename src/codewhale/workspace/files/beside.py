"""Places outside the workspace that a call may use, read and written like what lies in it: each through a root of its
own, under its real absolute path."""

import os
from collections.abc import Iterable

from codewhale.lib.beneath import Root
from codewhale.permissions.folders import granted, real_outside
from codewhale.permissions.shell.paths import secret_file
from codewhale.process.sandbox.profiles import beneath


class WiderRoot(Root):
    """A root and, under absolute names, places beside it: folders with all in them, and single files, which may still
    have to be made with the folders above them."""

    def __init__(self, path: str, places: tuple[str, ...]) -> None:
        super().__init__(path)
        self._places = places

    def relative(self, path: str) -> str:
        real = real_outside(path, self.path)
        return real if real and self._place(real) is not None else super().relative(path)

    def open(self, path: str, flags: int, mode: int = 0o666, *, links: bool = True) -> int:
        name = self.relative(path)
        place = self._place(name)
        if place is None:
            return super().open(path, flags, mode, links=links)
        return place.open(place.inside(name) or ".", flags, mode, links=links)

    def open_dir(self, path: str, create: bool = False, *, links: bool = True) -> int:
        name = self.relative(path)
        place = self._place(name)
        if place is None:
            return super().open_dir(path, create, links=links)
        return place.open_dir(place.inside(name) or ".", create, links=links)

    def resolve(self, path: str) -> str:
        name = self.relative(path)
        place = self._place(name)
        if place is None:
            return super().resolve(path)
        return os.path.normpath(os.path.join(place.path, place.resolve(place.inside(name) or ".")))

    def _place(self, name: str) -> Root | None:
        """The root that an absolute name is reached through, None for one that no place holds."""
        for place in self._places if name.startswith("/") else ():
            folder = place
            while not os.path.isdir(folder):
                folder = os.path.dirname(folder)
            # Of a single file, it alone and the folders on the way to it.
            if beneath(name, place) or (folder != place and beneath(name, folder) and beneath(place, name)):
                return Root(folder)
        return None


def without_secrets(files: Iterable[str]) -> list[str]:
    return [file for file in files if not secret_file(file)]


def walked(workspace: str, path: str | None, allowances: tuple[str, ...]) -> tuple[str, str | None]:
    """The folder to walk from for a path of a call, and the path from there: the workspace and the path itself, or for
    one outside a place that the call may use."""
    real = real_outside(path, workspace) if path else ""
    place = next((one for one in granted(allowances) if real and beneath(real, one)), "")
    if not place:
        return workspace, path
    folder = place if os.path.isdir(place) else os.path.dirname(place)
    return folder, os.path.relpath(real, folder)
