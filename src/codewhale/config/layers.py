"""The layers of configuration, lowest first: defaults, config.toml, a trusted project's file, environment,
command line. Each value knows which of them set it."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from codewhale.config import files, values
from codewhale.config.paths import config_file, project_file, refuse_unusable
from codewhale.config.tighten import Rules, tightened
from codewhale.config.values import Path
from codewhale.protocol.errors import ConfigError

Trust = Callable[[str, str], bool]
T = TypeVar("T")

COMMAND_LINE = "command line"
DEFAULT = "default"


class Layer(Struct, frozen=True):
    """One source of values; `origin` is what people are told."""

    origin: str
    tree: dict[str, Any]


class Project(Struct, frozen=True):
    """What of a project's own file counts: `trust(path, sha256)` says whether the one with these bytes may be read,
    `rules` what a key in it may make of the value below; a key without a rule is not a project's to set."""

    trust: Trust
    rules: Rules


class Entry(Struct, frozen=True):
    """One value as it stands: its dotted key, the value, where it came from and how to show it."""

    key: str
    value: Any
    origin: str
    shown: str
    secret: bool = False


class Config:
    """All configuration of one process. `notices` are lines for the person: ignored project files, unknown
    keys; `section` and `check` add to them."""

    def __init__(self, path: str, layers: list[Layer], environ: Mapping[str, str], notices: list[str]) -> None:
        self.path = path
        self.notices = notices
        self._layers = layers
        self._choices = 0
        self._environ = {name: text for name, text in environ.items() if name.startswith("CODEWHALE_")}

    def choose(self, origin: str, tree: dict[str, Any]) -> None:
        """Put a layer between config.toml and a project's file, above those put there before."""
        self._layers.insert(2 + self._choices, Layer(origin, tree))
        self._choices += 1

    def section(self, name: str, kind: type[T]) -> T:
        """The value of top-level key `name` as a `kind` (a Struct, a dict of Structs, a scalar). An absent
        struct or dict is an empty one. Raises ConfigError naming source, key, what came and what is wanted."""
        raw = self._raw(name, kind)
        if raw is None:
            return kind()
        fault = values.find_fault(raw, kind, (name,))
        if fault is not None:
            raise ConfigError(self._explain(fault))
        for path, known in values.unknown_keys(raw, kind, (name,)):
            self._unknown(path, known)
        return msgspec.convert(raw, kind)

    def get(self, path: str) -> Any:
        """The raw value at a dotted key, None where nothing is set. An environment variable gives text."""
        keys = tuple(path.split("."))
        for layer in reversed(self._layers):
            if layer.origin == COMMAND_LINE and (value := values.lookup(layer.tree, keys)) is not None:
                return value
        text = self._environ.get(values.variable(keys), "")
        if text:
            return text
        merged: dict[str, Any] = {}
        for layer in self._layers:
            merged = values.merge(merged, layer.tree)
        return values.lookup(merged, keys)

    def origin(self, path: str) -> str:
        """Where the value at a dotted key comes from: "command line", "environment NAME", a file's path, or
        "default"."""
        return self._origin(tuple(path.split(".")))

    def sources(self, path: Path) -> list[tuple[str, Any]]:
        """Every (origin, raw value) that is set at a key path, lowest layer first: the last one holds."""
        found = [
            (layer.origin, value) for layer in self._layers if (value := values.lookup(layer.tree, path)) is not None
        ]
        if text := self._environ.get(values.variable(path)):
            over = bool(found) and found[-1][0] == COMMAND_LINE
            found.insert(len(found) - over, (f"environment {values.variable(path)}", text))
        return found

    def entries(self, shape: type[Struct]) -> list[Entry]:
        """Every value of the sections that `shape` has, defaults included, with its origin. Raises ConfigError."""
        found = []
        for name, kind in (values.fields(shape) or {}).items():
            tree = msgspec.to_builtins(self.section(name, kind))
            whole = values.merge(_spelled_out(tree, kind), tree)
            for path, value in values.leaves(whole, (name,)):
                secret, line = values.is_secret(path, value), values.shown(path, value)
                found.append(Entry(values.dotted(path), value, self._origin(path), line, secret))
        return found

    def check(self, shape: type[Struct]) -> list[str]:
        """Decode every section of `shape` and look for keys it does not have. Returns all notices. Raises
        ConfigError for the first value that cannot be used."""
        known = values.fields(shape) or {}
        for layer in self._layers:
            for name in layer.tree:
                if name not in known:
                    self._unknown((name,), tuple(known))
        for name, kind in known.items():
            self.section(name, kind)
        return self.notices

    def _raw(self, name: str, kind: Any) -> Any:
        merged = None
        over = None
        for layer in self._layers:
            if name not in layer.tree:
                continue
            if layer.origin == COMMAND_LINE:
                over = layer.tree[name]
            else:
                merged = values.merge(merged, layer.tree[name])
        for variable, path, leaf in values.from_environ(self._environ, (name,), kind, merged):
            try:
                value = values.from_text(self._environ[variable], leaf)
            except msgspec.ValidationError as error:
                raise ConfigError(
                    self._explain(values.Fault(path, self._environ[variable], values.wanted(leaf, error)))
                ) from error
            merged = values.merge(merged, values.nested(path, value)[name])
        return values.merge(merged, over) if over is not None else merged

    def _origin(self, path: Path) -> str:
        found = self.sources(path)
        return found[-1][0] if found else DEFAULT

    def _explain(self, fault: values.Fault) -> str:
        source = self._origin(fault.path)
        source = self.path if source == DEFAULT else source
        key = values.dotted(fault.path)
        came = values.shown(fault.path, fault.received)
        came = came if len(came) <= 100 else came[:99] + "…"
        return f"{source}: {key}: {fault.wanted}; it is {came}"

    def _unknown(self, path: Path, known: tuple[str, ...]) -> None:
        near = values.closest(path[-1], known)
        hint = f"; did you mean {values.dotted((*path[:-1], near))}?" if near else f"; known here: {', '.join(known)}"
        source = self._origin(path)
        line = f"{source}: {values.dotted(path)} is not a known key and does nothing{hint}"
        if line not in self.notices:
            self.notices.append(line)


def _spelled_out(tree: Any, kind: Any) -> Any:
    """Defaults that a struct leaves out of its encoding."""
    known = values.fields(kind)
    if known is None:
        inner = values.entry_kind(kind)
        if inner is None or not isinstance(tree, dict):
            return tree
        return {key: _spelled_out(child, inner) for key, child in tree.items()}
    bare = values.bare(kind)
    whole = msgspec.structs.asdict(msgspec.convert(tree, bare))
    return {name: msgspec.to_builtins(whole[name]) for name in known}


def load(
    home: str,
    workspace: str,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any],
    project: Project,
    defaults: Mapping[str, Any] | None = None,
) -> Config:
    """Read every layer. `overrides` is the command line: dotted keys or trees. `project` says what of a project's file
    counts; a workspace .env is never read. Raises ConfigError."""
    refuse_unusable(home)
    path = config_file(home)
    notices: list[str] = []
    layers = [Layer(DEFAULT, dict(defaults or {})), Layer(path, files.read(path))]
    layers += _project(workspace, project, layers, notices)
    over: dict[str, Any] = {}
    for key, value in overrides.items():
        over = values.merge(over, values.nested(tuple(key.split(".")), value))
    layers.append(Layer(COMMAND_LINE, over))
    return Config(path, layers, environ, notices)


def _project(workspace: str, project: Project, below: list[Layer], notices: list[str]) -> Iterator[Layer]:
    path = project_file(os.path.realpath(workspace))
    try:
        data = files.read_bytes(path)
    except ConfigError as error:
        notices.append(f"project configuration ignored: {error}")
        return
    if data is None:
        return
    import hashlib

    if not project.trust(path, hashlib.sha256(data).hexdigest()):
        notices.append(f"project configuration ignored: {path} is not trusted (codewhale trust list)")
        return
    stands: dict[str, Any] = {}
    for layer in below:
        stands = values.merge(stands, layer.tree)
    tree, refused = tightened(files.parse(path, data), stands, project.rules)
    if refused:
        notices.append(f"{path}: a project can only restrict settings; ignored: {', '.join(refused)}")
    yield Layer(path, tree)
