"""The web: one dialler, pages as text, and the providers of searches."""
