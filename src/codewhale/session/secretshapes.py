"""Keys and passwords that are known by their shape: what issuers put in front of them, or what stands before them.

The shapes are those that the issuers document (and that GitHub's secret scanning and gitleaks list, as of 2026-11).
A text is searched for plain pieces first; an expression is built when its piece is met, so that most texts cost
little and a program that never meets one pays nothing.
"""

import functools
import re
from collections.abc import Sequence

# What is said in its place, what it begins with, and how it goes on.
_KEYS = (
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,255}"),
    ("GitHub token", "github_pat_", r"[A-Za-z0-9_]{20,255}"),
    ("GitLab token", "glpat- glptt- gldt- glrt- glcbt- gloas- glsoat- glft- glimt- glagent-", r"[\w-]{16,300}"),
    ("API key", "sk-", r"[\w-]{16,300}"),
    ("API key", "gsk_ xai- pplx- r8_ fw_ nvapi- tvly- csk- hf_", r"[\w-]{20,200}"),
    ("AWS key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("Google key", "AIza", r"[\w-]{30,45}"),
    ("Google key", "ya29. GOCSPX- 1//0", r"[\w-]{20,2000}"),
    ("Slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xapp- xoxe.xox", r"[\w.%-]{10,400}"),
    ("Slack webhook", "hooks.slack.com/services/", r"[A-Za-z0-9/]{20,120}"),
    ("Discord webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"[0-9]{10,24}/[\w-]{30,100}"),
    ("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{10,250}"),
    ("Stripe key", "whsec_", r"[A-Za-z0-9+/=]{20,120}"),
    ("npm token", "npm_", r"[A-Za-z0-9]{30,80}"),
    ("PyPI token", "pypi-AgE", r"[\w-]{20,600}"),
    ("SendGrid key", "SG.", r"[\w-]{16,64}\.[\w-]{16,64}"),
    ("Twilio key", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("Mailgun key", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{40,64}"),
    ("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"[A-Fa-f0-9]{32}"),
    ("Telegram token", ":AA", r"[\w-]{30,40}(?![A-Za-z0-9])"),
    ("JSON web token", "eyJ", r"[\w-]{12,4000}\.eyJ[\w-]{8,8000}(?:\.[\w-]{0,4000})?"),
    ("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{40,80}"),
    ("Azure key", "AccountKey= SharedAccessKey= SharedAccessSignature=", r"[A-Za-z0-9+/=%&_-]{30,400}"),
    ("Databricks token", "dapi", r"[a-h0-9]{32}(?![A-Za-z0-9])"),
    ("service token", "lin_api_ ntn_ figd_ figu_ dckr_pat_ dckr_oat_ sbp_ pscale_tkn_ pscale_pw_ rubygems_ sntrys_"
     " sntryu_ glsa_ glc_ fo1_ fm2_ PMAK- NRAK- HRKU- ATATT3 ATCTT3 sq0atp- sq0csp- hvs. hvb. dp.pt. dp.st. phc_ phx_"
     " sgp_ tskey- EAAC", r"[\w.=+/-]{20,400}"),
)  # fmt: skip
# What is replaced is the group `key`, where there is one.
_BLOCKS = (
    (
        "private key",
        "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,.()-]|\\+[nr/]){0,20000}?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|(?![A-Za-z0-9+/=\s:,.()\\-])|\Z)",
    ),
    ("password", "://", r"://[^\s/:@\"'\\<>]{0,100}:(?P<key>[^\s/@\"'\\<>$\[{]{3,300})@"),
    (
        "credential",
        "uthorization",
        r"[Aa]uthorization\\*[\"']?\s{0,4}[:=,]\s{0,4}\\*[\"']?((?i:bearer|basic|token)\s{1,4})?"
        r"(?(1)|(?=[^\s\"'\\]{0,80}[0-9]))(?P<key>[A-Za-z0-9._~+/=-]{8,8000})",
    ),
    ("bearer token", "earer ", r"[Bb]earer (?P<key>[A-Za-z0-9._~+/=-]{20,8000})"),
)
# What is named as a secret and set at once, as environments and their files do it; and in the query of a URL.
_ASSIGNED = (
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|[A-Z]KEY|(?<!CACHE)(?<!PUBLIC)(?<!PRIMARY)_KEY)=\\*[\"']?"
    r"(?P<key>(?=[^\s\"'\\]{0,60}[0-9])[^\s\"'`$(){}\[\]<>\\;&|/.][^\s\"'`$(){}\[\]<>\\;&|]{7,400})"
)
_QUERY = (
    r"(?i:[?&](?:api[_-]?key|key|access[_-]?token|auth[_-]?token|token|secret|client[_-]?secret|password|passwd|sig"
    r"|signature|x-amz-signature|x-amz-security-token|x-goog-signature)=(?P<key>[A-Za-z0-9%._~+/=-]{8,4000}))"
)
_NAMED = (
    ("value", "TOKEN= SECRET= PASSWORD= PASSWD= PASSPHRASE= CREDENTIAL= CREDENTIALS= KEY=", _ASSIGNED),
    ("query value", "key= token= Token= secret= password= passwd= sig= ignature=", _QUERY),
)
# In front of a key stands nothing that belongs to a word; what an escape or a colour ends with does not.
_BEFORE = r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\[[0-9;]{0,12}m)\Z"

# Many names begin with sk-; one with neither digits nor a long word in it is no key.
_TELLING = r"[0-9]|[A-Za-z]{20}"
_BEGINNINGS = tuple(piece for _, piece, _ in _BLOCKS)
_STARTS = tuple(start for _, starts, _ in _KEYS for start in starts.split())
_SET = tuple(piece for _, pieces, _ in _NAMED for piece in pieces.split())
PIECES = (*_BEGINNINGS, *_STARTS, *_SET)
_NAME = 16
_RUN = b"a" * 14
_BEFORE_RUN = 64
_FLAT = bytes(
    97 if code in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-" else 32 for code in range(256)
)


class Shapes:
    """Which keys are replaced: those of known shapes unless `known` is False, and what begins with one of `prefixes`
    and goes on for 8 to 400 letters, digits and ._=+/-."""

    def __init__(self, known: bool = True, prefixes: Sequence[str] = ()) -> None:
        self._known = known
        starts = "|".join(sorted(map(re.escape, prefixes), key=lambda start: (-len(start), start)))
        self._own = re.compile(rf"(?:{starts})[\w.=+/-]{{8,400}}", re.ASCII) if starts else None

    def hide(self, text: str) -> str:
        """Text, plain or inside JSON, without them; the same for the same text."""
        text = hide_shapes(text) if self._known else text
        return _replaced(text, "key", self._own) if self._own is not None else text


def hide_shapes(text: str) -> str:
    """Text, plain or inside JSON, in which each key that is known by its shape is replaced by `[redacted NAME]`; the
    same for the same text."""
    runs, names = _around_runs(text), _before_equals(text)
    found = [piece for piece in _BEGINNINGS if piece in text]
    found += [piece for piece in _STARTS if piece in runs] if runs else []
    found += [piece for piece in _SET if piece in names] if names else []
    for piece in found:
        name, pattern = _compiled(piece)
        text = _replaced(text, name, pattern)
    return _without_lines(text) if _BEGINNINGS[0] in found else text


def _without_lines(text: str) -> str:
    """Text that speaks of a private key without lines that could be some of it, wherever they were put."""

    def shown(match: re.Match[str]) -> str:
        line = match.group()
        return line if line.isupper() or line.islower() else "[redacted private key]"

    return re.sub(r"(?<![\w+/=-])[A-Za-z0-9+/]{44,76}={0,2}(?![\w+/=-])|(?<=\\n)[A-Za-z0-9+/]{44,76}", shown, text)


def _before_equals(text: str) -> str:
    """What stands in front of each =, as far as a name is looked at."""
    if "=" not in text:
        return ""
    return "=".join(part[-_NAME:] for part in text.split("="))


def _around_runs(text: str) -> str:
    """What stands around the long runs of letters, digits, _ and -: every key has one, and most texts have few."""
    flat = text.encode("latin-1", "replace").translate(_FLAT)
    found: list[str] = []
    done = 0
    while (at := flat.find(_RUN, done)) >= 0:
        end = flat.find(b" ", at)
        end = len(flat) if end < 0 else end
        found.append(text[max(done, at - _BEFORE_RUN) : end])
        done = end
    return "\n".join(found)


def is_key(value: str) -> bool:
    """Whether a value is a key by its shape, from its beginning on."""
    return value.startswith(_STARTS) and hide_shapes(value).startswith("[redacted ")


def _replaced(text: str, name: str, pattern: re.Pattern[str]) -> str:
    def shown(match: re.Match[str]) -> str:
        whole, said = match.group(), f"[redacted {name}]"
        if match.re.groups:
            begin, end = match.start("key") - match.start(), match.end("key") - match.start()
            return whole[:begin] + said + whole[end:]
        before = text[max(0, match.start() - 14) : match.start()]
        return said if _begins(before, whole) else whole

    return pattern.sub(shown, text)


def _begins(before: str, key: str) -> bool:
    if key.startswith("sk-") and re.search(_TELLING, key) is None:
        return False
    if not before or not key[0].isalnum() or not (before[-1].isalnum() or before[-1] == "_"):
        return True
    return re.search(_BEFORE, before) is not None


@functools.cache
def _pieces() -> dict[str, tuple[str, str]]:
    """What a text is searched for: each piece with the name of its shape and its expression."""
    found = {piece: (name, pattern) for name, piece, pattern in _BLOCKS}
    found.update((start, (name, re.escape(start) + tail)) for name, starts, tail in _KEYS for start in starts.split())
    found.update((piece, (name, pattern)) for name, pieces, pattern in _NAMED for piece in pieces.split())
    return found


@functools.cache
def _compiled(piece: str) -> tuple[str, re.Pattern[str]]:
    name, pattern = _pieces()[piece]
    return name, re.compile(pattern, re.ASCII)
