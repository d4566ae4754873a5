"""Text to terms."""

from hypothesis import given
from hypothesis import strategies as st

from codewhale.codesearch.terms import Terms


def test_an_identifier_gives_its_parts_stemmed_and_itself() -> None:
    terms = Terms()
    assert terms.expand("createStore") == ("creat", "store", "createstore")
    assert terms.expand("getHTTPResponse") == ("get", "http", "respons", "gethttpresponse")
    assert terms.expand("HTTP2Server") == ("http", "2", "server", "http2server")


def test_spellings_of_one_name_are_one() -> None:
    terms = Terms()
    assert terms.expand("create_store") == terms.expand("createStore") == terms.expand("__create_store__")
    assert terms.expand("CREATE_STORE") == terms.expand("CreateStore")


def test_forms_of_a_word_meet() -> None:
    terms = Terms()
    assert terms.expand("resolving") == terms.expand("resolved") == terms.expand("resolve")


def test_cjk_is_bigrams_and_other_scripts_stay_whole() -> None:
    terms = Terms()
    assert terms.expand("日本語検索") == ("日本", "本語", "語検", "検索")
    assert terms.expand("検") == ("検",)
    assert terms.expand("naïve") == ("naïv",)
    assert "検索" in terms.count("索引と検索を行う")


def test_blobs_give_nothing() -> None:
    terms = Terms()
    assert terms.expand("deadbeefdeadbeefdeadbeef") == ()
    assert terms.expand("a" * 81) == ()
    assert terms.expand("12345678") == ()


def test_counting_counts_every_mention() -> None:
    counts = Terms().count("store(createStore) # stores")
    assert counts == {"store": 3, "creat": 1, "createstore": 1}


def test_a_path_counts_its_name_twice_and_three_folders() -> None:
    assert Terms().path("a/src/main/auth/tokenStore.py") == {
        "token": 2, "store": 2, "tokenstore": 2, "src": 1, "main": 1, "auth": 1,
    }  # fmt: skip
    assert Terms().path(".gitignore") == {"gitignor": 2}
    assert Terms().path("Makefile") == {"makefil": 2}


@given(st.text(max_size=200))
def test_any_text_can_be_counted(text: str) -> None:
    terms = Terms()
    counts = terms.count(text)
    assert all(term and often > 0 for term, often in counts.items())
    words = [term for word in terms.words(text) for term in terms.expand(word)]
    assert counts == {term: words.count(term) for term in words}
