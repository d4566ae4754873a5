"""The manners that all sub-commands share."""

import argparse
from pathlib import Path

import pytest

from codewhale.cli.parser import Parser, UsageError, add_api_key, add_workspace, workspace


def parsed(*arguments: str) -> argparse.Namespace:
    parser = Parser(prog="codewhale x")
    add_workspace(parser)
    add_api_key(parser)
    return parser.parse_args(list(arguments))


def test_a_mistake_is_one_line_and_a_hint(capfd: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--nothing"], ["--work", "."]):
        with pytest.raises(SystemExit) as stop:
            parsed(*wrong)
        assert stop.value.code == 2
        said = capfd.readouterr()
        assert said.out == "" and len(said.err.splitlines()) == 1
        assert said.err.endswith("try: codewhale x --help\n")


def test_the_workspace_is_a_real_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert workspace(parsed("-w", str(tmp_path / "link"))) == str(tmp_path)
    (tmp_path / "file").write_text("")
    for wrong in ("", str(tmp_path / "file"), str(tmp_path / "absent"), "\0"):
        with pytest.raises(UsageError, match="-w"):
            workspace(parsed("-w", wrong))


def test_a_key_may_be_given_for_one_run() -> None:
    assert parsed().api_key == ""
    assert parsed("--api-key", "sk-1").api_key == "sk-1"


def test_what_was_likely_meant_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="codewhale x")
    parser.add_argument("--mode", choices=["plan", "agent"])
    parser.add_argument("action", choices=["list", "show"])
    for words, meant in ((["lst"], "list"), (["list", "--mod", "plan"], "--mode"), (["--mode", "pan", "list"], "plan")):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        assert f"; did you mean {meant}?; try:" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        parser.parse_args(["xyzzy"])
    assert "did you mean" not in capfd.readouterr().err
