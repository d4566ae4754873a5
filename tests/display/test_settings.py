"""The settings of the terminal interface and what the environment answers."""

from codewhale.display.setup import TuiSettings, editor_of, language_of, theme_of


def test_what_is_left_open_is_answered_from_the_environment() -> None:
    left_open = TuiSettings()
    assert language_of(left_open, {"LANG": "zh_CN.UTF-8"}) == "zh-Hans"
    assert language_of(left_open, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}) == "en"
    assert language_of(TuiSettings(language="en"), {"LANG": "zh_CN.UTF-8"}) == "en"
    assert theme_of(left_open, {}) == "dark"
    assert theme_of(left_open, {"COLORFGBG": "0;15"}) == "light"
    assert theme_of(left_open, {"COLORFGBG": "15;0"}) == "dark"
    assert theme_of(TuiSettings(theme="contrast"), {"COLORFGBG": "0;15"}) == "contrast"
    assert editor_of(left_open, {"EDITOR": "vi", "VISUAL": "code -w"}) == "code -w"
    assert editor_of(TuiSettings(editor="hx"), {"EDITOR": "vi"}) == "hx"
