"""How long ago something was, in words."""

import pytest

from codewhale.display.when import ago
from codewhale.display.words import Words

NOW = 1_772_442_000.0  # 2026-03-02T09:00:00Z


@pytest.mark.parametrize(
    ("at", "said", "chinese"),
    [
        ("2026-03-02T08:59:30.000Z", "just now", "刚刚"),
        ("2026-03-02T09:00:30.000Z", "just now", "刚刚"),
        ("2026-03-02T08:59:00.000Z", "1 minute ago", "1 分钟前"),
        ("2026-03-02T08:00:01.000Z", "59 minutes ago", "59 分钟前"),
        ("2026-03-02T08:00:00.000Z", "1 hour ago", "1 小时前"),
        ("2026-03-01T09:00:01.000Z", "23 hours ago", "23 小时前"),
        ("2026-03-01T09:00:00.000Z", "yesterday", "昨天"),
        ("2026-02-23T09:00:01+00:00", "6 days ago", "6 天前"),
        ("2026-02-23T09:00:00.000Z", "2026-02-23", "2026-02-23"),
        ("2026-03-02T10:30:00.000Z", "2026-03-02", "2026-03-02"),
        ("\x1b[2J", "", ""),
    ],
)
def test_times_in_words(at: str, said: str, chinese: str) -> None:
    assert ago(Words("en"), at, NOW) == said
    assert ago(Words("zh-Hans"), at, NOW) == chinese
