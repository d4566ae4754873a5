"""What a server is, as it is approved: its whole command line, the names of its variables, its address, the bytes
of the files it names, and where a launcher would fetch what nobody has pinned."""

import hashlib
import os
import shlex
import stat
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.lib.text import one_line
from codewhale.mcp.entries import ConfiguredServer, EntryFault, expand
from codewhale.mcp.terms import ServerSpec
from codewhale.process.programs import find_program

MOST_FILES, MOST_FILE_BYTES = 64, 1 << 30
_VERSION = lazy(r"v?\d+\.\d+(\.\d+)?[\w.+-]*")
_DIGEST = lazy(r"@sha256:[0-9a-f]{64}$")
# Launchers, the words behind which the package stands, and where they fetch it.
_NPM, _PYPI, _IMAGES = "registry.npmjs.org", "pypi.org", "the registry of the image"
_LAUNCHERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "npx": ((), _NPM), "bunx": ((), _NPM), "pnpx": ((), _NPM), "npm": (("exec", "x"), _NPM),
    "pnpm": (("dlx",), _NPM), "yarn": (("dlx",), _NPM), "bun": (("x",), _NPM), "uvx": ((), _PYPI),
    "uv": (("tool run", "run"), _PYPI), "pipx": (("run",), _PYPI), "docker": (("run",), _IMAGES),
    "podman": (("run",), _IMAGES), "nerdctl": (("run",), _IMAGES), "deno": (("run",), "the address that it names"),
    "go": (("run",), "proxy.golang.org"),
}  # fmt: skip
# Options that take the next word, so that it is not the package.
_TAKING = frozenset(
    """--registry --cache --python --with --index-url --index --extra-index-url --cwd --dir -e --env --env-file -v
    --volume --mount --name --network --user -u -w --workdir --entrypoint --platform --directory --project""".split()
)
# Options behind which the package stands; -p is one of npx, and takes a version of Python from others.
_PACKAGE = ("--package", "--from", "--spec")


class ServerIdentity(Struct, frozen=True):
    """What is approved of a server. `env` and `headers` are hashes of what is written there by name; `borrowed` the
    variables of the person's that it is handed; `files` hashes by path of what its command line names."""

    program: str
    argv: tuple[str, ...]
    cwd: str
    url: str
    env: dict[str, str]
    headers: dict[str, str]
    borrowed: tuple[str, ...]
    files: dict[str, str]
    sampling: bool
    sandbox: str

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()


class ResolvedServer(Struct, frozen=True):
    """A server as it would be started now."""

    spec: ServerSpec
    identity: ServerIdentity


def resolve(server: ConfiguredServer, environ: Mapping[str, str], workspace: str) -> ResolvedServer:
    """How a server would be started now. Reads the files that it names. Raises EntryFault."""
    borrowed: dict[str, None] = {}

    def text(value: str, key: str) -> str:
        return expand(value, environ, key, lambda name: borrowed.update({name: None}))

    argv = tuple(text(word, "args" if at else "command") for at, word in enumerate(server.argv))
    env = {name: text(value, f"env.{name}") for name, value in server.env.items()}
    headers = {name: text(value, f"headers.{name}") for name, value in server.headers.items()}
    url, folder = text(server.url, "url"), _folder(text(server.cwd, "cwd"), workspace)
    program = _program(argv[0], folder, env.get("PATH") or environ.get("PATH", os.defpath), workspace) if argv else ""
    identity = ServerIdentity(
        program, argv, folder if argv else "", url, _hashes(server.env), _hashes(server.headers), tuple(borrowed),
        dict(_named(argv, folder)) if argv else {}, server.sampling, server.sandbox,
    )  # fmt: skip
    times = server.times
    spec = ServerSpec(
        server.name, (program, *argv[1:]) if argv else (), env, folder, url, headers, times.connect, times.call,
        times.read, (os.path.realpath(workspace),), server.sandbox, server.sampling,
    )  # fmt: skip
    return ResolvedServer(spec, identity)


def place_of(server: ConfiguredServer, workspace: str) -> str:
    """The workspace that an approval holds for; "" where the server is the same in every one."""
    anywhere = not server.argv or server.cwd.startswith(("/", "~", "$"))
    return "" if anywhere else os.path.realpath(workspace)


def card(name: str, file: str, one: ServerIdentity) -> tuple[str, ...]:
    """What a person is shown before a server is approved, a line each."""
    lines = [f"server: {one_line(name, 80)}", f"named in: {one_line(file, 400)}"]
    if one.url:
        lines.append(f"address: {one_line(one.url, 2000)}")
    else:
        lines += [f"program: {one_line(one.program, 400)}", f"command line: {shown_line(one.argv)}"]
        lines.append(f"runs in: {one_line(one.cwd, 400)}, sandbox {one.sandbox}")
    lines += [f"variable: {name} (value {digest[:12]})" for name, digest in sorted(one.env.items())]
    lines += [f"header: {name} (value {digest[:12]})" for name, digest in sorted(one.headers.items())]
    lines += [f"is handed your variable: {name}" for name in one.borrowed]
    lines += [f"file: {one_line(path, 400)} (sha256 {digest[:12]})" for path, digest in sorted(one.files.items())]
    lines += ["may ask the model questions, paid from the session's budget"] * one.sampling
    lines += [f"fetches: {line}" for line in fetched(one.argv)]
    return tuple(lines)


def shown_line(argv: tuple[str, ...]) -> str:
    """A command line, all of it, as a shell would take it."""
    return " ".join(one_line(shlex.quote(word), 10_000) for word in argv)


def fetched(argv: tuple[str, ...]) -> tuple[str, ...]:
    """What a launcher would fetch from where, and whether anybody has pinned what that is."""
    name = os.path.basename(argv[0]) if argv else ""
    if name not in _LAUNCHERS:
        return ()
    verbs, where = _LAUNCHERS[name]
    words = list(argv[1:])
    if verbs:
        verb = next((verb for verb in verbs if " ".join(words).startswith(f"{verb} ")), "")
        if not verb:
            return ()
        words = words[len(verb.split()) :]
    package = _package(words, (*_PACKAGE, "-p") if where == _NPM else _PACKAGE)
    if not package:
        return (f"{name} fetches what it runs from {where}; which package is not to be seen",)
    pinned = bool(_DIGEST().search(package)) if where == _IMAGES else _is_pinned(package)
    if name == "deno" and "://" not in package and not package.startswith(("npm:", "jsr:")):
        return ()
    if name in ("go", "uv") and package.startswith((".", "/")):
        return ()
    end = "that version" if pinned else "nobody has pinned which version: what runs may be another one tomorrow"
    return (f"{name} fetches {one_line(package, 200)} from {where} and runs it; {end}",)


def _package(words: list[str], naming: tuple[str, ...]) -> str:
    """The package among the words behind a launcher; "" where there is none."""
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
        elif word in naming and at + 1 < len(words):
            return words[at + 1]
        elif word.startswith(tuple(f"{option}=" for option in naming)):
            return word.partition("=")[2]
        elif word in _TAKING or word == "-p":
            skip = True
        elif word and not word.startswith("-"):
            return word
    return ""


def _is_pinned(package: str) -> bool:
    name, _, version = package.rpartition("==" if "==" in package else "@")
    return bool(name) and bool(_VERSION().fullmatch(version)) and version.count(".") >= 2


def _folder(cwd: str, workspace: str) -> str:
    folder = os.path.join(os.path.realpath(workspace), os.path.expanduser(cwd))
    if not os.path.isdir(folder):
        raise EntryFault("cwd", f"is {one_line(cwd, 200)}, which is no folder", "Name a folder that there is")
    return os.path.normpath(folder)


def _program(name: str, folder: str, places: str, workspace: str) -> str:
    """Where the program of a server is. A bare name never means one that lies in the workspace."""
    if "/" in name:
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(name)))
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            text = f"is {one_line(name, 200)}, which is no program"
            raise EntryFault("command", text, "Name a file that can be run, or an interpreter with the file in args")
        return path
    path = find_program(name, workspace, places) or ""
    if not path:
        text = f"is {one_line(name, 200)}, which is not on PATH"
        raise EntryFault("command", text, "Install it, or write its whole path")
    return path


def _hashes(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest() for name, value in texts.items()}


def _named(argv: tuple[str, ...], folder: str) -> Iterator[tuple[str, str]]:
    """The files that a command line names, with their hashes. A program that was found by its bare name is known by
    its place."""
    seen = set[str]()
    for word in _words(argv):
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(word)))
        if path in seen or not os.path.isfile(path):
            continue
        if len(seen) == MOST_FILES:
            raise EntryFault("args", f"names more than {MOST_FILES} files", "Put the command line into one script")
        seen.add(path)
        digest = _hashed(path)
        if not digest:
            key, text = "args", f"names {one_line(path, 200)}, which cannot be read or is too large"
            raise EntryFault(
                "command" if word == argv[0] else key, text, "Name a file of 1 GB at most that you can read"
            )
        yield path, digest


def _hashed(path: str) -> str:
    """The hash of a regular file, "" for one that cannot be read or is too large. An interpreter may be large: it is
    never in memory as a whole."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            fine = stat.S_ISREG(status.st_mode) and status.st_size <= MOST_FILE_BYTES
            return hashlib.file_digest(file, "sha256").hexdigest() if fine else ""
    except (OSError, ValueError):
        return ""


def _words(argv: tuple[str, ...]) -> Iterator[str]:
    if "/" in argv[0]:
        yield argv[0]
    for word in argv[1:]:
        if not word or "\0" in word or len(word) > 4096:
            continue
        yield word
        yield word.partition("=")[2] or word
        if any(letter.isspace() for letter in word):
            try:
                yield from shlex.split(word)
            except ValueError:
                yield from word.split()
