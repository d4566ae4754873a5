"""Recursive language model sessions: code over one source that is too large to be read whole."""

from codewhale.rlm.recipes import query_text

__all__ = ("query_text",)
