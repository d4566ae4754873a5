"""The list of every text that people read: each kind of source is in it, each text with its file and line."""

import sys
from pathlib import Path

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import texts

SOURCES = {
    "display/words/en/panel.json": '{\n  "one": "A label",\n  "many": {"one": "one left", "other": "{n} left"}\n}\n',
    "display/words/zh-Hans/panel.json": '{\n  "many": {"other": "{n} \u5269\u4f59"},\n  "only": "\u53ea\u6709"\n}\n',
    "permissions/shell/harm.toml": '[[harm]]\non = "x"\nwhy = "it opens the \\"door\\""\n',
    "cli/door.py": (
        '"""What this module is."""\nimport argparse\n\n\ndef door(name):\n    """What this function is."""\n'
        '    argparse.ArgumentParser().add_argument("--wide", help="open it wide")\n'
        '    raise ValueError(f"the door {name} is shut; "\n                     "open it first")\n'
    ),
}


def written(folder: Path) -> Path:
    for name, text in SOURCES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def test_a_text_of_each_kind_of_source_is_listed_where_it_stands(tmp_path: Path) -> None:
    assert sorted(texts.listed(written(tmp_path))) == [
        ("cli/door.py:7", "open it wide"),
        ("cli/door.py:8", "the door {name} is shut; open it first"),
        ("display/words/en/panel.json:2", "one  A label"),
        ("display/words/en/panel.json:3", "many  one left / {n} left"),
        ("display/words/zh-Hans/panel.json:2", "many  {n} \u5269\u4f59"),
        ("display/words/zh-Hans/panel.json:3", "only  \u53ea\u6709"),
        ("permissions/shell/harm.toml:3", 'it opens the "door"'),
    ]


def test_each_text_of_the_program_has_its_file_and_line() -> None:
    listed = texts.listed(texts.SOURCE)
    kinds = {Path(place.rpartition(":")[0]).suffix for place, _ in listed}
    assert kinds == {".json", ".toml", ".py"} and len(listed) > 4000
    lines: dict[str, int] = {}
    for place, text in listed:
        name, _, number = place.rpartition(":")
        if name not in lines:
            lines[name] = len((texts.SOURCE / name).read_text("utf-8").splitlines())
        assert text.strip() and 1 <= int(number) <= lines[name], place
