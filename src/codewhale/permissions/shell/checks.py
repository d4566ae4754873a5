"""Closer looks at programs that have a language of their own: find, test, sed, awk, jq, and a few with odd operands."""

import re
from collections.abc import Callable

from codewhale.permissions.shell.paths import ShellPaths, ask, secret

Values = list[tuple[str, str]]

_TESTS = frozenset(
    "! = == != -eq -ne -lt -le -gt -ge -nt -ot -ef -z -n -e -f -d -r -w -x -s -L -h -p -S -b -c -a -o ( ) ] ]]".split()
)
_COUNTING = frozenset("-eq -ne -lt -le -gt -ge".split())
_FIND_FLAGS = frozenset(
    """-L -H -P -print -print0 -ls -prune -quit -empty -readable -writable -executable -depth -d -mount -xdev -follow
    -daystart -nouser -nogroup -true -false -not ! -a -and -o -or ( ) , -noleaf -warn -nowarn -O0 -O1 -O2 -O3""".split()
)
_FIND_VALUES = frozenset(
    """-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin
    -atime -amin -ctime -cmin -newer -anewer -cnewer -maxdepth -mindepth -perm -user -group -uid -gid -links -inum
    -samefile -printf -fstype -lname -ilname -used -newermt""".split()
)
_FIND_FILES = frozenset("-newer -anewer -cnewer -samefile".split())
# Text of a regex up to its end. A bracket that holds the end is not read by all alike.
_REGEX = r"(?:(?!END)[^\\\n\[]|\\.|\[\^?\]?(?:\[:\w+:\]|(?!END)[^\]\[\\\n])*\])"
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_REGEX.replace('END', '/')}+/I?)"
_SED = re.compile(
    rf"""[;\s}}]*+(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?)?\s*+!?+\s*+
    (?:\{{|(?:[pdDPhHgGxnN=]|[qQl]\s*\d*
      |:[ ]*[a-zA-Z]\w*|[btT][ ]*\w*
      |s(?P<by>[/|\#,:@!%_+]){_REGEX.replace("END", "(?P=by)")}*(?P=by)(?:(?!(?P=by))[^\\\n]|\\.)*(?P=by)[gpiIm0-9]*
      |y/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/)?[ \t]*(?:[;\n]\s*|(?=\}})|\Z))""",
    re.X,
)
_AWK = re.compile(
    r"system|getline|\||@|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|include|load|extension|\\(?![nt\"./\\$(){}+*?^|-])",
    re.A,
)
_JQ = re.compile(r"\benv\b|\$ENV|\b(?:include|import|input_filename|modulemeta|get_search_list|debug|stderr)\b|\$__")
_LISTS = frozenset(("l", "list", "contains", "no-contains", "merged", "no-merged", "points-at", "n", "show-current"))
_PS_WORDS = re.compile(
    r"-[AadefFHjlLmNTwM]+|-?aux[wfhlr]*|a|x|ax|au|ux|ww?|axjf|-?ef|f|auxf|\d+(?:,\d+)*|--(?:forest|no-headers?|headers?|version"
    r"|(?:sort|ppid|pid|cols|rows|width)=[-+\w,%]+|(?:user|group)=\w+)"
)
_PS_NAMES = re.compile(r"[\w,./-]+")
_PS_FIELDS = re.compile(
    r"(?:(?:p?pid|pgid|sid|user|uid|group|gid|comm|cmd|args|command|ucmd|etimes?|time|cputime|%cpu|pcpu|%mem|pmem|rss|vsz|sz"
    r"|stat|state|s|start|lstart|tty|tt|nice|ni|pri|psr|nlwp|lwp|wchan|tname|ruser|euser)=?(?:,|\Z))+"
)
_CREDENTIAL = re.compile(r"token|secret|passw|extraheader|url|credential|key|proxy|cookie", re.I)


def _test(words: list[str], where: str, places: ShellPaths) -> None:
    counted = words[-1:] == ["]]"] and not _COUNTING.isdisjoint(words)
    for word in words:
        if word.startswith("-") and word not in _TESTS and not word[1:].isdigit():
            ask("shell.option", f"test {word} may do more than read")
        if counted and word not in _TESTS and not word.isdigit():
            ask("shell.expansion", "[[ evaluates its numbers, which can run code")
        if word not in _TESTS and ("/" in word or word.startswith(".")):
            places.reading(word, where)


def _find(words: list[str], where: str, places: ShellPaths) -> None:
    rest = iter(words)
    roots = True
    if not {"-L", "-follow"}.isdisjoint(words) and (why := places.links(["."], where)):
        ask("shell.option", why)
    for word in rest:
        if word in _FIND_VALUES:
            roots = False
            value = next(rest, "")
            if secret(value):
                ask("shell.secret-read", f"{value} is named like a secret")
            if word in _FIND_FILES:
                places.reading(value, where)
        elif word in _FIND_FLAGS:
            roots = roots and word in ("-L", "-H", "-P")
        elif word.startswith(("-", "(", "!")) or not roots:
            ask("shell.option", f"find {word} may do more than read")
        else:
            places.reading(word, where)


def _sed(options: list[str], values: Values, operands: list[str]) -> str:
    scripts = [value for option, value in values if option == "e"] or operands[:1]
    for script in scripts:
        at = 0
        while at < len(script):
            match = _SED.match(script, at)
            if match is None or match.end() == at:
                return f"the sed script {script!r} may do more than print"
            at = match.end()
    return "" if scripts or {"version", "help"}.intersection(options) else "sed is given no script"


def _awk(options: list[str], values: Values, operands: list[str]) -> str:
    match = _AWK.search(operands[0]) if operands else None
    if operands and ">" in operands[0][operands[0].find("print") :] and "print" in operands[0]:
        return "the awk program may print into a file"
    if any("=" in word for word in operands[1:]):
        return "awk reads an argument as an assignment"
    return f"the awk program uses {match[0]}" if match else "" if operands else "awk is given no program"


def _jq(options: list[str], values: Values, operands: list[str]) -> str:
    match = _JQ.search(operands[0]) if operands else None
    return f"the jq filter uses {match[0]}" if match else ""


def _date(options: list[str], values: Values, operands: list[str]) -> str:
    return "" if all(word.startswith("+") for word in operands) else "date with a time sets the clock"


def _number(options: list[str], values: Values, operands: list[str]) -> str:
    return "" if all(re.fullmatch(r"\d{1,3}(?:\.\d+)?s?", word) for word in operands) else "argument is not a number"


def _printf(options: list[str], values: Values, operands: list[str]) -> str:
    return "" if operands else "printf is given no format"


def _ps(words: list[str], where: str, places: ShellPaths) -> None:
    """ps takes options in three styles: these spellings are the same in all, and none shows the environment."""
    rest = iter(words)
    for word in rest:
        value = next(rest, "") if re.fullmatch(r"-[AaefF]*o|-[puCgtUG]", word) else None
        if value is not None and not (_PS_FIELDS if word.endswith("o") else _PS_NAMES).fullmatch(value):
            ask("shell.option", f"ps {word} {value} may do more than read")
        if value is None and not _PS_WORDS.fullmatch(word):
            ask("shell.option", f"ps {word} may show the environment of programs")


def _names(options: list[str], values: Values, operands: list[str]) -> str:
    bad = [name for name in operands if not re.fullmatch(r"\w+", name) or _CREDENTIAL.search(name)]
    return f"{bad[0]} may be a secret" if bad else ""


def _formats(options: list[str], values: Values, operands: list[str]) -> str:
    """Git checks a signature by a program that the repository may name."""
    bad = any(re.search(r"%[-+ ]?G|signature", value) for _, value in values)
    return "a format that shows signatures starts the program that checks them" if bad else ""


def _listing(options: list[str], values: Values, operands: list[str]) -> str:
    if why := _formats(options, values, operands):
        return why
    return "" if not operands or _LISTS.intersection(options) else f"{operands[0]} would be created"


def _remote(options: list[str], values: Values, operands: list[str]) -> str:
    shown = not operands or (operands[0] == "get-url" and len(operands) == 2)
    return "" if shown else "it may change or contact a remote"


def _config(options: list[str], values: Values, operands: list[str]) -> str:
    if len(operands) != 1:
        return "git config may write, or show credentials"
    return "git config may show credentials" if _CREDENTIAL.search(operands[0]) else ""


def _command(words: list[str], where: str, places: ShellPaths) -> None:
    if words[:1] not in (["-v"], ["-V"]) or any(word.startswith("-") for word in words[1:]):
        ask("shell.option", "command runs the program it names")


def _tar(words: list[str], where: str, places: ShellPaths) -> None:
    if not words or not re.fullmatch(r"-?[vfzjJa]*t[vfzjJa]*|--list", words[0]):
        ask("shell.write", "tar may write files")
    for word in words[1:]:
        if (word.startswith("-") and not re.fullmatch(r"--file=[^:]*|-[fv]+|--verbose", word)) or ":" in word:
            ask("shell.option", f"tar {word} may do more than read")
        if not word.startswith("-v"):
            places.reading(word.removeprefix("--file="), where)


def _unzip(options: list[str], values: Values, operands: list[str]) -> str:
    return "" if {"l", "v", "Z", "z"}.intersection(options) else "unzip writes files"


# Whole command lines of their own kind, and looks at operands that were sorted already.
SYNTAXES: dict[str, Callable[[list[str], str, ShellPaths], None]] = {
    "find": _find,
    "ps": _ps,
    "test": _test,
    "command": _command,
    "tar": _tar,
}
CHECKS: dict[str, Callable[[list[str], Values, list[str]], str]] = {
    "sed": _sed, "awk": _awk, "jq": _jq, "date": _date, "number": _number, "printf": _printf,
    "names": _names, "formats": _formats,    "listing": _listing, "remote": _remote, "config": _config, "unzip": _unzip,
}  # fmt: skip
