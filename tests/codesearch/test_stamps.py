"""The stamps of many files, kept in groups."""

import os
import random
from pathlib import Path

from codewhale.codesearch.looks import AT_ONCE, Look, by_lstat, looker
from codewhale.codesearch.stamps import Stamp, Stamps


def test_they_are_a_mapping_that_keeps_up_with_a_plain_one() -> None:
    some = random.Random(4)
    plain = {f"{number:04}": Stamp(number, -number * 10**9 - 1, number * 7) for number in range(2 * AT_ONCE + 9)}
    stamps = Stamps([(path, at.size, at.mtime_ns, at.ctime_ns) for path, at in plain.items()])
    for number in range(2000):
        path = some.choice(list(plain)) if some.random() < 0.6 and plain else f"new{some.randrange(99)}"
        if path in plain and some.random() < 0.6:
            del plain[path]
            del stamps[path]
        else:
            plain[path] = stamps[path] = Stamp(number, some.randrange(1 << 60), some.randrange(1 << 60))
    assert stamps == plain and stamps.keys() == plain.keys() and len(stamps) == len(plain)
    assert all(path in stamps and stamps[path] == at for path, at in plain.items()) and "never" not in stamps


def changed(stamps: Stamps, folder: int, look: Look) -> list[str]:
    return [path for group in stamps.groups for path in group.changed(look(folder, group.names))]


def test_groups_stay_true_of_what_is_put_and_dropped(tmp_path: Path) -> None:
    stamps = Stamps()
    for number in range(AT_ONCE + 30):
        path = tmp_path / f"{number:03}"
        path.write_bytes(b"x" * number)
        at = path.lstat()
        stamps[path.name] = Stamp(at.st_size, at.st_mtime_ns, at.st_ctime_ns)
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        for look in (looker(), by_lstat):
            assert changed(stamps, fd, look) == []
        for name in ("000", "070", f"{AT_ONCE:03}"):
            (tmp_path / name).unlink()
        assert changed(stamps, fd, looker()) == ["000", "070", f"{AT_ONCE:03}"]
        del stamps["070"]
        assert changed(stamps, fd, looker()) == changed(stamps, fd, by_lstat) == [f"{AT_ONCE:03}", "000"]
    finally:
        os.close(fd)
