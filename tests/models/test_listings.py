"""The window of a model as the listings of the common servers tell it."""

import json
from typing import Any

import pytest

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.listings import Listings, window_in
from support.wire import Reply, Wire, answer


@pytest.mark.parametrize(
    ("listing", "window"),
    [
        ({"data": [{"id": "m", "max_model_len": 32768}]}, 32768),
        ({"data": [{"id": "other", "context_length": 1}, {"id": "m", "context_length": 262144}]}, 262144),
        ({"data": [{"id": "m", "context_window": 131072, "active": True}]}, 131072),
        ({"data": [{"id": "m", "max_context_length": 131072, "loaded_context_length": 4096}]}, 4096),
        ({"data": [{"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 40960}}]}, 8192),
        ({"data": [{"id": "m", "max_input_tokens": 200000}]}, 200000),
        ({"models": [{"name": "m:latest", "model": "m:latest", "context_length": 4096}]}, 4096),
        ({"default_generation_settings": {"n_ctx": 65536}, "model_alias": "whatever"}, 65536),
        ({"data": [{"id": "m", "context_length": True}]}, 0),
        ({"data": [{"id": "m", "context_length": -5, "meta": None}]}, 0),
        ({"data": [{"id": "n", "context_length": 5}]}, 0),
        ({"data": "m"}, 0),
        ({"data": [None, "m"]}, 0),
        ({"object": "list"}, 0),
        (["m"], 0),
        (None, 0),
    ],
)
def test_the_window_in_a_listing(listing: Any, window: int) -> None:
    assert window_in(listing, "m") == window


def listings(url: str, path: str = "/chat/completions") -> Listings:
    return Listings("p", ProviderSettings(base_url=url, path=path), {"authorization": "Bearer sk-1"})


def found(value: Any) -> Reply:
    return Reply([answer(200, json.dumps(value).encode())])


async def test_a_local_server_is_asked_for_what_it_runs_with_first() -> None:
    nothing = Reply([answer(404, b"not here")])
    running = found({"models": [{"name": "m", "model": "m", "context_length": 4096}]})
    async with Wire([nothing, running]) as wire:
        assert await listings(wire.url).window("m") == (4096, "/api/ps")
    lines = [request.head.split("\r\n")[0] for request in wire.requests]
    assert lines == ["GET /props HTTP/1.1", "GET /api/ps HTTP/1.1"]
    assert wire.requests[0].headers["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize(
    ("path", "asked"),
    [("/chat/completions", "/v1/models"), ("/responses", "/v1/models"), ("/v1/messages", "/v1/v1/models")],
)
async def test_the_listing_stands_beside_the_path_of_the_dialect(path: str, asked: str) -> None:
    nothing = Reply([answer(404)])
    async with Wire(
        [nothing, nothing, nothing, found({"data": [{"id": "b"}, {"id": "a", "max_model_len": 9}]})]
    ) as wire:
        assert await listings(wire.url, path).window("a") == (9, asked.removeprefix("/v1"))
        assert await listings(wire.url, path).ids() == ("a", "b")
    assert wire.requests[3].head.startswith(f"GET {asked} ")


@pytest.mark.parametrize(
    "reply",
    [
        Reply([answer(500)]),
        Reply([answer(200, b"<html>")]),
        Reply([answer(200, b"\xff")]),
        Reply([b"nonsense\r\n\r\n"], "close"),
        Reply([b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{"], "close"),
    ],
)
async def test_a_server_without_a_listing_says_nothing(reply: Reply) -> None:
    async with Wire([reply]) as wire:
        assert await listings(wire.url).window("m") == (0, "the endpoint does not list it")
        assert await listings(wire.url).ids() == ()


async def test_an_endpoint_that_cannot_be_asked_says_nothing() -> None:
    assert await listings("").ids() == ()
    assert await listings("http://127.0.0.1:1/v1").ids() == ()
