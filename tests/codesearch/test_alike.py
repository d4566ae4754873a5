"""A name that nothing is called: what it may have meant."""

from pathlib import Path

import pytest

from codewhale.codesearch.intelligence import Intelligence
from codewhale.codesearch.render import render_relations
from codewhale.codesearch.suggestions import MOST, similar_names
from support.searchtree import index_of

SOURCE = """
class Router:
    def route_layer(self): pass

def curl_easy_init(): pass

def layer_of_route_and_more(): pass
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Routr", ("Router",)),
        ("rout_layer", ("route_layer", "Router", "layer_of_route_and_more")),
        ("layerRoute", ("route_layer", "layer_of_route_and_more")),
        ("curl_esy_init", ("curl_easy_init",)),
        ("EASY", ("curl_easy_init",)),
        ("walrus", ()),
        ("", ()),
        ("\udc80", ()),
        ("::", ()),
        ("a" * 5000, ()),
    ],
)
def test_what_may_be_meant(tmp_path: Path, name: str, expected: tuple[str, ...]) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.py").write_text(SOURCE)
    reader = index_of(tmp_path)
    assert similar_names(reader, name) == expected
    reader.close()


def test_only_what_finds_nothing_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.py").write_text(SOURCE + "".join(f"def easy_{number}(): pass\n" for number in range(9)))
    reader = index_of(tmp_path)
    asked = Intelligence(reader, str(tmp_path / "tree"))
    assert asked.related("Router", "definitions").alike == asked.related("Router", "callers").alike == ()
    assert asked.related("Rooter.Routr", "callees").alike == ("Router",)
    assert len(asked.related("easy", "references").alike) == MOST
    told, _ = render_relations(asked.related("Routr", "definitions"), ("Routr", "definitions"), ())
    assert '"did_you_mean":["Router"]' in told.replace(" ", "").replace("\n", "")
    reader.close()
