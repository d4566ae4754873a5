"""Logging in by OAuth, and tokens that are made fresh: by one process at a time, at the endpoint that gave them and
nowhere else."""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from codewhale.mcp.frames import AskAnswer, Open
from codewhale.mcp.terms import LoginOptions, ServerFailed

AHEAD_SECONDS = 30  # before its end a token is made fresh, or in the last tenth of its time
AGAIN_SECONDS = 30.0  # between two tries, where the endpoint did not answer
LOCK_TRIES, LOOK_SECONDS = 1200, 0.05
SETTLE_SECONDS = 4.0
_REFUSED = (400, 401, 403)

AskPerson = Callable[[str, dict[str, Any]], Awaitable[AskAnswer]]
Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]


class LoginFlow:
    """A login and its tokens, which the harness keeps. Where no person is there, only tokens that are kept are used
    and made fresh. `send` sends a request beside the protocol."""

    def __init__(self, order: Open, ask: AskPerson, send: Send) -> None:
        self._spec = order.spec
        self._back = order.back
        self._options = order.login
        self._ask = ask
        self._send = send
        self._kept: dict[str, Any] = {}
        self._lock = ""
        self._renewing: asyncio.Task[None] | None = None
        self._not_before = 0.0

    async def provider(self) -> OAuthClientProvider | None:
        """What adds tokens to requests; None where there are none and nobody could log in."""
        await self._read()
        if not self._back and not self._kept.get("tokens"):
            return None
        options = self._options
        if options.client_id:
            self._kept["client"] = _registered(options, self._back)
        metadata = OAuthClientMetadata(
            client_name="CodeWhale",
            redirect_uris=[AnyUrl(self._back or "http://127.0.0.1/callback")],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        )
        self._provider = _Provider(
            self._spec.url, metadata, self, self._visit, self._code, options.metadata_url or None
        )
        return self._provider

    # ------------------------------------------------------------------ what the SDK asks

    async def get_tokens(self) -> OAuthToken | None:
        """Without the refresh token: the SDK would send it to an endpoint that it guesses."""
        found = self._kept.get("tokens")
        return _bare(OAuthToken.model_validate(found)) if found else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep what a login gave, with where it came from."""
        endpoint, resource = self._provider.giver()
        await self._keep({"endpoint": endpoint, "resource": resource, **_dated(tokens)})

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        found = self._kept.get("client")
        return OAuthClientInformationFull.model_validate(found) if found else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """A client belongs to one issuer: tokens of a former one do not go with it."""
        self._kept = {}
        await self._keep({"client": client_info.model_dump(mode="json", exclude_none=True)})

    # ------------------------------------------------------------------ making it fresh

    async def current(self, denied: str = "") -> OAuthToken | None:
        """The token to use. One that ran out, or that the server has `denied`, is made fresh before, if it can be."""
        if self._is_old(denied):
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew(denied))
            await asyncio.shield(self._renewing)  # a cancel must not lose a token that takes the place of another
        return await self.get_tokens()

    async def settle(self) -> None:
        """Wait for a token that is on its way."""
        if self._renewing is not None and not self._renewing.done():
            await asyncio.wait((self._renewing,), timeout=SETTLE_SECONDS)

    def _is_old(self, denied: str) -> bool:
        tokens = self._kept.get("tokens")
        if not tokens or time.monotonic() < self._not_before:
            return False
        if denied:
            return bool(tokens.get("access_token") == denied)
        return self._renewable() and 0 < self._kept.get("until", 0) <= time.time()

    def _renewable(self) -> bool:
        kept = self._kept
        return bool(kept.get("tokens", {}).get("refresh_token") and kept.get("endpoint") and kept.get("client"))

    async def _renew(self, denied: str) -> None:
        """Make the tokens fresh under the lock, unless another process has done so meanwhile."""
        try:
            async with _locked(self._lock):
                await self._read(renews=True)
                try:
                    if self._is_old(denied) and self._renewable():
                        await self._take(await self._send(self._provider.refreshing(self._kept)))
                finally:
                    await self._asked("renewed", {"address": self._spec.url})
        except (OSError, TimeoutError, ValidationError, httpx2.HTTPError):
            self._not_before = time.monotonic() + AGAIN_SECONDS

    async def _take(self, answer: httpx2.Response) -> None:
        before = self._kept["tokens"]
        if answer.status_code in (200, 201):
            fresh = OAuthToken.model_validate_json(answer.content)
            fresh.scope = fresh.scope or before.get("scope")
            fresh.refresh_token = fresh.refresh_token or before["refresh_token"]
            await self._keep(_dated(fresh))
        elif answer.status_code in _REFUSED:  # it will not be taken another time
            await self._keep({"tokens": {key: value for key, value in before.items() if key != "refresh_token"}})
        else:
            self._not_before = time.monotonic() + AGAIN_SECONDS

    # ------------------------------------------------------------------ the harness, and the person

    async def _read(self, renews: bool = False) -> None:
        found = await self._asked("tokens", {"address": self._spec.url, "renews": renews})
        self._kept, self._lock = found.get("login", {}), str(found.get("lock", ""))

    async def _keep(self, more: dict[str, Any]) -> None:
        self._kept = {**self._kept, **more}
        await self._asked("keep", {"address": self._spec.url, "login": self._kept})

    async def _visit(self, url: str) -> None:
        if not self._back:
            raise login_needed(self._spec.name)
        await self._asked("visit", {"url": url})

    async def _code(self) -> AuthorizationCodeResult:
        found = await self._asked("code", {})
        return AuthorizationCodeResult(code=str(found.get("code", "")), state=found.get("state"), iss=found.get("iss"))

    async def _asked(self, what: str, data: dict[str, Any]) -> dict[str, Any]:
        answer = await self._ask(what, data)
        if answer.refused:
            raise ServerFailed("auth", f"The login to {self._spec.name} came to nothing: {answer.refused}.")
        return answer.data


class _Provider(OAuthClientProvider):
    """The SDK's flow over tokens that `LoginFlow` makes fresh; no refresh token comes into its hands but to be kept."""

    def __init__(self, url: str, metadata: OAuthClientMetadata, login: LoginFlow, *ways: Any) -> None:
        super().__init__(url, metadata, login, *ways)
        self._login = login

    def giver(self) -> tuple[str, str]:
        """The endpoint that gives tokens in this flow, and the resource that they are for."""
        context = self.context
        named = context.should_include_resource_param(context.protocol_version)
        return self._get_token_endpoint(), context.get_resource_url() if named else ""

    def refreshing(self, kept: dict[str, Any]) -> httpx2.Request:
        """The request for fresh tokens, to the endpoint that gave those that are kept."""
        self.context.client_info = client = OAuthClientInformationFull.model_validate(kept["client"])
        data = {
            "grant_type": "refresh_token", "refresh_token": str(kept["tokens"]["refresh_token"]),
            "client_id": client.client_id, **({"resource": kept["resource"]} if kept.get("resource") else {}),
        }  # fmt: skip
        data, headers = self.context.prepare_token_auth(data, {})
        return httpx2.Request("POST", kept["endpoint"], data=data, headers=headers)

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        self._use(self.context.current_tokens)

    def _use(self, tokens: OAuthToken | None) -> None:
        self.context.current_tokens = _bare(tokens) if tokens is not None else None
        self.context.token_expiry_time = None

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The SDK's, with fresh tokens before it, and once more where the server denies those."""
        self._use(tokens := await self._login.current())
        used = tokens.access_token if tokens is not None else ""
        flow = super()._auth_flow(request)
        try:
            asked = await anext(flow)
            while True:
                answer = yield asked
                if used and asked is request and answer.status_code == 401:
                    tokens, before, used = await self._login.current(denied=used), used, ""
                    if tokens is not None and tokens.access_token != before:
                        self._use(tokens)
                        self._add_auth_header(request)
                        answer = yield request
                asked = await flow.asend(answer)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()


def login_needed(name: str) -> ServerFailed:
    """A person must log in first."""
    return ServerFailed("auth", f"The MCP server {name} asks for a login. Run: codewhale mcp login {name}")


@contextlib.asynccontextmanager
async def _locked(path: str) -> AsyncIterator[None]:
    """Hold a lock against other processes, and against other flows of this one. Raises OSError, TimeoutError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(LOCK_TRIES):
            if _took(handle):
                break
            await asyncio.sleep(LOOK_SECONDS)
        else:
            raise TimeoutError
        yield
    finally:
        os.close(handle)


def _took(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _bare(tokens: OAuthToken) -> OAuthToken:
    return tokens.model_copy(update={"refresh_token": None})


def _dated(tokens: OAuthToken) -> dict[str, Any]:
    """Tokens with the time at which they are made fresh; 0 for those that do not say how long they hold."""
    lasts = tokens.expires_in
    until = 0.0 if lasts is None else time.time() + lasts - min(AHEAD_SECONDS, lasts / 10)
    return {"tokens": tokens.model_dump(mode="json", exclude_none=True), "until": until}


def _registered(options: LoginOptions, back: str) -> dict[str, Any]:
    method = "client_secret_basic" if options.client_secret else "none"
    secret = {"client_secret": options.client_secret} if options.client_secret else {}
    return {
        "client_id": options.client_id, "redirect_uris": [back or "http://127.0.0.1/callback"],
        "token_endpoint_auth_method": method, **secret,
    }  # fmt: skip
