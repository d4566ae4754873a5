"""What a fork and a woken sub-agent send begins with the bytes of the request before, in every wire format."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest

from codewhale.lib.clock import SystemClock
from codewhale.protocol.children import ListChildren, TellChild
from codewhale.protocol.events import RequestSent
from codewhale.session.prefixcache import common_prefix
from codewhale.session.store import SessionStore
from support.answers import DIALECTS, answer_bytes
from support.patience import HANG
from support.wire import Reply
from support.wired import Wired, wired

OPEN = {"prompt": "Look at it as a fork", "fork_context": True, "role": "explore", "name": "scout"}


def opened(dialect: str) -> Reply:
    return Reply([answer_bytes(dialect, "I open one.", json.dumps(OPEN)).replace(b"write_file", b"agent_open")])


async def over(agent: Wired) -> None:
    async with asyncio.timeout(HANG):
        while not all(view.over for view in await agent.client.query(ListChildren(agent.session))):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_fork_and_each_of_its_wakings_extend_what_was_sent_before(
    home: Path, workspace: Path, dialect: str
) -> None:
    replies = [
        Reply([answer_bytes(dialect, "Hello.")]),
        opened(dialect),
        Reply([answer_bytes(dialect, "SUMMARY: done")]),
    ]
    async with wired(home, workspace, replies, dialect=dialect, context_window=1_000_000) as agent:
        await agent.turn("First of all, say hello")
        await agent.turn("Start")
        for number in range(3):
            await agent.client.submit(TellChild(agent.session, "scout", f"Once more, the time {number}"))
            await over(agent)
        (view,) = await agent.client.query(ListChildren(agent.session))
        bodies = [request.body for request in agent.wire.requests]
    childs = [body for body in bodies if b"<role name=" in body]
    before = [[body for body in bodies if body not in childs][1], *childs]
    assert len(before) == 5
    for one, other in pairwise(before):
        assert common_prefix(one, other) == one.rindex(b"]")  # the end of its messages
    log = SessionStore(str(home), SystemClock()).read(view.session)
    expected = [one.event.expected_hit for one in log if isinstance(one.event, RequestSent)]
    assert expected[-4:] == [one.rindex(b"]") for one in before[:-1]]
