"""Files that make others run things: of git, of the harness, of shells and editors. Policy asks before a tool writes
one, and the sandbox keeps them as they are; names compare without case, and count also where nothing stands yet."""

# Below the workspace root, folders with all that is in them.
PROTECTED_FOLDERS: tuple[str, ...] = (
    ".codewhale", ".vscode", ".idea", ".husky", ".githooks", ".claude", ".cursor", ".devcontainer",
)  # fmt: skip
# Below the workspace root, single files.
PROTECTED_FILES: tuple[str, ...] = (
    ".gitmodules", ".gitconfig", ".mcp.json", ".ripgreprc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout",
    ".bash_aliases", ".profile", ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".envrc",
)  # fmt: skip
# What the model is told by: instructions that later sessions take over.
RULE_FILES: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
# Below a git directory: what names programs, or leads git elsewhere.
GIT_FILES: tuple[str, ...] = ("config", "config.worktree", "commondir", "gitdir")
GIT_FOLDERS: tuple[str, ...] = ("hooks",)
# What makes a folder a git directory under any name, and what git then reads in it.
GIT_LAYOUT: tuple[str, ...] = (
    "HEAD", "config", "config.worktree", "commondir", "gitdir", "hooks", "info", "modules", "objects", "packed-refs",
    "refs", "worktrees",
)  # fmt: skip
# Directly below the home folder, beside all that begins with a dot: where programs are taken from by name.
HOME_FOLDERS: tuple[str, ...] = ("bin", "Library")
# Anywhere below the workspace, files that other programs act on by themselves: pattern -> who does, for people. A
# tool's writing them is asked about; commands may change them, as every checkout of a branch does.
STARTED: tuple[tuple[str, str], ...] = (
    *((name, "is run by the servers it is pushed to") for name in (
        ".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows", ".gitlab-ci.yml",
        ".gitlab-ci.yaml", ".gitlab/ci", ".circleci", ".travis.yml", ".drone.yml", ".woodpecker", ".woodpecker.yml",
        ".woodpecker.yaml", ".buildkite", ".cirrus.yml", ".cirrus.star", ".semaphore", ".appveyor.yml", "appveyor.yml",
        "azure-pipelines.yml", ".azure-pipelines", "bitbucket-pipelines.yml", "Jenkinsfile", ".readthedocs.yml",
        ".readthedocs.yaml", ".builds", ".build.yml", "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml",
        "buildspec.yaml", "netlify.toml", "vercel.json", ".screwdriver.yaml", ".tekton", ".prow.yaml",
    )),
    *((name, "is used by an editor that opens the folder") for name in (
        ".devcontainer.json", ".zed", ".fleet", ".theia", ".vs", ".helix", ".gitpod.yml", ".idx", "*.code-workspace",
        "*.sublime-project", ".vimrc", "_vimrc", ".nvimrc", ".nvim.lua", ".exrc", ".lvimrc", ".local.vimrc",
        ".dir-locals.el", ".dir-locals-2.el", ".ycm_extra_conf.py", ".projections.json",
    )),
    *((name, "is used by an agent that starts in the folder") for name in (
        ".gemini", ".codex", ".windsurf", ".continue", ".roo", ".cline", ".kiro", ".qwen", ".opencode", "opencode.json",
        "opencode.jsonc", ".crush", ".crush.json", "crush.json", ".goose", ".junie", ".trae", ".augment", ".amazonq",
        ".factory", ".kilocode", ".copilot", ".agents", ".aider.conf.yml", ".github/copilot", ".github/hooks",
        ".mcp", "mcp.json", ".vibe", ".kimi",
    )),
    *((name, "is run by git's hooks") for name in (
        ".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml", "prek.toml", "lefthook.yml",
        "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml",
        "lefthook-local.yml", ".lefthook", ".lefthook-local", ".overcommit.yml", ".git-hooks", "git-hooks", ".hooks",
        ".huskyrc", ".huskyrc.json", ".huskyrc.js", ".simple-git-hooks.json", ".simple-git-hooks.js",
        ".simple-git-hooks.cjs", "simple-git-hooks.json",
    )),
    *((name, "is used by a shell that enters the folder") for name in (
        ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", "mise/config.toml", ".config/mise",
        ".config/mise.toml", ".rtx.toml", ".tool-versions", ".direnvrc", ".envrc.local", ".autoenv", ".autoenv.zsh",
        ".env.fish", "devenv.nix", "devenv.yaml", ".in", ".out", ".rvmrc", ".kshrc", ".cshrc", ".tcshrc", ".login",
        ".inputrc", ".xprofile", ".xsession",
    )),
    *((name, "is read by a program that is started in the folder, and can name others to run") for name in (
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases", ".yarn/plugins", ".pnpmfile.cjs", "bunfig.toml",
        ".cargo/config", ".cargo/config.toml", "rust-toolchain", "rust-toolchain.toml", ".gdbinit", ".lldbinit",
        ".pdbrc", ".pdbrc.py", ".Rprofile", ".Renviron", ".irbrc", ".pryrc", ".ghci", ".psqlrc", ".sqliterc",
        ".tmux.conf", ".screenrc", ".curlrc", ".wgetrc", ".netrc", ".bazelrc", "user.bazelrc", ".mailcap", ".bundle",
        ".hgrc", ".hg", ".mvn", "gradle/wrapper", "sitecustomize.py", "usercustomize.py", "*.pth", ".direnv",
        ".pythonrc.py", ".ipython",
    )),
)  # fmt: skip
# Modules that Python imports at its start, wherever one stands on its path.
AT_START: tuple[str, ...] = ("sitecustomize", "usercustomize")


def is_git_directory(names: set[str]) -> bool:
    return "HEAD" in names and ({"objects", "refs"} <= names or "commondir" in names)
