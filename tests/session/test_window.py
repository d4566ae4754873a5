"""What of a window may be spent, and from where on room is made."""

import pytest

from codewhale.session.window import ContextSettings, reserved


@pytest.mark.parametrize(
    ("window", "max_output", "kept"),
    [(1_000_000, 65_536, 66_560), (128_000, 0, 9_216), (32_000, 64_000, 17_024), (8_192, 0, 2_560)],
)
def test_room_for_the_answer_is_kept_back(window: int, max_output: int, kept: int) -> None:
    assert reserved(window, max_output) == kept


@pytest.mark.parametrize(
    ("settings", "window", "threshold"),
    [
        (ContextSettings(), 128_000, 80_000),
        (ContextSettings(), 1_000_000, 95_000),
        (ContextSettings(auto_compact=True, percent=50), 1_000_000, 50_000),
        (ContextSettings(percent=3), 128_000, 10_000),
        (ContextSettings(auto_compact=False), 128_000, 0),
    ],
)
def test_room_is_made_by_itself_at_a_share_of_what_may_be_spent(
    settings: ContextSettings, window: int, threshold: int
) -> None:
    assert settings.threshold(window, 100_000) == threshold


def test_an_eighth_stays_unless_it_is_said_how_much() -> None:
    assert ContextSettings().kept(80_000) == 10_000
    assert ContextSettings().kept(900_000) == 20_000
    assert ContextSettings(keep_tokens=1).kept(80_000) == 1
    assert ContextSettings(keep_tokens=90_000).kept(80_000) == 40_000
