"""Every operation and query is frozen data that survives JSON."""

from functools import reduce
from operator import or_

import msgspec
import pytest

from codewhale.protocol.ops import OpenSession
from codewhale.protocol.requests import Op, Query
from support.samples import sample


@pytest.mark.parametrize("kind", Op.__subclasses__(), ids=lambda kind: kind.__name__)
def test_an_operation_survives_json(kind: type) -> None:
    every = reduce(or_, Op.__subclasses__())
    assert msgspec.json.decode(msgspec.json.encode(sample(kind)), type=every) == sample(kind)


@pytest.mark.parametrize("kind", Query.__subclasses__(), ids=lambda kind: kind.__name__)
def test_a_query_survives_json(kind: type) -> None:
    every = reduce(or_, Query.__subclasses__())
    assert msgspec.json.decode(msgspec.json.encode(sample(kind)), type=every) == sample(kind)


def test_a_session_opens_carefully_unless_told_otherwise() -> None:
    op = OpenSession(workspace="/somewhere")
    assert (op.mode, op.authority) == ("agent", "headless")
    assert (op.limits.turns, op.limits.tokens, op.limits.seconds, op.limits.cost) == (None,) * 4
