"""The program started wrongly, on a broken machine or with broken files: the documented exit code, one clear line that
names what was wrong and what to do, and never a traceback."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.program import codewhale_program, configure, environment, scripted

FINE = '{"text":"fine"}'
Done = subprocess.CompletedProcess[str]
ROOT = os.geteuid() == 0
# Root without its powers: file modes hold again.
POWERLESS = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if ROOT else []
plain_user = pytest.mark.skipif(ROOT and not shutil.which("setpriv"), reason="root needs setpriv to give up its powers")


def refused(done: Done, *said: str, code: int = 2) -> None:
    """One line that holds each of these, nothing on stdout, this exit code."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("codewhale"), done.stderr
    assert [part for part in said if part not in done.stderr] == [], done.stderr


def powerless(home: Path, *arguments: str) -> Done:
    """Run the program as a user whom file modes bind."""
    command = [*POWERLESS, sys.executable, "-m", "codewhale", *arguments]
    return subprocess.run(
        command, cwd=home, env=environment(home), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )


def redirected(home: Path, line: str) -> Done:
    """Run a shell line in which PROGRAM is the program."""
    line = line.replace("PROGRAM", f'"{sys.executable}" -m codewhale')
    return subprocess.run(
        ["sh", "-c", line], cwd=home, env=environment(home), capture_output=True, text=True, timeout=60
    )


# ------------------------------------------------------------------ configuration


def _folder(path: Path) -> None:
    path.mkdir()


CONFIGS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "a folder": (_folder, ("config.toml: is not a regular file",)),
    "a pipe": (os.mkfifo, ("config.toml: is not a regular file",)),
    "no TOML": (lambda path: path.write_text("model = a\n"), ("config.toml: is not valid TOML", "line 1")),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe\x00"), ("config.toml: is not UTF-8 text (byte 0)",)),
    "a deep nest": (
        lambda path: path.write_text("model = " + "[" * 50_000),
        ("config.toml: is nested too deeply", "line 1"),
    ),
    "too large": (lambda path: path.write_bytes(b"#" * (2 << 20)), ("is larger than 262144 bytes",)),
    "a wrong type": (lambda path: path.write_text("model = 3"), ("model: must be text, not a whole number; it is 3",)),
    "a wrong table": (lambda path: path.write_text("providers = []"), ("providers: must be a table, not a list",)),
    "a dialect that is none": (
        lambda path: path.write_text('provider = "p"\n[providers.p]\ndialect = "x"'),
        ("providers.p.dialect = 'x' is unknown; choose one of anthropic, openai-chat, openai-responses, scripted",),
    ),
    "a URL that is none": (
        lambda path: path.write_text('provider = "p"\n[providers.p]\nbase_url = "x"'),
        ("providers.p.base_url = 'x' is not a URL such as https://",),
    ),
    "an unencrypted URL": (
        lambda path: path.write_text('provider = "p"\n[providers.p]\nbase_url = "http://example.com"'),
        ("is not encrypted: others in the network could read the key",),
    ),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_bad_configuration_file(kind: str, tmp_path: Path) -> None:
    make, said = CONFIGS[kind]
    path = configure(tmp_path, "")
    path.unlink()
    make(path)
    refused(codewhale_program(tmp_path, "exec", "hi"), *said)


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    scripted(tmp_path, FINE)
    bad = {"CODEWHALE_PROVIDERS_PLAYED_CONTEXT_WINDOW": "lots"}
    refused(codewhale_program(tmp_path, "exec", "hi", env=bad), "environment CODEWHALE_PROVIDERS_PLAYED", '"lots"')


@pytest.mark.parametrize("key", ["", "  "])
def test_a_key_that_is_not_there_is_missed_before_anything_is_dialled(key: str, tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "exec", "hi", env={"DEEPSEEK_API_KEY": key})
    refused(done, "DEEPSEEK_API_KEY is not set", "export DEEPSEEK_API_KEY=", "choose another provider")
    assert not list((tmp_path / "state" / "sessions").glob("*/log*"))


def test_a_key_no_header_can_carry(tmp_path: Path) -> None:
    for key in ("a\nb", "ключ"):
        done = codewhale_program(tmp_path, "exec", "hi", env={"DEEPSEEK_API_KEY": key})
        refused(done, "the key of provider deepseek holds characters that an HTTP header cannot contain")
        assert key not in done.stderr


# ------------------------------------------------------------------ the script


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"text":', "line 1: not JSON"),
        (b"[]", "line 1: Expected `object`, got `array`"),
        (b'{"text":"a"}\n{"text":5}', "line 2: Expected `str`, got `int` - at `$.text`"),
        (b'{"calls":[{"name":5}]}', "line 1: Expected `str`, got `int` - at `$.calls[0].name`"),
        (b"\xff\x00", "line 1: not JSON"),
        (b"[" * 100_000, "line 1: not JSON"),
    ],
)
def test_a_bad_script(text: bytes, said: str, tmp_path: Path) -> None:
    scripted(tmp_path).write_bytes(text)
    refused(codewhale_program(tmp_path, "exec", "hi"), "script.jsonl", said)


def test_a_script_that_is_no_file(tmp_path: Path) -> None:
    script = scripted(tmp_path)
    script.unlink()
    refused(codewhale_program(tmp_path, "exec", "hi"), "script.jsonl cannot be read: No such file", "set `script`")
    script.mkdir()
    refused(codewhale_program(tmp_path, "exec", "hi"), "script.jsonl cannot be read: Is a directory", "set `script`")
    script.rmdir()
    os.mkfifo(script)
    refused(codewhale_program(tmp_path, "exec", "hi"), "script.jsonl is not a regular file", "set `script`")


# ------------------------------------------------------------------ folders


def test_a_workspace_that_is_none(tmp_path: Path) -> None:
    scripted(tmp_path, FINE)
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    for path, said in {
        "": "it is empty",
        "absent": "No such file or directory",
        "file": "not a folder",
        "file/x": "Not a directory",
        "loop": "Too many levels of symbolic links",
        "x" * 5000: "File name too long",
    }.items():
        refused(codewhale_program(tmp_path, "exec", "-w", path, "hi"), "codewhale exec: -w ", said, "--help")
    refused(redirected(tmp_path, "mkdir gone && cd gone && rmdir ../gone && PROGRAM exec hi"), "-w .: No such file")


def test_a_state_directory_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home, said in (("file", "it is not a directory"), ("file/x", "a part of its path is a file")):
        for command in (["exec", "--provider", "scripted", "hi"], ["sessions", "list"], ["config", "list"]):
            done = codewhale_program(tmp_path, *command, env={"CODEWHALE_HOME": str(tmp_path / home)})
            refused(done, str(tmp_path / home), said, "set CODEWHALE_HOME to a folder of your own")


@pytest.mark.skipif(not ROOT, reason="only root can give a folder away")
def test_a_state_directory_of_someone_else(tmp_path: Path) -> None:
    scripted(tmp_path, FINE)
    os.chown(tmp_path / "state", 12345, 12345)
    for command in (["exec", "hi"], ["sessions", "list"], ["config", "list"]):
        refused(codewhale_program(tmp_path, *command), "belongs to user 12345, not to you", "set CODEWHALE_HOME")


@plain_user
def test_what_may_not_be_read_or_written(tmp_path: Path) -> None:
    script = scripted(tmp_path, FINE)
    workspace = tmp_path / "workspace"
    workspace.mkdir(0o000)
    refused(powerless(tmp_path, "exec", "-w", str(workspace), "hi"), "this folder cannot be read")
    script.chmod(0)
    refused(powerless(tmp_path, "exec", "hi"), "script.jsonl cannot be read: Permission denied")
    (tmp_path / "state" / "config.toml").chmod(0)
    refused(powerless(tmp_path, "exec", "hi"), "config.toml: cannot be read: Permission denied")
    shutil.rmtree(tmp_path / "state")
    tmp_path.chmod(0o500)
    refused(powerless(tmp_path, "exec", "--provider", "scripted", "hi"), "Permission denied; set CODEWHALE_HOME")
    tmp_path.chmod(0o700)


# ------------------------------------------------------------------ prompts and streams


def test_prompts_that_are_none_or_too_long(tmp_path: Path) -> None:
    scripted(tmp_path, FINE)
    for blank in ("", " \n\t"):
        refused(codewhale_program(tmp_path, "exec", blank), "the prompt is empty", "--help")
        refused(codewhale_program(tmp_path, "exec", "-", stdin=blank.encode()), "the prompt on stdin is empty")
    long = b"x" * (2 << 20)
    for prompt in ("-", "hi"):
        refused(codewhale_program(tmp_path, "exec", prompt, stdin=long), "stdin is larger than 1048576 bytes", "a file")
    assert not (tmp_path / "state" / "sessions").exists()


def test_a_prompt_of_odd_bytes_is_a_prompt(tmp_path: Path) -> None:
    scripted(tmp_path, FINE)
    for odd in (b"a\0b", b"\xff\xfe\x80", "\u2028\ufeff\U0001f600".encode(), b"\x1b]0;x\x07", b"x" * 500_000):
        done = codewhale_program(tmp_path, "exec", "-", stdin=odd)
        assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_closed_and_broken_streams(tmp_path: Path) -> None:
    scripted(tmp_path, FINE)
    refused(redirected(tmp_path, "PROGRAM exec - <&-"), "the prompt on stdin is empty")
    done = redirected(tmp_path, "PROGRAM exec hi <&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    # What a caller closed, it does not want to read: the work is done all the same.
    assert (redirected(tmp_path, "PROGRAM exec hi >&-").returncode) == 0
    assert (redirected(tmp_path, "PROGRAM exec hi 2>&-").stdout) == "fine\n"
    if os.path.exists("/dev/full"):
        full = redirected(tmp_path, "PROGRAM exec hi >/dev/full")
        refused(full, "standard output cannot be written: No space left on device", code=1)


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["exce", "hi"], "did you mean: codewhale exec"),
        (["exec", "--max-turns", "many", "hi"], "'many' is not a whole number above 0"),
        (["exec", "--max-seconds", "-1", "hi"], "--max-seconds"),
        (["exec", "--mode", "god", "hi"], "invalid choice: 'god'"),
        (["exec", "--output-format", "xml", "hi"], "invalid choice: 'xml'"),
        (["exec", "--resume", "../../etc/passwd", "hi"], "there is no session"),
        (["exec", "--provider", "\x1b]0;x\x07", "hi"], "there is no provider"),
        (["sessions", "show", "a/b"], "there is no session"),
        (["sessions", "rm", ".."], "there is no session"),
        (["config", "set", "a..b", "1"], "is not a key"),
        (["config", "set", "providers.x.max_output", "lots"], "must be a whole number, not text"),
        (["tools", "head", "--dialect", "latin"], "--dialect latin"),
        (["tools", "list", "--mode", "god"], "invalid choice: 'god'"),
        (["apply", "--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_words_that_make_no_sense(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, *arguments)
    refused(done, said)
    assert "\x1b" not in done.stderr
