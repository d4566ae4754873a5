import os
from pathlib import Path

from codewhale.lib.alone import has_others, make_alone


def test_a_file_with_a_second_name_gets_an_inode_of_its_own_and_keeps_all_else(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    place.mkdir(parents=True)
    (place / "one").write_text("text\n")
    (place / "one").chmod(0o640)
    os.utime(place / "one", (1, 2))
    (place / "alone").write_text("x")
    (place / "link").symlink_to("one")
    (tmp_path / "second").hardlink_to(place / "one")
    before, device = (place / "alone").stat().st_ino, tmp_path.stat().st_dev
    assert has_others(str(place / "one"), device)
    make_alone(str(tmp_path / "a"), device + 1)
    assert has_others(str(place / "one"), device)
    make_alone(str(tmp_path / "a"), device)
    (tmp_path / "second").write_text("changed")
    found = (place / "one").stat()
    assert ((place / "one").read_text(), found.st_mode & 0o777, found.st_mtime) == ("text\n", 0o640, 2)
    assert (place / "alone").stat().st_ino == before and (place / "link").is_symlink()
    assert sorted(os.listdir(place)) == ["alone", "link", "one"]
