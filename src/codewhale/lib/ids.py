"""Identifiers: short, sortable where order helps, unguessable where it must not be guessed."""

import os
import time


def session_id() -> str:
    """A new session id: UTC time to the second, then 8 random hex digits; sorts by age."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + os.urandom(4).hex()


def short_id(prefix: str) -> str:
    """`prefix_` and 8 random hex digits."""
    return f"{prefix}_{os.urandom(4).hex()}"
