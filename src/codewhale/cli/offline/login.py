"""`codewhale login` and `logout`: a key kept for the host that its provider has now."""

from collections.abc import Mapping

from msgspec import Struct

from codewhale.app.routes import Routes, open_routes
from codewhale.app.settings import open_config
from codewhale.models.keys import KeyStore
from codewhale.models.loopback import host_of
from codewhale.protocol.errors import ConfigError


class LoginResult(Struct, frozen=True):
    """Where a key is kept and for which host; `wins` is the source of a key that is used before it, "" for none."""

    place: str
    host: str
    wins: str


def login_host(home: str, environ: Mapping[str, str], name: str) -> str:
    """The host that a key of provider `name` would be kept for. Raises ConfigError for a provider that is not known or
    has no host, or whose address cannot be used."""
    return _host(_routes(home, environ), name)


def log_in(home: str, environ: Mapping[str, str], name: str, key: str, keyring: bool = False) -> LoginResult:
    """Keep a key. Raises ConfigError, and then nothing has changed."""
    routes = _routes(home, environ)
    host, store = _host(routes, name), KeyStore(home)
    store.put(name, key, host, keyring)
    used = routes.key(name)
    return LoginResult("the keyring" if keyring else store.path, host, used.source if used.value != key else "")


def log_out(home: str, environ: Mapping[str, str], name: str) -> tuple[bool, str]:
    """Forget a key: whether there was one, and the source of the key that is used from now on, "" for none. Raises
    ConfigError for a name that is neither kept nor known."""
    removed = KeyStore(home).remove(name)
    routes = _routes(home, environ)
    if removed and name not in routes.tables:
        return True, ""
    left = routes.key(name)
    return removed, left.source if left.value else ""


def _routes(home: str, environ: Mapping[str, str]) -> Routes:
    return open_routes(home, open_config(home, home, environ, {}), environ)


def _host(routes: Routes, name: str) -> str:
    settings = routes.settings(name)
    host = host_of(settings.base_url)
    if not host:
        raise ConfigError(f"provider {name} has no base_url, so there is nowhere to send a key")
    routes.build(name, "")
    return host
