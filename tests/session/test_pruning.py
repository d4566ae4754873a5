"""Old results said shorter, whole batches, oldest first, each under its handle."""

import hashlib

from codewhale.protocol.messages import Message, ResultPart, Text, ToolCall
from codewhale.session.pruning import EXCERPT, MARK, prune


def batch(*names: str, size: int = 4000, text: str = "x") -> list[Message]:
    """Calls of one message with results of this size."""
    calls = tuple(ToolCall(name, "read_file", f'{{"path":"{name}"}}') for name in names)
    results = tuple(ResultPart(name, (text * size)[:size], name != "bad") for name in names)
    return [Message("assistant", calls), Message("tool", results)]


class Kept(dict[str, str]):
    """What was kept, by call id."""

    def __call__(self, call_id: str, content: str) -> str:
        """Keep it."""
        self[call_id] = content
        return hashlib.sha256(content.encode()).hexdigest()


def test_oldest_first_and_no_more_than_is_wanted() -> None:
    kept = Kept()
    found = prune([*batch("a"), *batch("b"), *batch("c")], 5000, kept, {})
    assert [result.call_id for result in found.results] == ["a", "b"]
    assert found.saved > 5000 and list(kept) == ["a", "b"]


def test_a_stub_names_call_size_handle_and_rules() -> None:
    text = "Never touch it.\n" + "word\n" * 500
    found = prune(batch("a", "bad", size=2400, text=text), 1, Kept(), {"a": "f" * 64})
    stub, bad = found.results
    assert stub.content.startswith(f'{MARK} 2400 bytes, 478 lines of read_file {{"path":"a"}}.')
    assert f'"ref": "art_{"f" * 16}"' in stub.content and stub.content.endswith("Never touch it.")
    assert (stub.ok, bad.ok) == (True, False)


def test_short_results_of_a_batch_stay_and_nothing_is_set_aside_twice() -> None:
    messages = batch("a", size=90) + batch("b")
    assert [result.call_id for result in prune(messages, 1, Kept(), {}).results] == ["b"]
    again = [*messages[:3], Message("tool", prune(messages, 1, Kept(), {}).results)]
    assert prune(again, 1, Kept(), {}).results == ()


def test_what_is_unread_keeps_head_and_tail() -> None:
    text = "first line\n" + "middle\n" * 2000 + "last line\n"
    messages = [*batch("a"), *batch("b", size=len(text), text=text)]
    old, unread = prune(messages, 10**9, Kept(), {}, unread=True).results
    assert "first line" in unread.content and "last line" in unread.content
    assert len(unread.content) < EXCERPT + 600 and len(old.content) < 300


def test_words_are_never_set_aside() -> None:
    assert prune([Message("user", (Text("x" * 9000),))], 9000, Kept(), {}).results == ()
