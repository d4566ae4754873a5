"""Data at rest: session log, artifacts, lists."""
