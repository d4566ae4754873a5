"""Where hunks are placed: each rung of the ladder, and that nothing is guessed."""

from support.patchtext import HEAD, apply, hunk, refuse


def test_exact_and_offset() -> None:
    assert apply("a\nb\nc\n", HEAD + hunk(" a\n-b\n+B\n c\n")) == ("a\nB\nc\n", ["exact"])
    assert apply("0\n0\na\nb\nc\nd\n", HEAD + hunk(" a\n-b\n+B\n c\n")) == ("0\n0\na\nB\nc\nd\n", ["exact, offset +2"])


def test_the_shift_of_one_hunk_helps_the_next() -> None:
    text = "new\n" * 3 + "a\nx\nb\n" + "-\n" * 3 + "x\n" + "-\n" * 2 + "x\nend\n"
    patch = HEAD + hunk(" a\n-x\n+X\n b\n") + hunk(" -\n-x\n+Y\n -\n", 6)
    assert apply(text, patch)[0] == text.replace("a\nx", "a\nX").replace("-\nx\n-", "-\nY\n-")


def test_the_stated_line_wins_over_its_doubles() -> None:
    text = "p\nx\nq\np\nx\nq\n"
    assert apply(text, HEAD + hunk(" p\n-x\n+y\n q\n", 4))[0] == "p\nx\nq\np\ny\nq\n"


def test_a_wrong_line_among_doubles_is_refused_naming_both() -> None:
    error = refuse("p\nx\nq\n1\np\nx\nq\n", HEAD + hunk(" p\n-x\n+y\n q\n", 3))
    assert "hunk 1/1 fits 2 places (exact): lines 1, 5" in error.message
    error = refuse("p\nx\nq\n1\np\nx\nq\n", HEAD + "@@\n p\n-x\n+y\n q\n")
    assert "lines 1, 5" in error.message


def test_the_heading_of_a_hunk_tells_doubles_apart() -> None:
    text = "def a():\n    x\n    y\n\ndef b():\n    x\n    y\n"
    assert apply(text, HEAD + hunk("     x\n-    y\n+    z\n", 20, " def b():"))[0] == text[:-2] + "z\n"


def test_trailing_whitespace() -> None:
    text = "a  \nb\t\nc\n"
    assert apply(text, HEAD + hunk(" a\n-b\n+B\n c\n")) == ("a  \nB\nc\n", ["trailing whitespace"])
    assert "lines 1, 3" in refuse("b \nx\nb\t\n", HEAD + hunk("-b\n+B\n")).message


def test_indentation() -> None:
    text = "class A:\n    def f(self):\n        return 1\n"
    patch = HEAD + hunk(" def f(self):\n-    return 1\n+    if x:\n+        return 2\n+    return 3\n", 2)
    changed = "class A:\n    def f(self):\n        if x:\n            return 2\n        return 3\n"
    assert apply(text, patch) == (changed, ["indentation"])
    tabs = "if a:\n\tif b:\n\t\tx\n"
    patch = HEAD + hunk(" if a:\n     if b:\n-        x\n+        if c:\n+            y\n")
    assert apply(tabs, patch)[0].startswith("if a:\n\tif b:\n\t\tif c:\n\t\t")
    assert "lines 1, 3" in refuse("  b\nx\n    b\n", HEAD + hunk("-b\n+B\n")).message
    refuse("a\n  b\n", HEAD + hunk("     a\n-    b\n+    c\n"), fuzz=0)


def test_fuzz_leaves_out_context() -> None:
    text = "one\ntwo\nthree\nfour\nfive\n"
    patch = HEAD + hunk(" ONE\n two\n-three\n+3\n four\n FIVE\n")
    assert apply(text, patch) == ("one\ntwo\n3\nfour\nfive\n", ["fuzz 2"])
    refuse(text, patch, fuzz=0)
    refuse(text, HEAD + hunk(" 1\n 2\n 3\n 4\n-three\n+3\n"))
    refuse(text, HEAD + hunk(" ONE\n+new\n TWO\n"))
    error = refuse("x\na\nb\ny\na\nb\n", HEAD + hunk(" X\n a\n-b\n+B\n"))
    assert "fits 2 places (fuzz): lines 2, 5" in error.message


def test_insertions() -> None:
    assert apply("a\nb\n", HEAD + "@@ -1,0 +2 @@\n+new\n")[0] == "a\nnew\nb\n"
    assert apply("a\nb\n", HEAD + "@@ -0,0 +1 @@\n+new\n")[0] == "new\na\nb\n"
    text, how = apply("a\nb\n", HEAD + "@@ -9,0 +9 @@\n+new\n")
    assert text == "a\nb\nnew\n" and "offset" in how[0]
    assert apply("", HEAD + "@@ -0,0 +1 @@\n+new\n") == ("new\n", ["exact"])


def test_hunks_without_numbers_follow_one_another() -> None:
    text = "x\n1\nx\n2\nx\n"
    assert apply(text, HEAD + "@@\n-x\n+a\n@@\n-x\n+b\n@@\n-x\n+c\n")[0] == "a\n1\nb\n2\nc\n"
    assert "fits 3 places" in refuse(text, HEAD + "@@\n-x\n+a\n@@\n-x\n+b\n").message
    assert apply(text, HEAD + "@@\n-2\n+two\n@@\n-1\n+one\n")[0] == "x\none\nx\ntwo\nx\n"
    assert apply(text, HEAD + "@@\n-1\n+one\n@@\n 1\n-x\n+X\n 2\n")[0] == "x\none\nX\n2\nx\n"


def test_many_hunks_in_a_large_file() -> None:
    size = 20_000
    lines = [f"line {n}" for n in range(size)]
    wanted = [f"changed {n}" if n % 40 == 20 else line for n, line in enumerate(lines)]
    body = "".join(hunk(f" line {n - 1}\n-line {n}\n+changed {n}\n line {n + 1}\n", n) for n in range(20, size, 40))
    text, how = apply("\n".join(["pushed down", *lines, ""]), HEAD + body)
    assert text == "\n".join(["pushed down", *wanted, ""])
    assert how == ["exact, offset +1"] * (size // 40)
