"""Which key a provider is asked with, where it comes from, and the host it belongs to.

A key belongs to the host that its provider had where the key was said: in the same layer of the configuration or
below it, or at login. It is sent nowhere else, whatever a later layer makes of the base URL.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from codewhale.config import Config
from codewhale.config.layers import COMMAND_LINE, DEFAULT
from codewhale.config.values import is_secret
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.keys import KeyStore, StoredKey
from codewhale.models.known_models import load_known
from codewhale.models.loopback import host_of, on_loopback
from codewhale.protocol.errors import ConfigError

MISSING, NOT_NEEDED = "missing", "not needed"


class Key(Struct, frozen=True):
    """A key that may be sent; `source` is what people are told, `variable` the environment variable it stands in. An
    empty `value` is none. `refused` are keys that were found and must not be sent, each a sentence."""

    value: str = ""
    source: str = MISSING
    variable: str = ""
    refused: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Key({self.source!r})"


class _Candidate(Struct, frozen=True):
    source: str
    value: str
    host: str
    remedy: str
    variable: str = ""
    fault: str = ""


class Keys:
    """The keys of one process: looked up in the order of the candidates below, the first that belongs wins."""

    def __init__(self, config: Config, store: KeyStore, environ: Mapping[str, str], flag: tuple[str, str]) -> None:
        """`flag` is (provider, key) from the command line, the key "" for none."""
        self._config = config
        self._store = store
        self._environ = environ
        self._flag = flag

    def renew(self, config: Config) -> None:
        self._config = config

    def find(self, name: str, settings: ProviderSettings) -> Key:
        host = host_of(settings.base_url)
        refused: list[str] = []
        for found in self._candidates(name, settings):
            if found.fault:
                refused.append(found.fault)
            elif not found.host or found.host == host:
                return Key(found.value, found.source, found.variable, tuple(refused))
            else:
                refused.append(
                    f"the key from {found.source} belongs to {found.host} and is not sent to {host or 'nowhere'}; "
                    f"if it is meant for {host}, {found.remedy}"
                )
        needed = self._needed(name, settings) or (bool(refused) and not is_local(host))
        return Key(source=MISSING if needed else NOT_NEEDED, refused=tuple(refused))

    def _needed(self, name: str, settings: ProviderSettings) -> bool:
        """Whether there is no asking this provider without a key: one is named for it by a person, or it is a hosted
        one. Nothing on this machine needs one."""
        own = self._host(name, 0)
        if not settings.api_key_env or not settings.base_url or is_local(host_of(settings.base_url)):
            return False
        return self._rank(name, "api_key_env") > 0 or not is_local(own)

    def check_headers(self, name: str, settings: ProviderSettings) -> None:
        """Raises ConfigError when a header that holds a secret would go to a host it was not written for."""
        here = host_of(settings.base_url)
        for header, value in settings.headers.items():
            own = self._host(name, self._rank(name, "headers", header))
            if is_secret((header,), value) and own not in ("", here):
                raise ConfigError(
                    f"providers.{name}.headers.{header} was written for {own} and is not sent to {here}; "
                    "set the header where base_url is set"
                )

    def known(self, tables: Mapping[str, ProviderSettings]) -> dict[str, str]:
        """Every key there is to be found, sent or not, for what must never be shown: (name, value)."""
        found = {"api-key of the command line": self._flag[1]}
        for name, settings in tables.items():
            plain = plain_name(name)
            found[f"providers.{plain}.api_key"] = settings.api_key.strip()
            if settings.api_key_env:
                found[f"key {settings.api_key_env}"] = self._variable(settings.api_key_env)
            for header, value in settings.headers.items():
                if is_secret((header,), value):
                    place = f"providers.{plain}.headers.{plain_name(header)} key"
                    found |= {place: value, f"{place} ": value.rpartition(" ")[2]}
        with contextlib.suppress(ConfigError):
            found |= {f"stored key of {plain_name(name)}": row.key for name, row in self._store.all().items()}
        return {name: value for name, value in found.items() if value}

    def _candidates(self, name: str, settings: ProviderSettings) -> Iterator[_Candidate]:
        flag_name, flag = self._flag
        if flag and name == flag_name:
            yield _Candidate(COMMAND_LINE, flag, "", "")
        if settings.api_key.strip():
            origin = self._config.sources(("providers", name, "api_key"))[-1][0]
            owner = self._host(name, self._rank(name, "api_key"))
            remedy = f"set providers.{name}.api_key where base_url is set"
            yield _Candidate(_place(origin), settings.api_key.strip(), owner, remedy)
        yield from self._named(name, settings)
        yield from self._kept(name, settings)
        yield from self._ambient(name, settings)

    def _kept(self, name: str, settings: ProviderSettings) -> Iterator[_Candidate]:
        """The key of a login; the keyring is asked only for one that may be sent."""
        here = host_of(settings.base_url)
        try:
            rows = self._store.all()
            owner = name if name in rows else self._namesake(rows, settings)
            if owner in rows:
                row = rows[owner]
                value = self._store.value(owner, row) if row.host == here else ""
                source = "keyring" if row.keyring else self._store.path
                yield _Candidate(source, value, row.host, f"run: codewhale login {name}")
        except ConfigError as error:
            yield _Candidate("", "", "", "", fault=str(error))

    def _namesake(self, rows: Mapping[str, StoredKey], settings: ProviderSettings) -> str:
        """A provider of the same host and the same variable, whose key serves as well: one host in two dialects."""
        same = (other for other, row in sorted(rows.items()) if row.host == host_of(settings.base_url))
        variable = settings.api_key_env
        found = (other for other in same if self._config.get(f"providers.{other}.api_key_env") == variable)
        return next(found, "") if variable else ""

    def _named(self, name: str, settings: ProviderSettings) -> Iterator[_Candidate]:
        rank = self._rank(name, "api_key_env")
        if rank > 0:
            yield from self._variables(name, (settings.api_key_env,), rank)

    def _ambient(self, name: str, settings: ProviderSettings) -> Iterator[_Candidate]:
        """The variables that usually hold a key of this provider: for its own host alone."""
        if self._rank(name, "api_key_env") == 0 and settings.api_key_env:
            row = load_known().providers.get(name)
            yield from self._variables(name, row.key_envs if row is not None else (settings.api_key_env,), 0)

    def _variables(self, name: str, variables: Iterable[str], rank: int) -> Iterator[_Candidate]:
        for variable in variables:
            if value := self._variable(variable):
                remedy = f"set providers.{name}.api_key_env = {variable!r} where base_url is set"
                yield _Candidate(f"environment {variable}", value, self._host(name, rank), remedy, variable)

    def _variable(self, name: str) -> str:
        return self._environ.get(name, "").strip() if name else ""

    def _rank(self, name: str, *keys: str) -> int:
        """The layer that sets a key of a provider's table: 0 is what is built in."""
        sources = self._config.sources(("providers", name, *keys))
        return _rank(sources[-1][0]) if sources else 0

    def _host(self, name: str, rank: int) -> str:
        """The provider's host as the layers up to `rank` say, "" where they say none."""
        sources = self._config.sources(("providers", name, "base_url"))
        urls = [str(value) for origin, value in sources if _rank(origin) <= rank]
        return host_of(urls[-1]) if urls else ""


def plain_name(name: str) -> str:
    """A name as it may stand in any text: letters, digits, dots and dashes."""
    return re.sub(r"[^\w.-]", "?", name)


def is_local(host: str) -> bool:
    return not host or on_loopback(f"http://{host}")


def _rank(origin: str) -> int:
    if origin == DEFAULT:
        return 0
    return 3 if origin == COMMAND_LINE else 2 if origin.startswith("environment ") else 1


def _place(origin: str) -> str:
    return "the command line" if origin == COMMAND_LINE else origin
