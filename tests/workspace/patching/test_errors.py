"""What a patch that does not fit is answered with."""

from support.patchtext import HEAD, hunk, refuse


def test_a_miss_shows_what_is_there() -> None:
    text = "".join(f"line {n}\n" for n in range(1, 40))
    error = refuse(text, HEAD + hunk(" line 20\n line 21\n-line twentytwo\n+x\n line 23\n line 24\n", 5), fuzz=0)
    assert "hunk 1/1 does not match. It expects:\n  line 20\n  line 21\n  line twentytwo\n  line 23\n" in error.message
    assert "  ... and 1 more lines" in error.message
    assert "     18│ line 18\n" in error.message and "     25│ line 25\n" in error.message
    assert "line 22 differs: wanted 'line twentytwo', found 'line 22'" in error.message
    error = refuse("a\nB\nc\n", HEAD + hunk(" a\n-b\n+B\n c\n"))
    assert "may have been made before" in error.message
    assert "none of these lines" in refuse("x\n", HEAD + hunk(" a\n-b\n+B\n c\n")).message
    assert "The file is empty" in refuse("", HEAD + hunk("-b\n+B\n")).message
