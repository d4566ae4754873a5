"""What flows through a line: text from the network or an encoding into a shell, secrets and files to the outside."""

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec import Struct

from codewhale.permissions.shell.harm import Harm, ShellCall, secret_word, written
from codewhale.permissions.shell.parse import Redirect
from codewhale.permissions.shell.table import harm, roles
from codewhale.permissions.shell.words import UNKNOWN, Word

_ESCAPES = re.compile(r"\\(?:x[0-9a-fA-F]|0?[0-7]{2,3}|u[0-9a-fA-F])")
_STDIN = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/fd/63"))
_IDENTITIES = frozenset(
    "-i --key --cert -E --cacert --capath --private-key --certificate --ca-certificate --ca-directory".split()
)
_CODE_FROM = re.compile(
    r"b64|base64|unhexlify|fromhex|pack\(|rot|decode|urlopen|requests\.|https?://|socket|fetch\(", re.I
)
_GIT_SENDS = frozenset(("push", "ls-remote", "fetch", "clone"))
# What runs or installs the file that it names.
_STARTERS = frozenset("source . exec java dpkg rpm installer pip pip3 apt apt-get go make docker".split())
_SENDERS = frozenset(("senders", "fetchers", "lookups"))
_WHOLE = re.compile(r"(?:^|\s)(?:~|/|/root|/home(?:/\w+)?|/etc|/var)/?(?=\s|$)")


class DataFlow(Struct):
    """The calls of a line, those of them that can be part of harm other than by what they print, the ones that feed
    each command (by the command's id), and its redirections."""

    calls: list[ShellCall]
    telling: list[ShellCall]
    feeding: dict[int, list[ShellCall]]
    redirects: list[Redirect]

    def sources(self, call: ShellCall) -> list[ShellCall]:
        """The calls whose output a call reads or carries in its words."""
        return self.feeding.get(id(call.command), [])


def decodes(call: ShellCall) -> bool:
    """Whether a command turns encoded text into plain text."""
    name, texts = call.name, call.texts
    if name in ("base64", "base32", "basenc", "openssl", "gpg", "gbase64", "age"):
        return any(text in ("--decode", "--decrypt") or re.fullmatch(r"-\w*[dD]\w*", text) for text in texts)
    if name == "xxd":
        return "r" in call.letters()
    if name in ("gzip", "bzip2", "xz", "zstd", "lz4"):
        return "d" in call.letters() or call.has("--decompress", "--uncompress")
    if name in ("printf", "echo"):
        return any(_ESCAPES.search(text) for text in texts) or (name == "printf" and "-v" in texts)
    return "decoders" in call.roles.sets


def fetches(call: ShellCall) -> bool:
    """Whether what a command prints comes from the network, or is decoded by the code it is given."""
    if "interpreters" in call.roles.sets:
        return bool(_CODE_FROM.search(call.text))
    return "fetchers" in call.roles.sets or (call.name == "openssl" and "s_client" in call.texts)


def runs_input(call: ShellCall) -> bool:
    """Whether a command runs what it reads or carries: a shell or interpreter without a script, eval, source."""
    if call.name in ("eval", "source", ".", "crontab", "at", "batch", "parallel") or UNKNOWN in call.words[0].text:
        return True
    if call.name == "xargs":
        return any("shells" in roles(posixpath.basename(text)).sets for text in call.texts)
    if "shells" not in call.roles.sets and "interpreters" not in call.roles.sets:
        return False
    if call.name in ("awk", "gawk", "mawk", "sqlite3", "gdb"):
        return False
    operands = call.operands()
    return not operands or operands[0] in _STDIN or call.command.carries or "-s" in call.texts or UNKNOWN in operands[0]


def may_run_input(calls: list[ShellCall], redirects: list[Redirect]) -> bool:
    """Whether something in a line may run what the line is given as its input."""
    kept = any(">" in redirect.op for redirect in redirects) or any("writes_all" in call.roles.sets for call in calls)
    for call in calls:
        if runs_input(call) or "fed" in call.roles.sets:
            return True
        if kept and ("/" in call.words[0].text or not call.roles.sets.isdisjoint(("shells", "interpreters"))):
            return True
    return False


def remote_code(flow: DataFlow) -> Iterator[Harm]:
    """Text from the network or from an encoding that a command of the line runs."""
    for call in flow.telling:
        for source in flow.sources(call) if call.command.feeds and runs_input(call) else ():
            if fetches(source):
                yield Harm("floor.remote-code", f"{call.name} runs what {source.name} downloads")
            if decodes(source):
                yield Harm("floor.remote-code", f"{call.name} runs encoded text")
    if ran := _fetched_then_run(flow):
        yield Harm("floor.remote-code", f"{ran} is downloaded and run in one line")


def _fetched_then_run(flow: DataFlow) -> str:
    files: set[str] = set()
    folders: set[str] = set()
    hidden = {id(call.command) for call in flow.calls if call.roles.hides and (fetches(call) or decodes(call))}
    if not hidden and not any(call.name == "git" and call.texts[:1] == ["clone"] for call in flow.telling):
        return ""
    for redirect in flow.redirects:
        if ">" in redirect.op and any(id(source) in hidden for source in redirect.feeds):
            files.add(posixpath.basename(redirect.target.text))
    for call in flow.calls:
        if call.name == "git" and call.texts[:1] == ["clone"]:
            folders.update(re.sub(r"\.git$", "", posixpath.basename(text.rstrip("/"))) for text in call.operands()[1:3])
        elif fetches(call) or call.name in ("base64", "openssl", "xxd", "gpg"):
            files.update(_saved(call))
        elif call.name == "tee" and any(id(source) in hidden for source in call.command.feeds):
            files.update(map(posixpath.basename, call.operands()))
        for text in _run(call, files) if files or folders else ():
            parts = posixpath.normpath(posixpath.join(call.command.where, text)).split("/")
            if parts[-1] in files - {"", "-", "null", "stdout"} or ("/" in text and folders.intersection(parts)):
                return text
    return ""


def _saved(call: ShellCall) -> Iterator[str]:
    """The names of the files that a fetching command leaves behind."""
    yield from map(posixpath.basename, written(call))
    named = call.name in ("wget", "wget2", "aria2c", "axel") or (
        call.name == "curl" and ("O" in call.letters() or call.has("--remote-name"))
    )
    if named:
        yield from (posixpath.basename(urlsplit(text).path) for text in call.operands() if _is_address(text))
    if call.name in ("scp", "sftp", "rsync", "gsutil", "aws", "rclone"):
        yield from map(posixpath.basename, call.operands())


def _is_address(text: str) -> bool:
    try:
        return bool(urlsplit(text).path)
    except ValueError:
        return False


def _run(call: ShellCall, files: set[str]) -> Iterator[str]:
    """The words of a command that name what it runs."""
    first = call.words[0].text
    if "/" in first or first in files:
        yield first
    if "shells" in call.roles.sets or "interpreters" in call.roles.sets:
        yield from call.operands()[:1]
    elif call.name in _STARTERS:
        yield from call.operands() if call.name != "make" else call.values("f", "file", "C", "directory")
    elif call.name == "chmod" and any(
        "x" in text or re.fullmatch(r"0?[0-7]*[1357][0-7]*", text) for text in call.texts
    ):
        yield from call.operands()[1:]


def exfiltration(flow: DataFlow) -> Iterator[Harm]:
    """Secrets, or files by the pipe, that a command sends away; and the doors that only an intruder uses."""
    senders = [call for call in flow.telling if sends(call)]
    table = harm()
    for call in [*senders, *(call for call in flow.telling if "interpreters" in call.roles.sets)]:
        if table.flow["metadata"].search(call.text):
            yield Harm("floor.exfil", "it asks the machine's cloud for credentials")
        if table.flow["sockets"].search(call.text):
            yield Harm("floor.exfil", f"{call.name} talks to a service that controls this machine")
    if not senders:
        return
    telling = [word for call in flow.calls for word in _telling(call)]
    telling += [redirect.target for redirect in flow.redirects if redirect.op == "<"]
    hidden = next((word for word in telling if secret_word(word)), None)
    if hidden is not None:
        shown = hidden.text.replace(UNKNOWN, "") or f"${hidden.names[0]}"
        yield Harm("floor.exfil", f"{shown} and {senders[0].name} in one line may send a secret to another machine")
    for call in senders:
        if reason := _sent(call, flow.sources(call)):
            yield Harm("floor.exfil", reason)


def sends(call: ShellCall) -> bool:
    """Whether a command can carry something out of the machine to whom it names."""
    if call.name == "git":
        return (
            not _GIT_SENDS.isdisjoint(call.texts)
            and bool(_GIT_SENDS.intersection(call.operands()[:1]))
            and bool(re.search(r"://|\w@[\w.-]+:", call.text))
        )
    if call.name in ("npm", "docker", "cargo", "twine"):
        return call.texts[:1] in (["publish"], ["push"], ["upload"])
    return not _SENDERS.isdisjoint(call.roles.sets) or (call.name == "openssl" and "s_client" in call.texts)


def _telling(call: ShellCall) -> Iterator[Word]:
    """The words of a command but its name, what it merely says, and the keys it proves itself with."""
    skip = call.name == "gh" and call.texts[:1] == ["auth"]
    for word in call.words[1:]:
        if not skip:
            yield word
        skip = word.text in _IDENTITIES or (skip and call.name == "gh")


def _sent(call: ShellCall, sources: list[ShellCall]) -> str:
    flow = harm().flow
    carried = [source for source in sources if not flow["facts"].match(source.text)]
    if call.command.carries and carried and ("lookups" in call.roles.sets or "fetchers" in call.roles.sets):
        return f"{call.name} sends the output of {carried[0].name} away"
    if flow["local"].search(call.text):
        return ""
    dumps = next((source.name for source in carried if flow["dumps"].match(source.text)), "")
    if dumps:
        return f"{call.name} sends what {dumps} shows of this machine to another"
    reads = any("readers" in source.roles.sets for source in sources)
    reads = reads or any(redirect.op == "<" for redirect in call.command.redirects)
    if "sockets" in call.roles.sets or call.name == "openssl":
        return f"{call.name} sends local data to another machine" if reads else ""
    uploads = call.values("T", "upload-file", "F", "form", "post-file", "body-file")
    data = call.values("d", "data", "data-binary", "data-raw", "data-urlencode", "json")
    if reads and any("@-" in value or value in ("-", ".") for value in (*uploads, *data)):
        return f"{call.name} sends local data to another machine"
    stranger = bool(flow["drops"].search(call.text))
    if (uploads or any("@" in value for value in data)) and (stranger or call.has("--post-file", "--body-file")):
        return f"{call.name} uploads a local file"
    if stranger and reads:
        return f"{call.name} uploads local data"
    packed = [source.text for source in sources if source.name in ("tar", "zip", "find", "cpio", "7z", "rsync")]
    packed += [call.text] if call.name in ("scp", "rsync", "sftp", "rclone") else []
    whole = any(_WHOLE.search(text) for text in packed)
    return f"{call.name} sends a whole home or system folder to another machine" if whole else ""
