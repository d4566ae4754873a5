"""The bytes a patched file gets: line ends, final newlines, marks, and hunks that touch."""

from support.patchtext import HEAD, apply, hunk, refuse


def test_line_ends() -> None:
    crlf = "a\r\nb\r\nc\r\n"
    assert apply(crlf, HEAD + hunk(" a\n-b\n+B\n+BB\n c\n")) == ("a\r\nB\r\nBB\r\nc\r\n", ["line ends"])
    assert apply(crlf, HEAD + hunk(" a\r\n-b\r\n+B\r\n c\r\n")) == ("a\r\nB\r\nc\r\n", ["exact"])
    assert apply(crlf, (HEAD + hunk(" a\n-b\n+B\n c\n")).replace("\n", "\r\n"))[0] == "a\r\nB\r\nc\r\n"
    assert apply("a\nb\nc\n", (HEAD + hunk(" a\n-b\n+B\n c\n")).replace("\n", "\r\n")) == ("a\nB\nc\n", ["exact"])
    assert apply("a\nb\nc\n", HEAD + hunk(" a\r\n-b\r\n+B\r\n c\r\n")) == ("a\nB\nc\n", ["line ends"])
    mixed = "a\r\nb\r\nc\nd\ne\n"
    assert apply(mixed, HEAD + hunk(" c\n-d\n+D\n e\n", 3)) == ("a\r\nb\r\nc\nD\ne\n", ["exact"])
    assert apply(crlf, HEAD + "@@ -3,0 +4,1 @@\n+d\n")[0] == crlf + "d\r\n"


def test_final_newlines() -> None:
    none = "\\ No newline at end of file\n"
    assert apply("a\nb", HEAD + hunk(" a\n-b\n+B\n")) == ("a\nB", ["line ends"])
    assert apply("a\nb", HEAD + hunk("-a\n+A\n b\n")) == ("A\nb", ["line ends"])
    assert apply("a\nb", HEAD + f"@@ -1,2 +1,2 @@\n a\n-b\n{none}+B\n") == ("a\nB\n", ["exact"])
    assert apply("a\nb\n", HEAD + f"@@ -1,2 +1,2 @@\n a\n-b\n+B\n{none}") == ("a\nB", ["exact"])
    assert apply("a\nb", HEAD + f"@@ -1,2 +1,2 @@\n a\n-b\n{none}+B\n{none}") == ("a\nB", ["exact"])
    assert apply("a\nb", HEAD + f"@@ -1,2 +1 @@\n a\n-b\n{none}") == ("a\n", ["exact"])
    assert apply("a\nb", HEAD + f"@@ -1,2 +1,3 @@\n a\n-b\n{none}+b\n+c\n{none}") == ("a\nb\nc", ["exact"])


def test_byte_order_marks() -> None:
    assert apply("\ufeffa\nb\n", HEAD + hunk("-a\n+A\n b\n")) == ("\ufeffA\nb\n", ["exact"])
    assert apply("\ufeffa\nb\n", HEAD + hunk("-\ufeffa\n+\ufeffA\n b\n")) == ("\ufeffA\nb\n", ["exact"])
    assert apply("\ufeffa\nb\n", HEAD + hunk("-\ufeffa\n+a\n b\n")) == ("a\nb\n", ["exact"])


def test_hunks_may_share_context_but_not_changes() -> None:
    text = "a\nb\nc\nd\n"
    patch = HEAD + hunk("-a\n+A\n b\n c\n") + hunk(" b\n c\n-d\n+D\n", 2)
    assert apply(text, patch)[0] == "A\nb\nc\nD\n"
    error = refuse(text, HEAD + hunk(" a\n-b\n+B\n c\n") + hunk("-b\n+BB\n c\n d\n", 2))
    assert "both change line 2" in error.message
