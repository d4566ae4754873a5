"""What tests of servers at addresses begin with."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from support.mcpsite import Site


@pytest.fixture
def site() -> Iterator[Callable[[], Site]]:
    """Makes sites, which end with the test."""
    with contextlib.ExitStack() as stack:

        def make() -> Site:
            made = Site()
            stack.callback(made.end)
            return made

        yield make
