"""Where a call may dial: URLs, host names in every spelling, ports and addresses. Pure: names are resolved elsewhere,
and every address that a name leads to is asked about here."""

import base64
import re
import socket
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from codewhale.process.addresses import address_kind, is_local_name

PORTS = frozenset({80, 443, 8000, 8008, 8080, 8443, 8888})
MAX_URL = 8192
MAX_QUERY = 1024

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"(https?)://([^/?#]*)([/?#].*)?", re.IGNORECASE | re.DOTALL)
_HOST_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_UNUSED_ENDS = frozenset({"invalid", "test", "example"})
_METADATA = frozenset(
    "metadata instance-data metadata.google.internal metadata.goog metadata.azure.com metadata.tencentyun.com"
    " metadata.platformequinix.com rancher-metadata kubernetes kubernetes.default host.docker.internal"
    " gateway.docker.internal".split()
)


class Judged(Struct, frozen=True):
    """What is said of a URL or a host. `rule` and `reason` tell why it is refused, "" where it is not; `host` is in
    lower case, an address in its usual spelling; `target` is path and query as they would be sent."""

    ok: bool
    rule: str = ""
    reason: str = ""
    scheme: str = ""
    host: str = ""
    port: int = 0
    target: str = ""


class Leak(Struct, frozen=True):
    """Why a URL must be asked about: it may carry out what must stay."""

    rule: Literal["network.secret", "network.query"]
    reason: str


def judge_url(url: str, ports: frozenset[int] = PORTS) -> Judged:
    """Whether a URL may be dialled as far as it can be told without resolving its host: http or https, no name or
    password, an ordinary port, a public host."""
    if len(url) > MAX_URL:
        return _no("network.url", f"the URL is longer than {MAX_URL} characters")
    if any(char <= " " or char == "\x7f" or char == "\\" for char in url):
        return _no("network.url", "the URL contains a space, a control character or a backslash; write those as %XX")
    match = _AUTHORITY.fullmatch(url)
    if match is None:
        named = _SCHEME.match(url)
        scheme = f"{named[1].lower()}: is not opened, " if named and not url.lower().startswith("http") else ""
        return _no("network.scheme", f"{scheme}only http:// and https:// URLs with a host can be")
    scheme, authority = match[1].lower(), match[2]
    if "@" in authority:
        return _no("network.userinfo", "the URL contains a user name or password")
    place = _HOST_PORT.fullmatch(authority)
    if place is None:
        return _no("network.host", f"{authority!r} is not a host, with or without a port")
    judged = judge_host(place[1])
    if not judged.ok:
        return judged
    port = int(place[2]) if place[2] and len(place[2]) < 6 else (0 if place[2] else (443 if scheme == "https" else 80))
    if port not in ports:
        shown = ", ".join(map(str, sorted(ports)))
        return _no("network.port", f"port {place[2]} is not a web port ({shown})")
    return Judged(True, scheme=scheme, host=judged.host, port=port, target=_target(match[3] or ""))


def judge_host(host: str) -> Judged:
    """Whether a host may be dialled as far as its spelling tells: an address must be public in whatever spelling
    resolvers take, and a name one of the public tree."""
    name = _ascii(host)
    if name.startswith("["):
        return _judge_literal(name.strip("[]"), host)
    name = name.removesuffix(".")
    labels = name.split(".")
    if not name or len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        return _no("network.host", f"{host!r} is not a host name")
    if _NUMBER.fullmatch(labels[-1]):
        address = _numeric(name)
        if not address:
            return _no("network.host", f"{host!r} ends in a number and is not an address")
        return _judge_literal(address, host)
    if name in _METADATA:
        return _no("network.metadata", f"{host} gives out the credentials of this machine")
    if is_local_name(name) or labels[-1] in _UNUSED_ENDS:
        return _no("network.private", f"{host} is this machine or in its own network")
    return Judged(True, host=name)


def leak(url: str, secrets: Iterable[str] = (), most: int = MAX_QUERY) -> Leak | None:
    """Why sending this URL may give something away: it holds a known secret, in any spelling that is easily undone, or
    more than `most` bytes of query and fragment."""
    forms = _readings(url)
    if any(
        form in reading for secret in secrets if len(secret) >= 8 for form in _spellings(secret) for reading in forms
    ):
        return Leak("network.secret", "the URL contains one of the user's secrets")
    size = len(url) - min((at for at in (url.find("?"), url.find("#")) if at >= 0), default=len(url))
    if size > most:
        return Leak("network.query", f"the URL has {size} bytes of query, more than {most}")
    longest = max((len(part) for part in re.split(r"[/.?#&=:@]", url)), default=0)
    if longest > most // 4:
        return Leak("network.query", f"the URL contains one word of {longest} characters")
    return None


def _judge_literal(address: str, shown: str) -> Judged:
    if "%" in address:
        return _no("network.private", f"{shown} is an address of this machine")
    try:
        kind = address_kind(address)
    except ValueError:
        return _no("network.host", f"{shown!r} is not an address")
    if kind == "public":
        return Judged(True, host=address)
    place = {
        "loopback": "this machine",
        "metadata": "the credentials of this machine",
        "translated": "an address inside another",
        "reserved": "not on the public internet",
        "multicast": "a broadcast or multicast address",
    }.get(kind, "the network of this machine")
    return _no(f"network.{'metadata' if kind == 'metadata' else 'private'}", f"it is {place} ({kind})")


def _numeric(host: str) -> str:
    """The IPv4 address that resolvers read in one to four decimal, octal or hexadecimal parts, "" for none."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return ""


def _ascii(host: str) -> str:
    """The host in lower-case ASCII as resolvers are asked (IDNA), "" where it has none."""
    if host.isascii():
        return host.lower()
    try:
        return host.encode("idna").decode().lower()
    except UnicodeError:
        return ""


def _target(rest: str) -> str:
    from urllib.parse import quote

    path = quote(rest.partition("#")[0], safe="/?&=%:@!$'()*+,;~-._[]|")
    return path if path.startswith("/") else "/" + path


def _readings(url: str) -> list[str]:
    """The URL as it stands and with its escapes undone, up to three times over."""
    from urllib.parse import unquote_plus

    readings = [url]
    while len(readings) < 4 and (plain := unquote_plus(readings[-1])) != readings[-1]:
        readings.append(plain)
    return [*readings, *(reading[::-1] for reading in readings)]


def _spellings(secret: str) -> set[str]:
    """A secret as it is, in hexadecimal, and what every place of it in a text looks like in Base64."""
    data = secret.encode("utf-8", "replace")
    spellings = {secret, data.hex(), data.hex().upper()}
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + data).decode()
        inner = coded[(0, 2, 3)[shift] : len(coded.rstrip("=")) - ((shift + len(data)) % 3 != 0)]
        spellings |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in spellings if len(form) >= 8}


def _no(rule: str, reason: str) -> Judged:
    return Judged(False, rule, reason)
