"""What a command may try to leave in a workspace so that a person's plain git runs it: shell lines for a workspace with
a submodule, a linked worktree, a nested repository and a bare one, and the person who looks everywhere."""

import os
import subprocess
from pathlib import Path

from support.patience import HANG
from support.repos import IDENTITY, PLAIN, make_repo, raw_git

# `$S` is the setting's text and `$P` the program that leaves the mark; evil, bare and hook make what holds them.
_HEAD = """
S='[core]
	repositoryformatversion = 0
	fsmonitor = touch {mark}; false
'
P='#!/bin/sh
touch {mark}
'
evil() {{ mkdir -p "$1/objects" "$1/refs"; echo 'ref: refs/heads/main' > "$1/HEAD"; echo "$S" > "$1/config"; }}
bare() {{ evil "$1"; echo "$S	bare = false
	worktree = ." > "$1/config"; }}
hook() {{ mkdir -p "$1"; for h in post-index-change pre-commit post-checkout reference-transaction; do
  echo "$P" > "$1/$h"; chmod 755 "$1/$h" 2>/dev/null; done; cp /bin/true "$1/x" 2>/dev/null; }}
cd {workspace}
"""
PLANTINGS = {
    "a new repository": "evil new/.git",
    "a new repository by git": "git init -q new; git -C new config core.fsmonitor 'touch {mark}; false'",
    "a new repository as a gitlink": "evil new/.git; git update-index --add --cacheinfo "
    "160000,$(git rev-parse HEAD),new",
    "a worktree's commondir": "evil evil; echo ../../../evil > .git/worktrees/tree/commondir",
    "a worktree's commondir, replaced": (
        "evil evil; cp -r .git/worktrees/tree w; echo ../../../evil > w/commondir; mv .git/worktrees/tree o; "
        "mv w .git/worktrees/tree"
    ),
    "a submodule's .git file": "evil evil; echo 'gitdir: ../evil' > lib/.git",
    "a submodule's .git file, replaced": "evil evil; rm -f lib/.git; echo 'gitdir: ../evil' > lib/.git",
    "a submodule moved away": "mv lib old; mkdir lib; evil lib/.git",
    "a submodule's commondir": "evil evil; echo ../../../evil > .git/modules/lib/commondir",
    "a submodule's settings": 'echo "$S" >> .git/modules/lib/config',
    "a submodule's settings, replaced": 'echo "$S" > c; mv c .git/modules/lib/config',
    "a submodule's hooks": "hook .git/modules/lib/hooks",
    "a submodule's folder, replaced": "mv .git/modules/lib .git/modules/o; evil .git/modules/lib",
    "a nested repository's settings": 'echo "$S" >> dep/.git/config',
    "a nested repository's settings, replaced": 'echo "$S" > c; mv c dep/.git/config',
    "a nested repository's hooks": "hook dep/.git/hooks",
    "a nested repository's hooks, replaced": "mv dep/.git/hooks dep/.git/h; hook h; mv h dep/.git/hooks",
    "a nested repository's commondir": "evil evil; echo ../../evil > dep/.git/commondir",
    "a nested repository's settings by worktree": 'echo "$S" > dep/.git/config.worktree',
    "a nested repository replaced": "mv dep/.git dep/g; evil dep/.git",
    "a nested repository moved and replaced": "mv dep old; evil dep/.git",
    "a nested repository led away": "rm -rf dep/.git; evil evil; echo 'gitdir: ../evil' > dep/.git",
    "a link to a repository": "evil evil; mkdir x; ln -s ../evil x/.git",
    "a link in the place of one": "evil evil; mv dep/.git g; ln -s ../evil dep/.git",
    "a link for settings": "evil new/.git; mv new/.git/config cfg; ln -s ../../cfg new/.git/config",
    "a second name for settings": "evil new/.git; mv new/.git/config cfg; ln cfg new/.git/config",
    "a bare repository": "bare bare",
    "a bare repository by git": "git init -q --bare bare; git -C bare config core.fsmonitor 'touch {mark}; false'; "
    "git -C bare config core.bare false; git -C bare config core.worktree .",
    "a bare repository's settings": "echo \"$S\" >> store/config; echo '	bare = false' >> store/config; "
    "echo '	worktree = .' >> store/config",
    "a layout with a commondir": "bare evil; mkdir lay; cp evil/HEAD lay; echo ../evil > lay/commondir; rm evil/HEAD",
    "a new entry among worktrees": (
        "evil evil; mkdir -p .git/worktrees/z q; cp .git/HEAD .git/worktrees/z; echo ../../../evil > "
        ".git/worktrees/z/commondir; echo {workspace}/q/.git > .git/worktrees/z/gitdir; "
        "echo 'gitdir: ../.git/worktrees/z' > q/.git"
    ),
    "a folder in git's own": "evil .git/deep/down; mkdir q; echo 'gitdir: ../.git/deep/down' > q/.git",
    "settings that are included": "git init -q new; printf '[include]\\n\\tpath = ../../cfg\\n' >> new/.git/config; "
    'echo "$S" > cfg',
    "settings that are included on a condition": "git init -q new; "
    "printf '[includeIf \"gitdir:**\"]\\n\\tpath = ../../cfg\\n'"
    ' >> new/.git/config; echo "$S" > cfg',
    "settings included before": 'echo "$S" > shared.ini',
    "hooks taken from a folder": "hook scripts/hooks",
    "a filter": "git init -q new; echo '* filter=f' > new/.gitattributes; echo x > new/a; "
    "git -C new add -A; printf '[filter \"f\"]\\n\\tclean = touch {mark}; cat\\n' >> new/.git/config; "
    "sleep 1; echo y > new/a",
    "a filter by attributes of its own": "mkdir -p dep/.git/info; echo '* filter=f' > dep/.git/info/attributes; "
    "printf '[filter \"f\"]\\n\\tclean = touch {mark}; cat\\n' >> dep/.git/config; sleep 1; echo y > dep/a",
    "an ignored folder": "evil node_modules/x/.git",
    "a folder closed to its owner": "evil shut/in/.git; chmod 311 shut",
    "a name of several lines": "n=$(printf 'a\\nb'); evil \"$n/.git\"",
    "many folders before it": "i=0; while [ $i -lt 300 ]; do mkdir -p many/$i/$i; i=$((i+1)); done; "
    "evil many/299/299/.git",
    "deep down": "d=a; i=0; while [ $i -lt 60 ]; do d=$d/d; i=$((i+1)); done; evil $d/.git",
    "half of it at first": "bare bare; rm bare/HEAD; sleep 0.3; echo 'ref: refs/heads/main' > bare/HEAD",
    "by a process that is left": "(setsid sh -c 'sleep 0.4; mkdir -p z/.git/objects z/.git/refs; "
    'echo "ref: refs/heads/main" > z/.git/HEAD; echo "$0" > z/.git/config\' "$S" > /dev/null 2>&1 &)',
    "time put back": "evil new/.git; touch -d @1000000000 new/.git/config new/.git new .",
    "moved in from a private folder": "evil $TMPDIR/new/.git; cp -r $TMPDIR/new new2; mv $TMPDIR/new . ",
    "the workspace itself, as a layout": "cp -r dep/.git/objects dep/.git/refs .; bare b; cp .git/HEAD HEAD; "
    "cp b/config config; "
    "mv .git g",
    "settings of the workspace's own worktree": (
        'git config extensions.worktreeConfig true; echo "$S" > .git/config.worktree'
    ),
    "a folder closed to writing": "evil dep/n/.git; chmod 555 dep/n/.git",
    "settings that are too large": (
        "evil dep/n/.git; (echo \"$S\"; head -c 1200000 /dev/zero | tr '\\0' '#') > dep/n/.git/config"
    ),
    "settings in one line": "evil dep/n/.git; printf '[CORE] fsMonitor = \"touch {mark}; false\"' > dep/n/.git/config",
    "settings with other line ends": (
        "evil dep/n/.git; printf '\\357\\273\\277[core]\\r\\n\\tfsmonitor = touch {mark}; false\\r\\n' "
        "> dep/n/.git/config"
    ),
    "the name of what is set aside": (
        "evil dep/n/.git; mv dep/n/.git/config dep/n/.git/config.set-aside; "
        "printf '[include]\\n path = config.set-aside\\n' > dep/n/.git/config"
    ),
    "hooks of a new repository": "evil dep/n/.git; hook dep/n/.git/hooks; "
    "printf '[core]\\n bare = false\\n' > dep/n/.git/config",
    "a repository in a submodule": "evil lib/n/.git",
    "a layout among objects": (
        "bare dep/.git/objects/aa; rm -f tree/.git; echo 'gitdir: ../dep/.git/objects/aa' > tree/.git; mkdir dep/q; "
        "echo 'gitdir: ../.git/objects/aa' > dep/q/.git"
    ),
    "an ssh command": "git init -q new; git -C new remote add origin 'ext::sh -c touch% {mark}'; "
    "git -C new config protocol.ext.allow always",
    "an alias over a command's name": "git init -q new; git -C new config alias.look '!touch {mark}'",
}


def lay_repositories(workspace: Path) -> None:
    """A repository with all of it; `workspace` is empty."""
    base = workspace.parent / "origin"
    make_repo(base, {"a": "a\n"})
    make_repo(workspace, {"src/a.py": "", "README": "x\n", ".gitignore": "node_modules/\n"})
    raw_git(workspace, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(base), "lib")
    raw_git(workspace, "commit", "-q", "-m", "More")
    raw_git(workspace, "worktree", "add", "-q", "tree")
    make_repo(workspace / "dep", {"a": "a\n"})
    raw_git(workspace / "dep", "config", "extensions.worktreeConfig", "true")
    raw_git(workspace, "init", "-q", "--bare", "--template=", "store")
    with open(workspace / ".git" / "config", "a") as file:
        file.write("[include]\n\tpath = ../shared.ini\n[core]\n\thooksPath = scripts/hooks\n")
    (workspace / "shared.ini").write_text("[user]\n\tname = A\n")
    (workspace / "scripts" / "hooks").mkdir(parents=True)


def line(name: str, workspace: Path, mark: Path) -> str:
    """The shell line of a planting."""
    return (
        (_HEAD + PLANTINGS[name])
        .replace("{{", "{")
        .replace("}}", "}")
        .replace("{mark}", str(mark))
        .replace("{workspace}", str(workspace))
    )


def person_looks(workspace: Path, mark: Path) -> str:
    """A person stands in every folder, and uses plain git there; the folder where the mark appeared, "" for none."""
    folders = [workspace, *sorted(path for path in workspace.rglob("*") if path.is_dir() and not path.is_symlink())]
    for folder in folders:
        if "objects" in folder.parts:
            continue
        for args in (("status",), ("diff",), ("look",), ("fetch", "-q"), ("commit", "-q", "--allow-empty", "-m", "x")):
            if args[0] in ("look", "fetch", "commit") and not (folder / ".git").exists():
                continue
            subprocess.run(
                ["git", *IDENTITY, *args], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=HANG,
                env={**PLAIN, "HOME": os.devnull},
            )  # fmt: skip
            if mark.exists():
                return f"{folder}: git {args[0]}"
    return ""


# What is left running does not live that long where nothing is watched, and only some versions of git take the layout.
NEVER = ("by a process that is left", "a layout with a commondir")
