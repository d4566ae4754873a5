"""Running what a project checks itself with: its tests, its gates, and the tree a result is bound to."""
