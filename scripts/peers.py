"""`make peers`: CodeWhale beside other terminal agents over the same scripted endpoint on this machine. Installs each
from its registry into .scratch/bench (nothing else needs them), plays the same job, and writes the table of the README
with --write. One that cannot be installed or does not do the job is named and left out.

python scripts/peers.py [PEER]... [--times 3] [--turns 50] [--write]
"""

import argparse
import subprocess
import sys
from typing import Any, NamedTuple

from bench import COPY, OURS, ROOT, bench, install, prepare, result


class Peer(NamedTuple):
    """An agent as the bench knows it: its name there, for people, and where it comes from."""

    name: str
    shown: str
    folder: str
    packages: tuple[str, ...]
    npm: bool


PEERS = (
    Peer("codex", "Codex CLI (Rust)", "codex", ("@openai/codex",), True),
    Peer("opencode", "opencode (TypeScript)", "opencode", ("opencode-ai",), True),
    Peer("pi", "pi (TypeScript)", "pi", ("@mariozechner/pi-coding-agent",), True),
    Peer("gemini-cli", "Gemini CLI (TypeScript)", "gemini", ("@google/gemini-cli",), True),
    Peer("kimi-cli", "Kimi CLI (Python)", "kimi-cli", ("kimi-cli",), False),
    Peer("vibe29", "Mistral Vibe 2.9 (Python)", "vibe29", ("mistral-vibe==2.9.*",), False),
)
HEAD = (
    "| agent | start to first request, s of CPU | between two requests, ms | the same, ms of CPU | peak memory, MB "
    "| tool schemas, KB | prefix kept, worst turn |\n|---|---:|---:|---:|---:|---:|---:|\n"
)


def ready(peer: Peer) -> bool:
    """Install a peer; whether it does the job of four effects."""
    try:
        if peer.npm:
            subprocess.run(["bash", str(COPY / "install_npm.sh"), peer.folder, *peer.packages], check=True, timeout=900)
        else:
            install(peer.folder, *peer.packages, first=())
        bench("smoke", peer.name)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"  {peer.shown}: left out: {error}", flush=True)
        return False
    done: dict[str, Any] = result(peer.name, "smoke")
    good = all(done["checks"].values()) and done["rc"] == 0
    if not good:
        print(f"  {peer.shown}: left out: it did not do the job: {done['checks']}", flush=True)
    return bool(good)


def row(name: str, shown: str) -> str:
    """The figures of one agent."""
    loop = result(name, "loop")
    cells = (
        f"{loop['cpu_first']:.2f}" if loop["cpu_first"] is not None else "-",
        f"{1e3 * loop['gap_median']:.1f}",
        f"{1e3 * loop['cpu_turn']:.1f}" if loop["cpu_turn"] is not None else "-",
        f"{loop['peak_pss'] / 1e6:.0f}",
        f"{loop['tool_bytes'] / 1e3:.0f}",
        f"{loop['prefix_min']:.3f}",
    )
    return f"| {shown} | " + " | ".join(cells) + " |\n"


def main() -> int:
    """Install, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(peer.name for peer in PEERS))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    prepare()
    bench("smoke", OURS)
    chosen = [peer for peer in PEERS if (not args.peers or peer.name in args.peers) and ready(peer)]
    names = [OURS, *(peer.name for peer in chosen)]
    bench("run", *names, "-n", str(args.times), "-t", str(args.turns), "--timeout", "400")
    table = HEAD + row(OURS, "**CodeWhale** (Python)") + "".join(row(peer.name, peer.shown) for peer in chosen)
    print(table)
    if args.write:
        readme = ROOT / "README.md"
        before, _, rest = readme.read_text().partition("<!-- peers -->\n")
        after = rest.partition("<!-- end: peers -->")[2]
        readme.write_text(f"{before}<!-- peers -->\n{table}<!-- end: peers -->{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
