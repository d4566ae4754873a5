"""Definitions, uses, calls and imports: what is certain, what shares the name alone, and that all of it is bounded."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from codewhale.codesearch.intelligence import RELATIONS, Intelligence, NoSuchFile, RelatedCode
from codewhale.codesearch.render import render_relations
from support.searchtree import index_of

FILES = {
    "app/keys.py": 'def resolve(name):\n    """How keys resolve."""\n    return lookup(name)\n\n\n'
    "def lookup(name):\n    return name.strip()\n\n\nclass Store:\n    def open(self):\n        return resolve(self)\n",
    "app/main.py": "from app.keys import resolve\n\n\ndef start():\n    key = resolve('x')\n    return key.strip()\n",
    "app/other.py": "def run(thing):\n    # resolve later\n    return thing.resolve()\n",
    "app/more.py": "import app.keys\n\n# to resolve it\nhandle = app.keys.resolve\n\n\n"
    "def use(store):\n    store.open()\n",
    "web/a.ts": "import { b } from './b'\nexport function go() { return b(1) }\n",
    "web/b.ts": "export function b(n: number) { return n }\n",
}


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Intelligence]:
    for path, text in FILES.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(text)
    reader = index_of(tmp_path)
    yield Intelligence(reader, str(tmp_path / "tree"))
    reader.close()


def rows(found: RelatedCode) -> list[tuple[str, int, bool]]:
    return [(spot.path, spot.line, spot.certain) for spot in found.spots]


def test_definitions(asked: Intelligence) -> None:
    (spot,) = asked.related("resolve", "definitions").spots
    assert (spot.path, spot.line, spot.end_line, spot.kind, spot.certain) == ("app/keys.py", 1, 3, "fn", True)
    assert spot.text == "def resolve(name):"
    (spot,) = asked.related("Store.open", "definitions").spots
    assert (spot.line, spot.name, spot.inside) == (11, "open", "Store")
    assert rows(asked.related("Store::open()", "definitions")) == [("app/keys.py", 11, True)]
    assert asked.related("nothing_of_this_name", "definitions").total == 0


def test_what_is_defined_and_has_none_says_what_to_ask(asked: Intelligence) -> None:
    found = asked.related("Store", "callers")
    assert found.total == 0 and found.hint == "It is defined (class) and has no callers by name: ask for references."
    told = msgspec.json.decode(render_relations(found, ("Store", "callers"), ())[0])
    assert (told["results"], told["hint"]) == ([], found.hint)
    assert "hint" not in msgspec.json.decode(
        render_relations(found, ("Store", "callers"), ("3 of 9 files are in.",))[0]
    )
    assert asked.related("Store", "references").hint.endswith("ask for definitions.")
    assert asked.related("resolve", "callers").hint == asked.related("unheard_of", "callers").hint == ""


def test_references_are_certain_where_the_definition_is_seen(asked: Intelligence) -> None:
    assert rows(asked.related("resolve", "references")) == [
        ("app/keys.py", 12, True),
        ("app/main.py", 1, True),
        ("app/main.py", 5, True),
        ("app/keys.py", 2, False),
        ("app/more.py", 3, False),
        ("app/more.py", 4, False),
        ("app/other.py", 2, False),
        ("app/other.py", 3, False),
    ]


def test_callers_name_the_function_around(asked: Intelligence) -> None:
    found = asked.related("resolve", "callers")
    assert rows(found) == [("app/keys.py", 12, True), ("app/main.py", 5, True), ("app/other.py", 3, False)]
    assert [spot.inside for spot in found.spots] == ["Store.open", "start", "run"]
    assert "name only" in found.spots[2].why and "app/keys.py" in found.spots[1].why
    assert rows(asked.related("Store.open", "callers")) == [("app/more.py", 8, False)]
    assert rows(asked.related("b", "callers")) == [("web/a.ts", 2, True)]


def test_calls_are_told_from_what_is_said_of_them(tmp_path: Path) -> None:
    files = {
        "core/shop.h": "int shop_open(int key);\nint shop_close(int key);\n",
        "core/shop.c": '#include "shop.h"\n\nint shop_open(int key)\n{\n  return key + 1;\n}\n\n'
        "int shop_close(int key)\n{\n  /* shop_open() came before */\n  int left = shop_open(key);\n"
        '  log("shop_open() was called", left);\n  return left;\n}\n',
        "lib.rs": "struct Basket { n: u8 }\n\nimpl Basket {\n    fn fill(&self) -> u8 {\n        self.n\n    }\n}\n",
        "adds.rs": "impl Clone for Basket {\n    fn clone(&self) -> Self {\n        Basket { n: 1 }\n    }\n}\n",
        "two.py": "class A:\n    def go(self):\n        return 1\n\n\n"
        "class B:\n    def go(self):\n        return A().go()\n",
    }
    for path, text in files.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(text)
    reader = index_of(tmp_path)
    asked = Intelligence(reader, str(tmp_path / "tree"))
    assert rows(asked.related("shop_open", "callers")) == [("core/shop.c", 11, True)]
    called = {spot.name: (spot.line, spot.why) for spot in asked.related("shop_close", "callees").spots}
    assert called["shop_open"] == (11, "defined in this file; core/shop.c:3")
    assert rows(asked.related("shop_open", "definitions")) == [("core/shop.c", 3, True), ("core/shop.h", 1, True)]
    kinds = [(spot.path, spot.kind) for spot in asked.related("Basket", "definitions").spots]
    assert kinds == [("lib.rs", "struct"), ("adds.rs", "impl"), ("lib.rs", "impl")]
    assert [spot.line for spot in asked.related("A.go", "callers").spots] == [8]
    reader.close()


def test_callees_say_where_they_are_defined(asked: Intelligence) -> None:
    found = asked.related("start", "callees").spots
    assert [(spot.name, spot.line, spot.certain) for spot in found] == [("resolve", 5, True), ("strip", 6, False)]
    assert "app/keys.py:1" in found[0].why and "outside" in found[1].why


def test_imports_and_importers(asked: Intelligence) -> None:
    (spot,) = asked.related("web/a.ts", "imports").spots
    assert (spot.line, spot.name, spot.text, spot.certain) == (1, "web/b.ts", "./b", True)
    assert rows(asked.related("./app/keys.py", "importers")) == [("app/main.py", 1, True), ("app/more.py", 1, True)]
    assert asked.related("web/a.ts", "importers").total == 0
    with pytest.raises(NoSuchFile) as missing:
        asked.related("src/keys.py", "importers")
    assert missing.value.near == ("app/keys.py",)
    with pytest.raises(NoSuchFile) as missing:
        asked.related("app/keys", "importers")
    assert missing.value.near == ("app/keys.py",)


def test_tests_come_after_what_they_test(tmp_path: Path) -> None:
    for path in ("a_tests/b.py", "b/c.py", "tests/d.py"):
        (tmp_path / "tree" / path).parent.mkdir(parents=True)
        (tmp_path / "tree" / path).write_text("from z import walrus\n\nwalrus()\n")
    (tmp_path / "tree" / "z.py").write_text("def walrus():\n    pass\n")
    reader = index_of(tmp_path)
    found = Intelligence(reader, str(tmp_path / "tree")).related("walrus", "callers")
    assert [spot.path for spot in found.spots] == ["b/c.py", "a_tests/b.py", "tests/d.py"]
    reader.close()


@pytest.mark.parametrize("name", ["", " ", "::", "a" * 500, "\udc80", "(", "\\", "x.y.z", "ü", "*"])
def test_odd_names_find_nothing_and_break_nothing(asked: Intelligence, name: str) -> None:
    for relation in RELATIONS[:4]:
        told, shown = render_relations(asked.related(name, relation), (name, relation), ())
        assert shown == 0 and msgspec.json.decode(told)["results"] == []


def test_answers_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    text = "def f():\n    pass\n\n\n" + "".join(f"def g{number}():\n    f()\n\n\n" for number in range(600))
    (tmp_path / "tree/m.py").write_text(text)
    reader = index_of(tmp_path)
    found = Intelligence(reader, str(tmp_path / "tree")).related("f", "callers")
    assert (len(found.spots), found.total) == (200, 600)
    told, shown = render_relations(found, ("f", "callers"), ("a note",))
    answer = msgspec.json.decode(told)
    assert len(told.encode()) <= 8_000 and len(answer["results"]) == shown > 10
    assert answer["left_out"] == f"{600 - shown} more places" and answer["notes"] == ["a note"]
    reader.close()


def test_a_call_on_the_object_itself_is_sure(tmp_path: Path) -> None:
    for path, text in {
        "a.py": "class A:\n    def one(self):\n        return self.two()\n\n    def two(self):\n        pass\n",
        "b.py": "class B:\n    def two(self):\n        return self.one()\n",
    }.items():
        (tmp_path / "tree").mkdir(exist_ok=True)
        (tmp_path / "tree" / path).write_text(text)
    reader = index_of(tmp_path)
    asked = Intelligence(reader, str(tmp_path / "tree"))
    (spot,) = asked.related("A.two", "callers").spots
    assert (spot.line, spot.certain, spot.why) == (3, True, "called on the object itself; its class defines it")
    callees = {(spot.name, spot.certain) for spot in asked.related("A.one", "callees").spots}
    assert callees == {("two", True)}
    (foreign,) = asked.related("B.two", "callees").spots
    assert (foreign.name, foreign.certain) == ("one", False)
    reader.close()


def test_a_go_import_means_its_package(tmp_path: Path) -> None:
    files = {f"pkg/store/{name}.go": f"package store\n\nfunc {name}() {{}}\n" for name in ("A", "B", "C", "D", "E")}
    files["cmd/main.go"] = 'package main\n\nimport "example.com/x/pkg/store"\n\nfunc main() { store.E() }\n'
    for path, text in files.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(text)
    reader = index_of(tmp_path)
    asked = Intelligence(reader, str(tmp_path / "tree"))
    (spot,) = asked.related("cmd/main.go", "imports").spots
    assert (spot.name, spot.certain, spot.why) == ("pkg/store/", True, "a package of 5 files")
    (user,) = asked.related("pkg/store/E.go", "importers").spots
    assert (user.path, user.certain) == ("cmd/main.go", True)
    reader.close()
