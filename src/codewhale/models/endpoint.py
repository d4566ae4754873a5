"""Where a provider is: its base URL taken apart and checked, and the headers of every request to it. The key travels
in those requests and nowhere else."""

import re

import msgspec

from codewhale.lib.patterns import lazy
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.loopback import host_of, is_near, on_loopback, plain_url
from codewhale.models.proxy import ProxyAddress, environment_proxy
from codewhale.protocol.errors import ConfigError

_URL = lazy(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?(?P<path>/[!-~]*)?"
)
_TOKEN = lazy(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = lazy(r"[\t -~\x80-\xff]*")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


# What the dialects' paths end with, behind the version.
ENDINGS = ("/chat/completions", "/messages", "/responses", "/completions")
_VERSION = lazy(r"/v\d[a-z0-9]*$")


def addresses(written: str) -> tuple[str, ...]:
    """The base URLs that an address may mean as a person writes it, likeliest first: a port alone is this machine's,
    the scheme may be left out, and what stands behind the version is taken off. Raises ConfigError."""
    text = written.strip().strip("'\"<>").strip()
    scheme, mark, rest = text.partition("://")
    scheme, rest = (scheme.lower(), rest) if mark else ("", text)
    if not rest or re.search(r"\s", text):
        raise ConfigError(
            f"{text!r} is not an address such as http://127.0.0.1:8000/v1: it {'has spaces' if rest else 'is empty'}"
        )
    if scheme not in ("", "http", "https"):
        raise ConfigError(f"{text!r} is not an address such as http://127.0.0.1:8000/v1: {scheme}:// is not supported")
    rest = re.split(r"[?#]", rest)[0].rstrip("/")
    rest = f"127.0.0.1:{rest.lstrip(':')}" if rest.lstrip(":").isdecimal() else rest
    rest = next((rest.removesuffix(end) for end in (*ENDINGS, "/models") if rest.endswith(end)), rest).rstrip("/")
    rest = re.sub(r"^(?:0\.0\.0\.0|\[::\])(?=[:/]|$)", "127.0.0.1", rest)  # where servers say that they listen
    here = on_loopback(f"http://{rest}")
    both = here or (not scheme and is_near(f"http://{rest}"))
    schemes = (scheme or ("http" if here else "https"), *(("http", "https") if both else ()))
    return tuple(f"{one}://{rest}" for one in dict.fromkeys(schemes))


def name_of(url: str) -> str:
    """A short name for what is at a base URL."""
    host = host_of(url)
    bare, _, port = host.rpartition(":") if host[-1:].isdecimal() and ":" in host else (host, "", "")
    if on_loopback(url):
        return f"local-{port}" if port else "local"
    labels = re.sub(r"[^a-z0-9.-]", "", bare).split(".")
    return "-".join(labels) if labels[-1].isdecimal() or len(labels) < 2 else labels[-2]


def in_place(settings: ProviderSettings, path: str, as_written: bool) -> ProviderSettings:
    """The settings with the address of a dialect's requests: people write it with and without its version, and some
    paste all of it. `path` is the dialect's own; an address without a path gets a version unless it is known
    `as_written`."""
    base = settings.base_url.rstrip("/")
    if settings.path or not path or not base or "?" in base:
        return msgspec.structs.replace(settings, path=settings.path or path)
    bare = path.removeprefix("/v1")
    ending = next((ending for ending in ENDINGS if base.endswith(ending)), "")
    base = base.removesuffix(ending)
    if ending or _VERSION().search(base):
        path = bare
    elif path == bare and not as_written and base.count("/") == 2:
        base += "/v1"
    return msgspec.structs.replace(settings, base_url=base, path=path)


def other_place(settings: ProviderSettings, path: str) -> ProviderSettings | None:
    """The same endpoint with its version left out, or put in: what to ask where there is nothing at the first."""
    bare = path.removeprefix("/v1")
    base = settings.base_url.rstrip("/")
    whole = base + (settings.path or path)
    if bare not in ENDINGS or not whole.endswith(bare):
        return None
    before = whole.removesuffix(bare)
    if _VERSION().search(before) and not before.endswith("/v1"):
        return None
    before = before.removesuffix("/v1") if before.endswith("/v1") else before + "/v1"
    return msgspec.structs.replace(settings, base_url=before, path=bare)


def is_exposed(settings: ProviderSettings) -> bool:
    """Whether requests would leave this machine unencrypted, which nobody has allowed."""
    base = settings.base_url.lower()
    return base.startswith("http:") and not on_loopback(base) and not settings.facts.get("allow_insecure_http")


class Endpoint:
    """One base URL, checked: `scheme`, `host` as a person wrote it, `port`, `target` (path and query), `headers` by
    lower-case name with all but the length, and the `proxy` on the way, None for none and always for loopback."""

    def __init__(
        self, name: str, settings: ProviderSettings, headers: dict[str, str], path: str = "/chat/completions"
    ) -> None:
        """`headers` and `path` are the dialect's own; those of the settings win. Raises ConfigError."""
        match = _URL().fullmatch(settings.base_url)
        key = f"providers.{name}.base_url"
        shown = plain_url(settings.base_url)
        if match is None or "#" in (match["path"] or ""):
            raise ConfigError(f"{key} = {shown!r} is not a URL such as https://api.example.com/v1")
        self.scheme: str = match["scheme"]
        self.host: str = match["host"]
        loopback = on_loopback(settings.base_url)
        if is_exposed(settings):
            raise ConfigError(
                f"{shown} is not encrypted: others in the network could read the key and your code. Use https, or "
                f"allow it: codewhale config set providers.{name}.facts.allow_insecure_http true"
            )
        self.port = int(match["port"] or (443 if self.scheme == "https" else 80))
        if not 0 < self.port < 65536:
            raise ConfigError(f"{key} = {shown!r} has a port that does not exist")
        self.target = (match["path"] or "").rstrip("/") + (settings.path or path)
        if not re.fullmatch(r"/[!-~]*", self.target) or "#" in self.target:
            raise ConfigError(f"providers.{name}.path = {settings.path!r} is not a URL path such as /chat/completions")
        self.headers = {"host": self.host + (f":{match['port']}" if match["port"] else "")}
        self.headers |= _checked(name, headers, settings.headers)
        self.proxy: ProxyAddress | None = None
        if not loopback:
            self.proxy = environment_proxy(self.scheme, self.host.strip("[]"), self.port)


def _checked(name: str, ours: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "user-agent": "codewhale",
        **ours,
    }
    for key, value in theirs.items():
        if not _TOKEN().fullmatch(key) or not _VALUE().fullmatch(value) or key.lower() in _OURS:
            raise ConfigError(f"providers.{name}.headers: {key!r} is not a header that you can set")
        headers[key.lower()] = value
    if not all(map(_VALUE().fullmatch, headers.values())):
        raise ConfigError(
            f"the key of provider {name} holds characters that an HTTP header cannot contain; check where it is set"
        )
    return headers
