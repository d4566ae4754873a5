"""The files of a workspace as git sees them: hardened git, ignore rules, the one walker."""
