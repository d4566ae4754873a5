"""Every operation and query is frozen data that survives JSON."""

import msgspec
import pytest

from codewhale.protocol.ops import Op, OpenSession, Query
from support.samples import sample


@pytest.mark.parametrize("kind", Op.__args__, ids=lambda kind: kind.__name__)
def test_an_operation_survives_json(kind: type) -> None:
    assert msgspec.json.decode(msgspec.json.encode(sample(kind)), type=Op) == sample(kind)


@pytest.mark.parametrize("kind", Query.__args__, ids=lambda kind: kind.__name__)
def test_a_query_survives_json(kind: type) -> None:
    assert msgspec.json.decode(msgspec.json.encode(sample(kind)), type=Query) == sample(kind)


def test_a_session_opens_carefully_unless_told_otherwise() -> None:
    op = OpenSession(workspace="/somewhere")
    assert (op.mode, op.authority) == ("agent", "headless")
    assert (op.limits.turns, op.limits.tokens, op.limits.seconds, op.limits.cost) == (None,) * 4
