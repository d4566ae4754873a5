"""What a provider's cache should know, and why it did not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.models.build import build_dialect
from codewhale.models.dialects.base import ProviderSettings, RequestOptions
from codewhale.protocol.events import (
    Compacted,
    CompactionUndone,
    Event,
    HeaderPinned,
    MessageAdded,
    ModelChanged,
    PrefixInvalidated,
    RequestSent,
    ResultsPruned,
    ToolActivated,
)
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.stream import Usage
from codewhale.session.prefixcache import (
    Expected,
    PrefixCache,
    Sent,
    cause_of_miss,
    common_prefix,
    expected_tokens,
)
from codewhale.session.projection import Projection

A, B = ("p", "a"), ("p", "b")
TAIL = b'],"max_tokens":100}'


def body(*words: str) -> bytes:
    """A body that holds these messages."""
    return b'{"messages":[' + ",".join(words).encode() + TAIL


def ask(cache: PrefixCache, route: tuple[str, str], data: bytes, tokens: int = 0, at: float = 0) -> Expected:
    """Send a request, and say what was expected of it."""
    expected = cache.expect(route, data)
    cache.sent(route, data, expected, at)
    cache.counted(route, tokens)
    return expected


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40), st.integers(0, 3))
def test_the_common_part_is_as_long_as_it_is(start: bytes, one: bytes, other: bytes, size: int) -> None:
    start = b"x" * (size * 50_000) + start
    left, right = start + one, start + other
    found = common_prefix(left, right)
    assert left[:found] == right[:found]
    assert found == min(len(left), len(right)) or left[found] != right[found]


def test_the_first_request_to_a_model_is_cold() -> None:
    cache = PrefixCache()
    assert cache.empty
    assert ask(cache, A, body("one")) == Expected(0, None, "cold")
    assert not cache.empty


def test_a_conversation_that_goes_on_shares_all_but_the_end() -> None:
    cache, words = PrefixCache(), ["w" * 400]
    ask(cache, A, body(*words))
    for number in range(5):
        before = body(*words)
        words.append(f"more {number}" * 100)
        expected = ask(cache, A, body(*words))
        assert (expected.bytes, expected.cause) == (len(before) - len(TAIL), "")


LONG = "l" * 5_000


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        ((Compacted(1, "auto", ()),), "compaction"),
        ((PrefixInvalidated("compaction", 1), Compacted(1, "auto", ())), "compaction"),
        ((ResultsPruned(()), PrefixInvalidated("pruned", 3)), "pruned"),
        ((ResultsPruned(()), Compacted(1, "auto", ())), "compaction"),
        ((CompactionUndone(1),), "undo"),
        ((ToolActivated("web"),), "activation"),
        ((PrefixInvalidated("something new", 2),), "something new"),
        ((), "changed"),
    ],
)
def test_what_cuts_the_shared_part_short_is_named(events: tuple[Event, ...], cause: str) -> None:
    cache = PrefixCache()
    ask(cache, A, body(LONG, "one", LONG))
    for event in events:
        cache.apply(event)
    expected = ask(cache, A, body(LONG, "two", LONG))
    assert (expected.bytes, expected.cause) == (len(body(LONG)) - len(TAIL) + 1, cause)
    assert ask(cache, A, body(LONG, "two", LONG, "on")).cause == ""


def test_each_model_has_a_cache_of_its_own_and_finds_it_again() -> None:
    cache = PrefixCache()
    ask(cache, A, body(LONG))
    cache.apply(ModelChanged("p", "b"))
    assert ask(cache, B, body(LONG, "b")) == Expected(0, None, "model")
    cache.apply(ModelChanged("p", "a"))
    back = ask(cache, A, body(LONG, "b", "a"))
    assert (back.bytes, back.cause) == (len(body(LONG)) - len(TAIL), "")


def test_an_undone_compaction_finds_the_earlier_bytes() -> None:
    cache = PrefixCache()
    ask(cache, A, body(LONG, LONG), tokens=2_500)
    cache.apply(Compacted(1, "person", ()))
    assert ask(cache, A, body(LONG, "summary" * 200), tokens=1_600).cause == "compaction"
    cache.apply(CompactionUndone(1))
    data = body(LONG, LONG, "on")
    expected = ask(cache, A, data)
    assert (expected.bytes, expected.cause) == (len(body(LONG, LONG)) - len(TAIL), "undo")
    assert expected_tokens(expected, len(data), Usage(input=2_510), {}) == 2_500


def test_tokens_follow_the_earlier_count_in_whole_blocks() -> None:
    usage, earlier = Usage(input=1_300), Sent(b"x" * 4_000, 1_000, 0)
    whole = Expected(3_990, earlier)
    assert expected_tokens(whole, 5_000, usage, {}) == 1_000
    assert expected_tokens(whole, 5_000, usage, {"cache_block": 64}) == 960
    assert expected_tokens(whole, 5_000, usage, {"cache_min": 1_024}) == 0
    assert expected_tokens(Expected(1_000, earlier), 5_000, usage, {}) == 250
    assert expected_tokens(Expected(2_500, Sent(b"x" * 4_000, 0, 0)), 5_000, usage, {}) == 650
    assert expected_tokens(Expected(), 5_000, usage, {}) == 0


def test_why_hits_fell_short() -> None:
    def cause(hit: int, idle: float = 0, why: str = "", **facts: int) -> str:
        usage = Usage(input=2_000, cache_hit=hit, cache_miss=2_000 - hit)
        return cause_of_miss(Expected(1, Sent(b"", 0, 0), why), 1_000, usage, idle, facts)

    assert cause(1_000) == cause(2_000) == cause(985) == ""
    assert cause(0) == cause(900) == "provider"
    assert cause(940, cache_block=64) == ""
    assert cause(0, idle=4_000) == "expired"
    assert cause(0, idle=400, cache_seconds=300) == "expired"
    assert cause(0, idle=4_000, cache_seconds=86_400) == "provider"
    assert cause(1_000, why="model") == "model"
    assert cause_of_miss(Expected(), 0, Usage(input=5), 0, {}) == ""


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "anthropic", "scripted"])
@pytest.mark.parametrize("effort", ["", "high"])
def test_a_conversation_is_followed_in_every_dialect(name: str, effort: str) -> None:
    dialect = build_dialect("p", ProviderSettings(dialect=name, facts={"effort": True, "thinking": "adaptive"}))
    header = HeaderPinned(name, "p", "a", "Be kind. " * 90, "[]", "0")
    projection, cache = Projection(dialect, lambda image: b""), PrefixCache()
    for number in range(1, 6):
        projection.apply(MessageAdded(Message("user", (Text(f"Question {number}? " * 60),))))
        data = projection.request(header, RequestOptions(4_096 - number, effort))[0]
        expected = ask(cache, A, data, tokens=100 * number)
        assert expected.cause == ("" if number > 1 else "cold")
        assert number == 1 or expected_tokens(expected, len(data), Usage(input=9_999), {}) == 100 * (number - 1)
        projection.apply(RequestSent(number, len(data), "0", 1))
        projection.apply(MessageAdded(Message("assistant", (Text(f"Answer {number}."),))))
