"""`make smoke`: every command-line door once, from a wheel installed where nothing else is.

Each row is a command line, what it may exit with, and a word that its stdout must hold.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / ".scratch" / "smoke"


class Door(NamedTuple):
    """A command line after `codewhale`, with what it must do."""

    arguments: tuple[str, ...]
    exits: tuple[int, ...] = (0,)
    says: str = ""
    stdin: str = ""


# The names of tools that the product promises, and those of them that are not built yet: these may only shrink.
PROMISED = frozenset(
    """agent_close agent_eval agent_open apply_patch automation_create automation_delete automation_list
    automation_pause automation_read automation_resume automation_run automation_update checklist_add checklist_list
    checklist_update checklist_write diagnostics edit_file exec_shell exec_shell_cancel exec_shell_interact
    exec_shell_wait fetch_url file_search git_diff git_status github_close_issue github_close_pr github_comment
    github_issue_context
    github_pr_context grep_files handle_read list_dir note pr_attempt_list pr_attempt_preflight pr_attempt_read
    pr_attempt_record read_file retrieve_tool_result rlm_close rlm_configure rlm_eval rlm_open rlm_session_objects
    run_tests task_cancel task_create task_gate_run task_list task_read task_shell_start task_shell_wait todo_add
    todo_list todo_update todo_write update_plan web_search write_file""".split()
)
NOT_BUILT = frozenset[str]()
RETIRED = ("agent_spawn", "agent_wait", "agent_result", "rlm")
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"
DOORS = (
    Door(("--version",), says="codewhale"),
    Door(("--help",), says="exec"),
    Door(("exec", "--help"), says="--output-format"),
    Door(("nonsense",), exits=(2,)),
    Door(("exec", "-w", "work", "--yolo", "List the files."), says="Listed."),
    Door(("exec", "-w", "work", "--yolo", "--output-format", "json", "Again."), says='"schema_version":1'),
    Door(("exec", "-w", "work", "--yolo", "--output-format", "stream-json", "Again."), says='"turn_finished"'),
    Door(("exec", "-w", "work", "--yolo", "-"), says="Listed.", stdin="List the files."),
    Door(("exec", "-w", "work", "--continue", "/status"), says="work"),
    Door(("sessions", "list", "--json", "--all"), says='"state":"idle"'),
    Door(("sessions", "show", "latest", "--messages"), says="Listed."),
    Door(("sessions", "rm", "nothing-of-that-name"), exits=(1, 2)),
    Door(("stats", "--json"), says='"hit_rate"'),
    Door(("apply", "-w", "work", "--json"), says='"success":true', stdin=PATCH),
    Door(("apply", "-w", "work"), exits=(1, 2), stdin="no patch\n"),
    Door(("tools", "list", "--json"), says='"read_file"'),
    Door(("tools", "head"), says='"read_file"'),
    Door(("config", "--help"), says="usage"),
    Door(("doctor",), exits=(0, 1)),
    Door(("review", "-w", "work"), says="nothing to review"),
    Door(("provider", "list"), says="deepseek"),
    Door(("model", "list"), says="claude"),
    Door(("login", "--help"), says="--keyring"),
    Door(("logout", "deepseek"), exits=(1,)),
    Door(("skills", "check", "work"), exits=(1,)),
    Door(("mcp", "list")),
    Door(("memory", "list")),
    Door(("trust", "list")),
    Door(("policy", "check", "rm -rf /"), exits=(3,), says="deny"),
    Door(("sandbox", "check"), exits=(0, 1), says="landlock"),
    Door(("search", "-w", "work", "total of a price"), says="a.py"),
    Door(("symbols", "-w", "work", "total"), says="a.py"),
    Door(("history", "-w", "work", "anything"), exits=(0, 1)),
    Door(("index", "-w", "work", "--status")),
    Door(("completion", "bash"), says="_codewhale"),
    Door(("tasks", "list", "--json"), says='"tasks":[]'),
    Door(("automations", "list", "--json"), says='"automations":[]'),
    Door(("work", "--once")),
    Door(("worktree", "list")),
    Door(("web", "--help"), says="--port"),
    Door(("help", "exec"), says="--auto"),
)


def install() -> Path:
    """The wheel, built and installed alone; returns the program."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    pip = ["-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([sys.executable, *pip, "wheel", "--no-deps", "-w", str(SCRATCH), str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(SCRATCH / "venv")], check=True)
    wheel = next(SCRATCH.glob("*.whl"))
    subprocess.run([str(SCRATCH / "venv/bin/python"), *pip, "install", str(wheel)], check=True)
    return SCRATCH / "venv" / "bin" / "codewhale"


def lay_out() -> dict[str, str]:
    """A workspace and a home with a scripted model; returns the environment."""
    work, home = SCRATCH / "work", SCRATCH / "home"
    work.mkdir()
    home.mkdir()
    (work / "a.txt").write_text("a\n")
    (work / "a.py").write_text("def total(price):\n    return price\n")
    turns = [{"calls": [{"name": "list_dir", "arguments": {}}]}, {"text": "Listed."}]
    (home / "script.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    (home / "config.toml").write_text(
        'provider = "scripted"\nmodel = "script"\n[providers.scripted]\ndialect = "scripted"\n'
        f"script = {json.dumps(str(home / 'script.jsonl'))}\n"
    )
    return {"PATH": os.environ["PATH"], "HOME": str(home), "CODEWHALE_HOME": str(home), "LANG": "C.UTF-8"}


def wrong(door: Door, program: Path, environment: dict[str, str]) -> str:
    """What is wrong with a door; "" when nothing is."""
    done = subprocess.run(
        [str(program), *door.arguments],
        cwd=SCRATCH, env=environment, input=door.stdin, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode not in door.exits:
        return f"exit {done.returncode}, wanted {door.exits}: {done.stderr.strip()[-300:]}"
    if door.says not in done.stdout:
        return f"stdout lacks {door.says!r}: {done.stdout.strip()[-300:]}"
    return "a traceback on stderr" if "Traceback" in done.stderr else ""


def wrong_names(listed: str) -> list[str]:
    """What is wrong with the tools that `tools list --json` names: promised ones that are missing, ones that are built
    and still called unbuilt, and retired ones."""
    names = {row["name"] for row in json.loads(listed)}
    faults = [f"{name} is not listed" for name in sorted(PROMISED - NOT_BUILT - names)]
    faults += [f"{name} is built: take it off NOT_BUILT" for name in sorted(NOT_BUILT & names)]
    return faults + [f"{name} is retired" for name in RETIRED if name in names]


def main() -> int:
    """0 when every door does what it must."""
    program, environment = install(), lay_out()
    failed = 0
    for name in ("codewhale", "codewhale-tui"):
        done = subprocess.run([program.with_name(name), "--version"], capture_output=True, text=True, check=False)
        good = done.returncode == 0 and re.fullmatch(r"codewhale(-tui)? \d+\.\d+\.\d+\S*\n", done.stdout)
        failed += not good
        print(f"{'ok' if good else 'FAILED':7}{name} --version  {'' if good else done.stdout + done.stderr}".rstrip())
    listed = subprocess.run([program, "tools", "list", "--json"], capture_output=True, text=True, env=environment,
                            check=True)  # fmt: skip
    faults = wrong_names(listed.stdout)
    failed += len(faults)
    print("\n".join(f"FAILED {fault}" for fault in faults) or f"ok     {len(PROMISED - NOT_BUILT)} promised tools")
    for door in DOORS:
        fault = wrong(door, program, environment)
        failed += bool(fault)
        print(f"{'FAILED' if fault else 'ok':7}codewhale {' '.join(door.arguments)}  {fault}".rstrip(), flush=True)
    print(f"{len(DOORS)} doors, {failed} faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
