"""Heights against the plain sums that they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from codewhale.tui.transcript.pane import Heights

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("set"), st.integers(0, 200), st.integers(0, 30)),
        st.tuples(st.just("cut"), st.integers(0, 200), st.just(0)),
    ),
    max_size=120,
)


@given(STEPS)
def test_sums_and_places(steps: list[tuple[str, int, int]]) -> None:
    heights, plain = Heights(), list[int]()
    for step, one, two in steps:
        if step == "append":
            heights.append(one)
            plain.append(one)
        elif step == "set" and plain:
            assert heights.set(one % len(plain), two) == two - plain[one % len(plain)]
            plain[one % len(plain)] = two
        elif step == "cut":
            heights.cut(min(one, len(plain)))
            del plain[one:]
    assert (len(heights), heights.total) == (len(plain), sum(plain))
    assert [heights.start(at) for at in range(len(plain))] == [sum(plain[:at]) for at in range(len(plain))]
    owners = [at for at, height in enumerate(plain) for _ in range(height)]
    assert [heights.at(line) for line in range(len(owners))] == owners


def test_exact_until_forgotten() -> None:
    heights = Heights()
    heights.append(4)
    assert not heights.is_exact(0)
    heights.set(0, 7)
    assert heights.is_exact(0)
    heights.forget()
    assert (heights.is_exact(0), heights.height(0)) == (False, 7)
