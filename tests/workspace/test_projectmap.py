"""The map of a project is bounded and shows what it leaves out."""

from codewhale.workspace.projectmap import MOST_LINES, build_map


def test_folders_files_and_kinds() -> None:
    shown = build_map(["b/c/d.py", "a.py", "b/e", "b/Dockerfile", "x.PY"], 2)
    assert shown.tree.splitlines() == ["b/", "  c/ (1 file)", "  Dockerfile", "  e", "a.py", "x.PY"]
    assert shown.summary == "5 files in 2 folders; by kind: .py 3, no extension 2"
    assert shown.key_files == ["b/Dockerfile"]


def test_one_folder_does_not_crowd_out_the_rest() -> None:
    shown = build_map([f"all/{n:03}.txt" for n in range(100)] + [f"d{n:03}/x" for n in range(100)], 3)
    assert "  … 60 more files" in shown.tree and "… 61 more folders" in shown.tree


def test_the_whole_is_bounded_and_says_so() -> None:
    shown = build_map([f"a{i}/b{j}/c{k}" for i in range(30) for j in range(30) for k in range(5)], 9, truncated=True)
    lines = shown.tree.splitlines()
    assert len(lines) == MOST_LINES + 1 and "more lines" in lines[-1]
    assert shown.summary.startswith("more than 4500 files")


def test_names_cannot_draw_lines_of_their_own() -> None:
    assert build_map(["a\nb\x1b[2J.py"], 1).tree == "a\\nb\\x1b[2J.py"
