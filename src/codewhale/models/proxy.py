"""The proxy that the environment names for an address: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in either case.

Read only where an address is not on this machine; a proxy that cannot be used is an error, never passed by.
"""

import os
from typing import NamedTuple

from codewhale.lib.patterns import lazy
from codewhale.protocol.errors import ConfigError

_PORTS = {"http": 80, "https": 443, "socks4": 1080, "socks4a": 1080, "socks5": 1080, "socks5h": 1080}
_HOST = lazy(r"[A-Za-z0-9._-]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")


class ProxyAddress(NamedTuple):
    """A proxy: of HTTP, itself reached over http or https, or SOCKS; `auth` is (name, password) where it wants one."""

    scheme: str
    host: str
    port: int
    auth: tuple[bytes, bytes] | None


def environment_proxy(scheme: str, host: str, port: int) -> ProxyAddress | None:
    """The proxy for `scheme`://`host`:`port`, None where the environment names none or exempts the host. Raises
    ConfigError for one that cannot be used, without telling its password."""
    if not any(value and key.lower().endswith("_proxy") for key, value in os.environ.items()):
        return None
    from urllib.request import getproxies_environment, proxy_bypass

    proxies = getproxies_environment()
    kind = scheme if proxies.get(scheme) else "all"
    if not proxies.get(kind) or proxy_bypass(f"{host}:{port}"):
        return None
    return _parse(proxies[kind].strip(), f"{kind.upper()}_PROXY")


def _parse(text: str, variable: str) -> ProxyAddress:
    from urllib.parse import unquote_to_bytes, urlsplit

    try:
        parts = urlsplit(text if "://" in text else "http://" + text)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        scheme = host = ""
    if scheme not in _PORTS or not _HOST().fullmatch(host):
        raise ConfigError(f"{variable} is not the URL of a proxy such as http://proxy.example.com:8080")
    auth = None
    if parts.username is not None:
        auth = (unquote_to_bytes(parts.username), unquote_to_bytes(parts.password or ""))
    return ProxyAddress(scheme, host, port or _PORTS[scheme], auth)
