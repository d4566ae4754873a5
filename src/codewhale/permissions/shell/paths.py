"""What a path in a command line stands for (in the workspace, open to all, secret, guarded), and what lies there on the
disk. Looks at the disk are bounded; what is beyond a bound is not known."""

import fnmatch
import functools
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.permissions.shell.words import GLOB, UNKNOWN
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.process.sandbox.profiles import beneath

# Entries that a pattern may meet, and that a look through folders may.
MOST_NAMES = 500
MOST_ENTRIES = 40_000
_MOST_SETTINGS = 65_536
# Of a deeper path, the folders are not looked at one by one.
_DEEPEST = 64
_ODD = lazy(r"[\s'\"\\]|^[-@]")


@functools.lru_cache(maxsize=1024)
def real_path(path: str) -> str:
    """Where a path really leads; kept until one look at a line is over. One that is written without dots, in a folder
    that leads to itself, can only be a link by its own name."""
    folder, _, name = path.rpartition("/")
    plain = len(folder) > 1 and name not in ("", ".", "..") and path.count("/") < _DEEPEST
    if plain and real_path(folder) == folder and not os.path.islink(path):
        return path
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


@functools.lru_cache(maxsize=256)
def program_in(inside: str, name: str) -> str:
    """The file below a folder that is found under a program's name, or would be: PATH names its folder. "" for none;
    kept until one look at a line is over."""
    paths = [os.path.join(folder, name) for folder in _own_folders(os.environ.get("PATH", ""), inside)]
    return next(filter(os.path.lexists, paths), "")


@functools.lru_cache(maxsize=16)
def _own_folders(path: str, inside: str) -> list[str]:
    own = [folder for folder in path.split(os.pathsep) if not os.path.isabs(folder) or beneath(folder, inside)]
    own += [folder for folder in path.split(os.pathsep) if beneath(real_path(folder), real_path(inside))]
    return [os.path.join(inside, folder) for folder in own]


def is_folder(path: str) -> bool:
    try:
        return os.path.isdir(path)
    except ValueError:
        return False


def expand(pattern: str, folder: str) -> list[str] | None:
    """The names that a pattern stands for there, the pattern itself where there are none; None when too many would have
    to be looked at. A bracket counts as any character, so that there may be more names than the shell takes."""
    left = MOST_ENTRIES
    names = ["/" if pattern.startswith("/") else ""]
    for part in filter(None, pattern.split("/")):
        if not GLOB.search(part):
            names = [f"{name}{part}/" for name in names if os.path.lexists(os.path.join(folder, name, part))]
            continue
        wanted = re.compile(fnmatch.translate(re.sub(r"\[[^]]+\]", "?", part)))
        met: list[str] = []
        for name in names:
            for entry in _entries(os.path.join(folder, name)):
                left -= 1
                if wanted.match(entry.name) and entry.name.startswith(".") <= part.startswith("."):
                    met.append(f"{name}{entry.name}/")
            if left < 0 or len(met) > MOST_NAMES:
                return None
        names = met
    tail = "/" if pattern.endswith("/") else ""
    return sorted(name.rstrip("/") + tail for name in names if name not in ("", "/")) or [pattern]


def trouble_below(
    roots: Sequence[str],
    inside: str,
    names: str = "",
    linked: bool = True,
    avoided: Callable[[str], bool] = lambda path: False,
) -> str:
    """Why going through folders may lead elsewhere: with `linked`, a link out of `inside`; a name that is not surely
    one word and no option, or a path that is `avoided`; files of other names do not count. "" for none."""
    wanted = re.compile(fnmatch.translate(names or "*"))
    left = MOST_ENTRIES
    waiting, seen = set(roots), set()
    while waiting:
        seen.add(folder := waiting.pop())
        for entry in _entries(folder):
            left -= 1
            if left < 0:
                return f"there are more than {MOST_ENTRIES} files to look at"
            folder_there = entry.is_dir(follow_symlinks=False)
            if not folder_there and not wanted.match(entry.name):
                continue
            if names and _ODD().search(entry.name):
                return f"{entry.name!r} is an unusual file name"
            if names and not folder_there and avoided(entry.path):
                return f"{entry.name} may hold a secret"
            if linked and entry.is_symlink():
                target = real_path(entry.path)
                if not beneath(target, inside):
                    return f"{entry.path} is a link that leads out"
                waiting |= {target} - seen
            elif folder_there and (entry.name != ".git" or names == "*"):
                waiting |= {entry.path} - seen
    return ""


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except (OSError, ValueError):
        return


_ENV = lazy(r"\.env(?:rc|\..+)?|.+\.env")
# Samples are meant to be read, and public halves to be public.
_HARMLESS = lazy(r".*(?:[._-](?:example|sample|template|dist|defaults?|schema)|\.pub|\.md)(?:\.[a-z]+)?")
_NAMES = lazy(
    r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[._-].*)?|.*\.(?:pem|key|p12|pfx|pkcs12|p8|jks|keystore|kdbx?|ppk|ovpn|asc|gpg|age)"
    r"|\.netrc|_netrc|\.pgpass|\.my\.cnf|\.npmrc|\.yarnrc\.yml|\.pypirc|\.git-credentials|\.htpasswd|\.dockercfg|\.s3cfg"
    r"|\.boto|\.vault-token|\.terraformrc|credentials\.tfrc\.json|.*\.tfvars(?:\.json)?|.*\.tfstate(?:\.backup)?"
    r"|credentials?(?:\.(?:json|ya?ml|toml|ini|csv|db))?|secrets?(?:\.(?:json|ya?ml|toml|ini|env|txt|properties))?"
    r"|(?:service[-_]?account|client[-_]secret|application[-_]default[-_]credentials|.*[-_]credentials).*\.json"
    r"|kubeconfig|.*\.kubeconfig|master\.key|.*\.keytab|shadow|gshadow|passwords?(?:\.(?:txt|csv|json|ya?ml))?"
)
# Folders of which every file counts, and files that count in a certain folder alone.
_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".password-store", "gcloud", "keyrings"})
_PLACES = lazy(
    r"(?:.*/)?(?:\.kube/config|\.docker/config\.json|\.cargo/credentials(?:\.toml)?|\.gem/credentials"
    r"|\.config/(?:gh|glab-cli|hub|rclone|op)(?:/.*)?|\.m2/settings(?:-security)?\.xml|\.gradle/gradle\.properties"
    r"|\.codewhale/(?:secrets/.*|trust\.json)|proc/[^/]+/(?:environ|mem|cmdline)"
    r"|(?:firefox|chrome|chromium)/.*(?:logins\.json|key4\.db|login data|cookies))"
)


def secret_file(path: str) -> str:
    """Why a path looks like that of a file with secrets, "" when it does not; `path` may be relative, quoted by nobody,
    of any case."""
    plain = path.replace("\\", "/").casefold().rstrip("/")
    name = plain.rpartition("/")[2]
    if _PLACES().fullmatch(plain):
        return f"{path} keeps credentials"
    if _HARMLESS().fullmatch(name):
        return ""
    if _ENV().fullmatch(name):
        return f"{name} usually contains passwords or keys"
    if _NAMES().fullmatch(name):
        return f"{name} has the name of a file with keys or passwords"
    folder = next((part for part in plain.split("/")[:-1] if part in _FOLDERS), "")
    return f"{folder}/ keeps credentials" if folder else ""


# What every program may read anyway and no credential stands in.
_OPEN = lazy(
    r"/dev/(?:stdin|fd/\d{1,3})|/(?:usr/(?:bin|sbin|include|lib\w*|share|src)|bin|sbin|lib(?:32|64)?)(?:/.*)?|/usr|/dev/null"
    r"|/etc/(?:os-release|debian_version|lsb-release|timezone)|/proc/(?:cpuinfo|meminfo|version|loadavg|uptime)"
)
# Secrets beside those that are so by their names: places, histories, and what tells who may come in.
_SECRET = lazy(
    r"(?:.*/)?(?:\.[a-z_]*history|\.lesshst|\.viminfo|\.gitconfig|authorized_keys|known_hosts|environ|login data"
    r"|cookies(?:\.sqlite)?|auth\.json|hosts\.yml|tokens?(?:\.json)?|master\.passwd|wallet\.dat|credentials?|\.mozilla)"
    r"|(?:.*/)?(?:\.git/(?:config|credentials)|\.codewhale|keychains?|\.kube|\.docker)(?:/.*)?"
    r"|/etc/(?:passwd|g?shadow|sudoers|ssh|ssl/private)(?:/.*|-|\.d(?:/.*)?)?|/(?:var/)?run/secrets(?:/.*)?"
    r"|/proc/(?:self|\d+)(?:/.*)?|/proc/kcore|/dev/k?mem",
    re.I,
)
# Files that choose the program behind a name, and a path or an address in one; files that hold options of test runners.
_CHOOSERS = (
    ".tool-versions", ".mise.toml", "mise.toml", "rust-toolchain", "rust-toolchain.toml", ".node-version", ".nvmrc",
    ".python-version", ".ruby-version", ".java-version", ".cargo/config.toml", ".cargo/config", ".npmrc",
    "go.work", "package.json",
)  # fmt: skip
_OWN_PATH = lazy(rb"path|(?<![\w*^])[./]+/|prefix|node-options|\[build\]|packageManager|toolchain\s*=\s*\"?/")
_SETTINGS = ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "pytest.toml")
_LOADS = lazy(rb"addopts|testpaths|pythonpath|plugins")
# What may be a folder of secrets, told by its own name.
_FOLDER = lazy(r"(?:^|/)(?:\.[^/]+|gcloud|keyrings|gh|glab-cli|hub|rclone|op)/*$")
_GUARDED = lazy(
    r"/(?:\.git/(?:config(?:\.worktree)?|hooks|info/attributes|commondir)|\.gitmodules|\.codewhale|\.claude|\.codex|\.cursor"
    r"|\.gemini|\.mcp\.json|\.ripgreprc|\.vscode/(?:tasks|settings|mcp)\.json|\.husky|\.githooks)(?:/|$)|/\.git$",
    re.I,
)
_HOME_GUARDED = lazy(
    r"/\.(?:ssh|gnupg|bash\w*|profile|zsh\w*|zprofile|zlogin|inputrc|gitconfig|npmrc|pypirc|netrc|pam_environment"
    r"|xprofile|xinitrc|xsession\w*|vimrc|aws|kube|docker|config/(?:git|autostart|systemd|fish|environment\.d|gh)"
    r"|local/share/systemd|local/bin|cargo/config\w*)(?:[/.]|$)",
    re.I,
)
_SYSTEM = lazy(
    r"/(?:etc|usr(?!/local/.)|bin|sbin|lib\w*|boot|dev|proc|sys|var/(?:lib|spool)|System|Library|Applications)(?:/|$)"
)
_PLAIN_DEVICES = lazy(r"/dev/(?:null|zero|full|std(?:out|err|in)|tty|u?random|fd/\d+|shm(?:/.*)?)$")
# A last component that stands for everything in its folder.
_EVERYTHING = lazy(r"(?:^|(?<=/))(?:\.?\*+|\.\[!?\.\]\*|\.\?\?\*|\.)(?:/?\*+)*/*$")


class AskedError(Exception):
    """A line does more than reading, or may: the rule that a person is asked by, and why."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(why)
        self.rule = rule
        self.why = why


def ask(rule: str, why: str) -> NoReturn:
    raise AskedError(rule, why)


class ShellPaths(Struct, frozen=True):
    """Where the line runs: absolute paths of the workspace and of the person's home, "" when not known; and the
    folders beside the workspace that may be read unasked."""

    workspace: str
    home: str
    folders: tuple[str, ...] = ()

    def absolute(self, text: str, folder: str) -> str:
        """The path that `text` names from the folder `here`, dots taken out; "" when it is not known."""
        return _absolute(text, folder)

    def inside(self, path: str) -> bool:
        return beneath(path, self.workspace)

    def below(self, path: str) -> str:
        """An absolute path as it is seen from the workspace, if it lies there."""
        return path[len(self.workspace.rstrip("/")) :] if self.inside(path) else path

    def reading(self, text: str, *folders: str) -> None:
        """Ask where looking at this path, from any of these folders, is a person's matter: what it says counts, and
        where it leads by links."""
        for folder in folders:
            read_once(self, text, folder)

    def links(self, operands: list[str], folder: str) -> str:
        """Why following links below these paths may lead out of the workspace."""
        roots = [self.absolute(text, folder) for text in operands or ["."]]
        return trouble_below([root for root in roots if self.inside(root)], real_path(self.workspace))

    def odd_names(self, lister: list[str]) -> str:
        """Why a list of the files of the workspace may hold more than names, or names of what lies elsewhere."""
        if lister[0] == "git":
            return "files in git's index cannot be checked; use find or rg --files"
        names, linked = "*", lister[0] in ("find", "fd", "fdfind")
        if lister[0] == "find" and not {"-o", "-or", ",", "!", "-not", "(", "-iname"}.intersection(lister):
            names = next((value for option, value in pairwise(lister) if option == "-name"), names)
            linked = ("-type", "f") not in pairwise(lister) or not {"-L", "-follow"}.isdisjoint(lister)
        hidden = lister[0] in ("find", "git") or any(
            option in lister for option in ("--hidden", "-H", "-u", "-uu", "-uuu")
        )
        avoided = (lambda path: secret(self.below(path))) if hidden else (lambda path: False)
        return trouble_below([self.workspace], real_path(self.workspace), names, linked, avoided)

    def shadowed(self, folder: str) -> str:
        """The file that Python would load in place of one of its own modules."""
        names = expand("*.py", folder) or ["*"]
        names += expand("*/__init__.py", folder) or ["*"]
        return next((name for name in names if "*" not in name or len(name) == 1), "")

    def loaded(self, folder: str) -> str:
        """The file from which a test runner would load code or options."""
        for name in _SETTINGS:
            text = read_small(posixpath.join(folder, name), _MOST_SETTINGS) or b""
            if b"pytest" in text and _LOADS().search(text):
                return name
        names = [*(expand("conftest.py*", folder) or ["*"]), *(expand("*/conftest.py", folder) or ["*"])]
        return next((name for name in names if "*" not in name or len(name) == 1), "")

    def guarded(self, text: str, folder: str) -> bool:
        """Whether writing there would change what starts by itself, what is trusted, or who may come in."""
        path = self.absolute(text, folder) or "/" + text.replace(UNKNOWN, "").lstrip("/")
        if _GUARDED().search(self.below(path)):
            return True
        at_home = self.home and path.startswith(self.home + "/") and not self.inside(path)
        return bool(at_home and _HOME_GUARDED().match(path[len(self.home) :]))

    def system(self, text: str, folder: str) -> bool:
        path = self.absolute(text, folder)
        if not path or _PLAIN_DEVICES().match(path) or (self.inside(path) and self.workspace != "/"):
            return False
        return path == "/" or bool(_SYSTEM().match(path))

    def root(self, text: str, folder: str) -> str:
        """What whole is lost when everything at `text` is: the system, the home or the workspace; "" for less. A
        pattern for all of a folder's content stands for the folder."""
        base = _EVERYTHING().sub("", text)
        if UNKNOWN in base:
            return "everything at the root" if re.fullmatch(r"\0+/+", base) else ""
        path = self.absolute(base or ".", folder)
        if not path:
            return ""
        if self.inside(path) and self.workspace != "/":
            return "the whole workspace" if path == self.workspace and (folder == path or base) else ""
        if path.count("/") == 1 or self.system(path, folder):
            return "the system"
        if self.home and self.home.startswith(path):
            return "the home folder"
        if re.fullmatch(r"/(?:home|Users|mnt|media|Volumes)/[^/]+", path):
            return "a home folder or a disk"
        return "the whole workspace" if self.workspace.startswith(path + "/") else ""


@functools.lru_cache(maxsize=1024)
def read_once(places: ShellPaths, text: str, folder: str) -> None:
    """Ask where looking at a path from a folder is a person's matter; kept until one look at a line is over."""
    path = _absolute(text, folder)
    if not path:
        ask("shell.expansion", "it names a path that is only known when it runs")
    if secret(places.below(path)):
        ask("shell.secret-read", f"{text} may hold a secret")
    if _OPEN().fullmatch(path):
        return
    real = real_path(posixpath.join(folder, text))
    if not places.inside(path):
        if any(beneath(real, one) for one in places.folders):
            return
        ask("shell.outside", f"{text} is outside the workspace")
    if real == path or _OPEN().fullmatch(real):
        return
    top = real_path(places.workspace)
    if not beneath(real, top):
        ask("shell.outside", f"{text} is a link out of the workspace")
    if secret(real[len(top) :]):
        ask("shell.secret-read", f"{text} leads to what may hold a secret")


@functools.lru_cache(maxsize=256)
def chosen(places: ShellPaths, folder: str) -> str:
    """The file that names a program of the project for one of the machine's; kept until one look at a line is over."""
    while places.inside(folder):
        for name in _CHOOSERS:
            if _OWN_PATH().search(read_small(posixpath.join(folder, name), _MOST_SETTINGS) or b""):
                return name
        if folder == places.workspace:
            break
        folder = posixpath.dirname(folder)
    return ""


@functools.lru_cache(maxsize=4096)
def secret(path: str) -> bool:
    """Whether a path looks like one that holds credentials, or tells how to come by them."""
    if _SECRET().fullmatch(path) or secret_file(path):
        return True
    return bool(_FOLDER().search(path)) and bool(secret_file(path.rstrip("/") + "/_"))


@functools.lru_cache(maxsize=4096)
def _absolute(text: str, folder: str) -> str:
    if UNKNOWN in text or (not text.startswith("/") and (not folder or UNKNOWN in folder)):
        return ""
    path = posixpath.normpath(posixpath.join(folder, text))
    return path[1:] if path.startswith("//") else path
