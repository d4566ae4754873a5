"""`make demo`: the main job once, through the front door, on a scratch git repository.

The model is a script: its words and calls are fixed below. Everything else is real: the harness, the tools,
the files, the test run and the diff.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
PROMPT = "The tests fail. Find out why, fix it, and show me the diff."

FILES = {
    "basket.py": '''"""Prices of a basket, in cents."""


def total(prices: list[int], discount: int = 0) -> int:
    """Sum of the prices less a discount in percent, rounded half up."""
    full = sum(prices)
    return (full * (100 + discount) + 50) // 100
''',
    "test_basket.py": """from basket import total


def test_full_price() -> None:
    assert total([250, 125]) == 375


def test_discount_lowers_the_price() -> None:
    assert total([1000], discount=20) == 800
""",
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-q -p no:cacheprovider"\n',
    ".gitignore": "__pycache__/\n",
}

SCRIPT: list[dict[str, Any]] = [
    {"text": "First, what fails?", "calls": [{"name": "run_tests", "arguments": {}}]},
    {
        "text": "The discount is wrong. Where is it computed?",
        "calls": [{"name": "grep_files", "arguments": {"pattern": "discount", "context_lines": 0}}],
    },
    {"text": "In basket.py.", "calls": [{"name": "read_file", "arguments": {"path": "basket.py"}}]},
    {
        "text": "It adds the discount instead of taking it off.",
        "calls": [
            {
                "name": "edit_file",
                "arguments": {"path": "basket.py", "search": "(100 + discount)", "replace": "(100 - discount)"},
            }
        ],
    },
    {"text": "Now the tests again.", "calls": [{"name": "run_tests", "arguments": {}}]},
    {"text": "And the change as a whole.", "calls": [{"name": "git_diff", "arguments": {}}]},
    {"text": "Fixed: `total` added the discount where it should take it off. Both tests pass."},
]


def lay_out(folder: Path) -> tuple[Path, Path]:
    """A repository with a failing test and a configuration home; returns both paths."""
    work, home = folder / "shop", folder / "home"
    work.mkdir()
    home.mkdir()
    for name, text in FILES.items():
        (work / name).write_text(text)
    identity = ("-c", "user.name=Demo", "-c", "user.email=demo@example.invalid")
    for arguments in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "A shop with a wrong discount")):
        subprocess.run(["git", *arguments], cwd=work, check=True)
    script = home / "script.jsonl"
    script.write_text("".join(json.dumps(turn) + "\n" for turn in SCRIPT))
    (home / "config.toml").write_text(
        f'provider = "scripted"\nmodel = "script"\n\n[providers.scripted]\n'
        f'dialect = "scripted"\nscript = {json.dumps(str(script))}\n'
    )
    return work, home


def events(work: Path, home: Path) -> Iterator[dict[str, Any]]:
    """Run the front door and yield its events as they come; raises SystemExit when it fails."""
    environment = {**os.environ, "CODEWHALE_HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [str(BIN / "codewhale"), "exec", "-w", str(work), "--auto", "--output-format", "stream-json", PROMPT]
    print("$", "codewhale", *command[1:2], "-w shop", *command[4:-1], repr(PROMPT), end="\n\n")
    child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        yield json.loads(line)["event"]
    if child.wait():
        raise SystemExit(f"codewhale exec ended with exit code {child.returncode}")


def show(event: dict[str, Any]) -> None:
    """One event as a person reads it."""
    if event["type"] == "message_added" and event["message"]["role"] == "assistant":
        said = [part["text"] for part in event["message"]["parts"] if part["type"] == "text"]
        print("model  " + " ".join(said))
    elif event["type"] == "call_started":
        print(f"  call   {event['name']} {event['arguments']}", flush=True)
    elif event["type"] == "call_finished":
        print(f"  result {'ok' if event['ok'] else 'failed'}, {event.get('ms', 0)} ms")
        print("\n".join("         | " + line for line in brief(event["content"])), flush=True)


def brief(content: str, lines: int = 14) -> list[str]:
    """The last lines of what the model reads, test output unpacked."""
    try:
        told = json.loads(content)
    except ValueError:
        told = None
    if isinstance(told, dict) and isinstance(told.get("stdout"), str):
        content = told["stdout"]
    shown = content.strip().splitlines()
    return shown if len(shown) <= lines else ["...", *shown[-lines:]]


def main() -> int:
    """0 when the job was done: tests green, a diff shown."""
    print("CodeWhale demo. The model is SCRIPTED: its words and calls are fixed in scripts/demo.py.")
    print("The harness, the tools, the files, the test runs and the diff are real.\n")
    seen: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="codewhale-demo-") as folder:
        work, home = lay_out(Path(folder))
        result: dict[str, Any] = {}
        for event in events(work, home):
            show(event)
            if event["type"] == "call_finished":
                seen.setdefault(event["name"], []).append(event)
            result = event.get("result", result)
        green = subprocess.run([sys.executable, "-m", "pytest"], cwd=work, capture_output=True, text=True, check=False)
    diff = seen["git_diff"][-1]["content"] if "git_diff" in seen else ""
    done = result.get("status") == "done" and green.returncode == 0 and "+    return" in diff
    print("\nThe tests, run once more from outside:\n  " + green.stdout.strip().replace("\n", "\n  "))
    print("\nDone: the tests were red and are green." if done else f"\nFAILED: {result}")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
