"""Where a base URL leads, and whether that is this machine alone. Apart from the rest of an endpoint because it is
asked at start-up."""

import contextlib
import re

from codewhale.lib.patterns import lazy
from codewhale.process.addresses import address_kind, is_local_name

_LOOPBACK = lazy(
    r"https?://(?:localhost|[a-z0-9.-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?(?:/.*)?", re.IGNORECASE
)
_NEAR = ("loopback", "private", "link-local", "shared")
_HOST = lazy(r"(https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::0*(\d{1,5}))?(?:/|$)", re.IGNORECASE)


def on_loopback(base_url: str) -> bool:
    """Whether requests to this URL never leave the machine."""
    return _LOOPBACK().fullmatch(base_url) is not None


def host_of(base_url: str) -> str:
    """The host that a URL leads to, in lower case, with its port where that is not the scheme's own; "" for no URL.
    Two URLs with the same one may be sent the same key."""
    match = _HOST().match(base_url)
    if match is None:
        return ""
    scheme, host, port = match[1].lower(), match[2].lower(), match[3]
    return host if port in (None, "443" if scheme == "https" else "80") else f"{host}:{port}"


def is_near(base_url: str) -> bool:
    """Whether a URL leads to this machine or its own network, where models may be slow to begin."""
    host = host_of(base_url)
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    here = on_loopback(base_url)
    if not here and (":" in name or name[-1:].isdigit()):
        with contextlib.suppress(ValueError):
            return address_kind(name) in _NEAR
    return here or (bool(name) and is_local_name(name))


def plain_url(base_url: str) -> str:
    """The URL as it may be shown: without a name and password, which no base URL may hold."""
    return re.sub(r"//[^/]*@", "//[hidden]@", base_url)
