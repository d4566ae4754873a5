"""The one way to touch the machine: child processes, hardened git, the walker."""
