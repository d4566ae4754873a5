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
