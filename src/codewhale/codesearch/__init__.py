"""Finding code by what it does: the index of a worktree, how it stays true, and the ranking over it."""
