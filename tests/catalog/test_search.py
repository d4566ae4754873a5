"""Finding tools: needs that name no tool, patterns, stems, and what the index never does."""

import pytest
from msgspec.structs import replace

from codewhale.catalog.registry import Catalog
from codewhale.catalog.search import ToolIndex, kindred, stem, stems, uses
from codewhale.protocol.tools import ToolSpec
from support.patience import Moment
from support.toolneeds import needs, others, ranks, shared, whole_index

OWN = Catalog.load()


def made(name: str, description: str = "", **notes: str) -> ToolSpec:
    """A tool with arguments that have notes."""
    properties = {key: {"type": "string", "description": note} for key, note in notes.items()}
    return ToolSpec(name, "", description, {"type": "object", "properties": properties}, ())


# ------------------------------------------------------------------ needs


def test_the_corpus_is_what_it_says() -> None:
    rows, names = needs(), {row.name for row in others()} | set(OWN.rows)
    assert len(rows) >= 500 and len(others()) == 300 and len({need for need, _ in rows}) == len(rows)
    assert [(need, name) for need, name in rows if name not in names] == []
    assert [(need, name) for need, name in rows if shared(need, name)] == []
    assert set(OWN.rows) <= {name for _, name in rows} and len({name for _, name in rows}) >= 300


def test_nine_needs_of_ten_find_their_tool_among_eight() -> None:
    places = ranks(whole_index())
    missed = [(need, name) for need, name, place in places if not place]
    assert 1 - len(missed) / len(places) >= 0.9, missed
    own = [place for _, name, place in places if name in OWN.rows]
    assert sum(place > 0 for place in own) / len(own) >= 0.95


def test_every_own_tool_says_what_it_is_needed_for() -> None:
    assert uses().keys() == OWN.rows.keys()


# ------------------------------------------------------------------ words


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    index = ToolIndex([made("a", "send a parcel"), *(made(f"b{n}", "send a letter") for n in range(9))])
    assert index.words("send parcel", 3)[0][0] == "a"


def test_a_name_counts_more_than_a_description_and_that_more_than_an_argument() -> None:
    index = ToolIndex([made("c", "", walrus="x"), made("b", "walrus"), made("walrus_a"), made("d", x="the walrus")])
    assert [name for name, _ in index.words("walrus", 4)] == ["walrus_a", "b", "c", "d"]


def test_kindred_words_count_less_than_the_word_itself() -> None:
    index = ToolIndex([made("a", "erase it"), made("b", "delete it"), made("c", "keep it")])
    assert [name for name, _ in index.words("delete", 3)] == ["b", "a"]


def test_equal_tools_come_in_the_order_of_names_and_nothing_comes_for_nothing() -> None:
    index = ToolIndex([made("b", "walrus"), made("a", "walrus")])
    assert [name for name, _ in index.words("walrus", 2)] == ["a", "b"]
    assert index.words("the of and", 8) == index.words("", 8) == index.words("xyzzy", 8) == []
    assert ToolIndex([]).words("walrus", 8) == []


def test_a_word_of_a_tool_answers_one_word_of_a_need() -> None:
    index = ToolIndex([made("get_ticket", "a ticket, bug, issue"), made("create_ticket", "a ticket, bug, issue")])
    assert index.words("report a defect and file a problem", 1)[0][0] == "create_ticket"


def test_a_phrase_stands_for_a_word_with_others_between() -> None:
    index = ToolIndex([made("terminate", "ends it"), made("other")])
    for need in ("shut down that server", "shut that old server down", "Shut. Down."):
        assert [name for name, _ in index.words(need, 3)] == ["terminate"], need
    assert index.words("shut it and much later after all of this go down", 3) == []


def served(server: str, *tools: str) -> list[ToolSpec]:
    """Tools of a server."""
    return [replace(made(f"mcp_{server}_{tool}", tool.replace("_", " ")), source=f"mcp:{server}") for tool in tools]


def test_a_question_is_answered_by_what_reads() -> None:
    index = ToolIndex(served("x", "add_member", "list_member"))
    assert index.words("which member is new", 1)[0][0] == "mcp_x_list_member"
    assert index.words("make somebody a member", 1)[0][0] == "mcp_x_add_member"


def test_whose_tool_is_meant_is_known_by_a_short_name_and_by_the_whole_name_only() -> None:
    index = ToolIndex([*served("kubernetes", "get_pods"), *served("memory_graph", "get_graph"), made("pods", "pods")])
    assert index.words("pods", 1)[0][0] == "pods" and index.words("pods on k8s", 1)[0][0] == "mcp_kubernetes_get_pods"
    assert index.words("the graph", 1)[0][0] == "mcp_memory_graph_get_graph"


def test_cells_of_a_sheet_are_a_range() -> None:
    index = ToolIndex([made("read_range", "values of a cell range"), made("b2", "to")])
    assert [index.words(f"sum of {cells}", 1)[0][0] for cells in ("A1:C10", "B2 to D10")] == ["read_range"] * 2


def test_words_of_any_language_are_found() -> None:
    index = ToolIndex([made("a", "查找 文件"), made("b", "Datei suchen")])
    assert [index.words(query, 1)[0][0] for query in ("文件", "suchen Datei")] == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "one"),
    [
        ("list listing lists listed", "list"),
        ("file files", "file"),
        ("search searches searching", "search"),
        ("stop stopped stopping", "stop"),
        ("query queries", "query"),
        ("class classes", "class"),
        ("status", "status"),
        ("commit commits committed", "commit"),
        ("create creates creating creation", "create"),
    ],
)
def test_endings_make_no_difference(words: str, one: str) -> None:
    assert {stem(word) for word in words.split()} == {stem(one)}


def test_parts_of_identifiers_are_words() -> None:
    assert stems("getHTTPResponse read_file2") == [stem(w) for w in ("http", "response", "read", "file")]


def test_every_word_is_kindred_of_itself_alone_in_its_groups() -> None:
    for word, groups in kindred().items():
        assert all(word in group and len(group) > 1 for group in groups), word


# ------------------------------------------------------------------ patterns


def test_names_come_before_what_stands_elsewhere() -> None:
    index = ToolIndex([made("a", "about git"), made("git_b"), made("c", "x", git="y"), made("d", "x")])
    assert index.pattern("GIT", 8) == ["git_b", "a", "c"]
    assert index.pattern("^git_b$", 8) == ["git_b"] and index.pattern("git", 1) == ["git_b"]


@pytest.mark.parametrize("expression", ["(", "a{2,1}", "[z-a]", "(?P<n", "*"])
def test_a_wrong_pattern_is_told(expression: str) -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        ToolIndex([made("a")]).pattern(expression, 8)


@pytest.mark.parametrize(
    "expression",
    [
        "issue",
        r"\Aget",
        r"repository\Z",
        r"(?<=\n)List",
        r"e++$",
        r"(?>[a-z ]+)s$",
        r"[^x]*zebra",
        r"^[a-z_]+$",
        "a|",
        "",
    ],
)
def test_tools_together_are_searched_as_each_alone(expression: str) -> None:
    rows = others()
    found = ToolIndex(rows).pattern(expression, 10_000)
    assert sorted(found) == sorted(row.name for row in rows if ToolIndex([row]).pattern(expression, 1))


def test_a_pattern_that_runs_away_is_stopped() -> None:
    index = ToolIndex([made(f"t{n}", "a" * 3000 + "!") for n in range(50)])
    began = Moment()
    with pytest.raises(ValueError, match="too long"):
        index.pattern("(a|aa|aaa)+$(?<!x)b", 8)
    assert not began.hung
