"""The one decision about a call. Each layer says deny, ask, allow or nothing, and the strictest word of the highest
layer holds: any deny; then any ask of a hook, a rule, the floor or the project's constitution; then any allow; then
what the call itself needs in its mode."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from codewhale.permissions.folders import Outside
from codewhale.permissions.paths import NOTHING_SPECIAL, Special, beneath, by_path, guard, started_by
from codewhale.permissions.prefixes import offered
from codewhale.permissions.rules import NO_RULES, QUEUES, SENDS, RuleFacts, RuleSet, host_of
from codewhale.permissions.scopes import by_scope
from codewhale.permissions.shell.paths import secret_file
from codewhale.permissions.shell.words import odd_character
from codewhale.protocol.decisions import FOR_THE_MODEL, Decision, DecisionRequest, Offer, Opinion
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.tools import ChildSubject, CommandSubject, Effect, JobSubject, PathSubject, Subject, UrlSubject

if TYPE_CHECKING:
    from codewhale.permissions.shell.judge import ShellJudgement

CHANGES = frozenset({Effect.WRITES, Effect.EXECUTES})

READ = Opinion("allow", "mode.read", "Reading needs no approval.")
PLAN_READ = Opinion("allow", "mode.plan.read", "Reading is allowed in plan mode.")
WRITE = Opinion("allow", "mode.agent.write", "Workspace writes are allowed in agent mode.")
YOLO = Opinion("allow", "mode.yolo", "Yolo mode allows every call.")
AUTO = Opinion("allow", "authority.auto", "No rule asks for this call.")
HELD = Opinion("allow", "sandbox.holds", "The sandbox holds it; only what leaves the sandbox asks.")


def by_mode(request: DecisionRequest) -> Opinion | None:
    """What plan mode refuses; the other modes refuse nothing by themselves."""
    if request.mode is not Mode.PLAN or not CHANGES.intersection(request.effects):
        return None
    return Opinion(
        "deny",
        "mode.plan",
        f"Plan mode changes no file and runs no program, so {request.tool} is refused. Finish the plan with reading "
        "tools; the user can switch to agent mode (/mode agent, or --mode agent) to carry it out.",
    )


def by_need(request: DecisionRequest) -> Opinion:
    """What a call needs by what it does: reads and workspace writes run, programs and network writes are asked about,
    unless the person has said that what no rule asks for may run."""
    effects = request.effects
    if request.mode is Mode.PLAN:
        return PLAN_READ
    if request.tool in SENDS:
        return Opinion("ask", SEND, f"{request.tool} speaks on GitHub in the user's name.")
    if all(effect is Effect.READS for effect in effects):
        return READ
    risky = Effect.EXECUTES in effects or (Effect.NETWORK in effects and Effect.WRITES in effects)
    unseen = request.unseen and request.authority is Authority.PERSON and request.mode is not Mode.YOLO
    if not risky and unseen:
        reason = f"{request.tool} writes text that the call does not show; look at the diff."
        return Opinion("ask", "mode.agent.unseen", reason)
    if request.mode is Mode.YOLO:
        return YOLO
    if not risky:
        return WRITE
    if runs_unasked(request) and not (request.tainted and Effect.NETWORK in effects):
        return AUTO
    if request.tool in QUEUES:
        return Opinion("ask", LATER, f"{request.tool} changes what runs later, when nobody is asked.")
    if asks_outside(request) and Effect.NETWORK not in effects:
        return HELD
    what = f"is a tool of {request.server}, which may do anything" if request.server else "runs a program"
    return Opinion("ask", "mode.agent.execute", f"{request.tool} {what}.")


def runs_unasked(request: DecisionRequest) -> bool:
    return request.authority is Authority.AUTO or request.approval is Approval.AUTO


def asks_outside(request: DecisionRequest) -> bool:
    """Whether the person has chosen that what the sandbox holds runs unasked; who has read what others wrote is asked
    as before."""
    return request.approval is Approval.SANDBOX and not request.tainted


def answered(request: DecisionRequest) -> bool:
    return request.authority is Authority.PERSON and request.approval is not Approval.NEVER


def unanswered(request: DecisionRequest, asked: Decision) -> Opinion:
    reason = asked.reason
    if request.authority is Authority.PERSON:
        text = f"{reason} Nothing is asked (approval never), so it is denied."
        return Opinion("deny", "approval.never", text)
    how = "`codewhale exec --auto` or `/task add --auto` (both run what no rule asks about), or `--yolo`"
    if asked.rule == SEND:
        how = f"a rule in permissions.toml that allows {request.tool} by its name"
    elif request.authority is Authority.AUTO or asked.rule.startswith(("file.", "secret.")):
        how = "a rule that allows it in permissions.toml"
        how += "" if request.mode is Mode.YOLO else ", or `--yolo`"
    text = f"{reason} There is no user to approve it. It needs {how}.{FOR_THE_MODEL}"
    return Opinion("deny", f"authority.{request.authority.value}", text)


def _blocked(decision: Decision) -> Decision:
    """The refusal of what clauses block, where nobody can be asked."""
    flags = " ".join(f"--allow-clause {clause.id}" for clause in decision.clauses)
    how = f"Only the user can let it through, once: `codewhale exec {flags}`, or an answer where they are asked."
    return replace(decision, reason=f"{decision.reason} {how}")


SANDBOX = "workspace-write"
OUTSIDE = "path.outside"
LOOPBACK = "sandbox.loopback"
SEND = "github.send"
LATER = "mode.agent.later"
# Asks that no answer takes away for longer.
_ONCE = ("permissions.", "hook.", "floor.", "constitution", "mcp.", LOOPBACK, SEND)
# Lines of text for a job that are judged each.
MOST_LINES = 200
_MOST_REASONS = 3
_PATHS = re.compile(r"""[^\s;|&<>()"'`=]+""")
_LINE_END = re.compile(r"(?<!\\)[\r\n]")
# A character and the key that takes it back; all that a key takes back.
_ERASED = re.compile(r"[^\x08\x7f\r\n][\x08\x7f]")
_KILLED = re.compile(r"[^\r\n]*\x15")
# A denial that a rule of the person takes away: nothing speaks against this host but that no one has named it.
NETWORK_DEFAULT = "network.default"
NETWORK, OFFLINE, TOOLCHAINS = "network", "offline", "home:toolchains"
# The tools of which the command line is all that they run; others may run more than they show.
LINES = frozenset({"exec_shell", "task_shell_start", "task_gate_run"})
# Lines that nobody can take in, and so nobody can allow for good.
_UNREAD = frozenset(("shell.tangle", "shell.length", "shell.bytes"))
# Rows of skills, and what none of them pre-approves.
_SKILLS = "permissions.skill."
_NO_SKILLS = _UNREAD | {"shell.secret-read", "shell.outside"}
_ORDER = {"deny": 0, "ask": 1, "allow": 2}
# Whose build caches a package manager fills.
_CACHES = {
    "bun": "bun", "bundle": "ruby", "bunx": "bun", "cargo": "cargo", "composer": "composer", "deno": "deno",
    "dotnet": "nuget", "gem": "ruby", "go": "go", "gradle": "gradle", "gradlew": "gradle", "mvn": "maven",
    "npm": "npm", "npx": "npm", "nuget": "nuget", "pip": "pip", "pip3": "pip", "pnpm": "pnpm", "poetry": "poetry",
    "uv": "uv", "uvx": "uv", "yarn": "yarn",
}  # fmt: skip


# Beside them, what fetches code of a project's choice and prints little of what others wrote.
_INSTALLERS = frozenset(_CACHES) | {"apt", "apt-get", "brew", "cd", "docker", "echo", "git", "make", "podman", "rustup"}


class SandboxOptions(Struct, frozen=True):
    """What the person has configured of the sandbox: whether commands get the network ("off": never, "ask": with an
    approval that needs it, and offered; "on": always), allowances that every command which may write has, and
    narrowings that every command has. `narrows` tells whether it can hide the home but for toolchains."""

    network: str = "ask"
    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    narrows: Callable[[], bool] = lambda: True


class PolicyInputs(Struct, frozen=True):
    """What the decision asks others, each only when a call needs it. `analyse` judges a command line in its folder,
    `url` an address. `paths` are the paths below the workspace that a path stands for, as it is named and as it really
    is; `special` tells what is special below the workspace. `sandboxed` tells whether a sandbox holds here, `job`
    the profile that a running job is held to (None: no such job), `unfinished` the line that it was typed and that has
    not ended."""

    url: Callable[[str, DecisionRequest], Opinion | None]
    paths: Callable[[PathSubject, DecisionRequest], Sequence[str]]
    special: Callable[[DecisionRequest], Special]
    sandboxed: Callable[[], bool]
    job: Callable[[str, str], str | None]
    unfinished: Callable[[str, str], str] = lambda session, job: ""
    analyse: "Callable[[CommandSubject, DecisionRequest], ShellJudgement] | None" = None
    sandbox_options: Callable[[DecisionRequest], SandboxOptions] = lambda request: SandboxOptions()


class Policy:
    """The layers over one set of rules. `disabled` tools are denied in every mode; `law` is what the project's own
    constitution says of a call, `outside` what is known of a path outside the workspace (None: it lies inside)."""

    def __init__(
        self,
        inputs: PolicyInputs,
        rules: RuleSet = NO_RULES,
        disabled: frozenset[str] = frozenset(),
        law: Callable[[DecisionRequest, RuleFacts], list[Opinion]] | None = None,
        outside: Callable[[PathSubject, DecisionRequest], Outside | None] = lambda subject, request: None,
    ) -> None:
        self._inputs = inputs
        self._rules = rules
        self._disabled = disabled
        self._law = law
        self._outside = outside

    def decide(self, request: DecisionRequest, grants: RuleSet = NO_RULES) -> Decision:
        """The decision; an ask is a refusal where nobody may be asked. `grants` are the session's own rules."""
        decision = self.judge(request, grants)
        if decision.clauses:
            return replace(decision, verdict="ask") if answered(request) else _blocked(decision)
        if decision.verdict != "ask":
            return decision
        if answered(request):
            chosen = replace(request, approval=Approval.SANDBOX)
            held = request.approval is Approval.SUGGEST and self.judge(chosen, grants).verdict == "allow"
            return replace(decision, held=held)
        refusal = unanswered(request, decision)
        rule = refusal.rule if decision.rule.startswith("mode.") else decision.rule
        return Decision("deny", rule, refusal.reason)

    def judge(self, request: DecisionRequest, grants: RuleSet = NO_RULES) -> Decision:
        """What the layers say, whoever is there: an ask stays one."""
        if request.tool in self._disabled:
            text = f"{request.tool} is disabled in the user's configuration (tools.disabled). Work without it."
            return Decision("deny", "config.tools.disabled", text)
        refused = by_mode(request) or by_scope(request, self._inputs.analyse)
        if refused is not None:
            return Decision("deny", refused.rule, refused.reason)
        if not (self._rules or grants or request.opinions or request.subjects or self._law):
            return self._final(by_need(request), request, {})
        return self._layers(request, grants)

    def _layers(self, request: DecisionRequest, grants: RuleSet) -> Decision:
        judgements: dict[CommandSubject, ShellJudgement] = {}

        def analyse(subject: CommandSubject) -> "ShellJudgement":
            if subject not in judgements:
                assert self._inputs.analyse is not None, "a command line, and nothing that analyses one"
                judgements[subject] = self._inputs.analyse(subject, request)
            return judgements[subject]

        view = RuleFacts(analyse, lambda subject: self._inputs.paths(subject, request))
        opinions = [opinion for opinion in request.opinions if opinion.verdict]
        opinions += self._rules.opinions(request, view)
        for one in grants.opinions(request, view):
            if not (one.rule.startswith(_SKILLS) and _always_asked(request, view)):
                opinions.append(one)
        opinions += self._floor(request, view)
        heard = self._heard(request, view)
        if heard is not None:
            said = [*self._rules.opinions(*heard), *grants.opinions(*heard), *self._floor(*heard)]
            opinions += (opinion for opinion in said if opinion.verdict in ("deny", "ask"))
        held = [one for facts in ((request, view), heard) if facts and self._law for one in self._law(*facts)]
        lifted = {one.clause.id for one in held if one.clause is not None and one.clause.id in request.lifted}
        opinions += (one for one in held if one.clause is None or one.clause.id not in lifted)
        strictest = min(opinions, key=_strictness, default=None)
        if strictest is None:
            strictest = by_need(request) if _yolo(request) else self._unruled(request, view)
        blocked = strictest.clause is not None  # the law's opinions are the last: nothing else denies
        decision = self._final(replace(strictest, verdict="ask") if blocked else strictest, request, judgements)
        if blocked:
            clauses = dict.fromkeys(one.clause for one in opinions if one.clause is not None)
            return replace(decision, verdict="deny", clauses=tuple(clauses), offer=None)
        return replace(decision, lifted=tuple(sorted(lifted))) if lifted else decision

    def _heard(self, request: DecisionRequest, view: RuleFacts) -> tuple[DecisionRequest, RuleFacts] | None:
        """Text that a running job is to be told, or that a command may run from its input, as command lines: a shell
        may read it. What forbids or asks about one counts; nothing of it is allowed by that."""
        analyse = self._inputs.analyse
        texts = []
        for subject in request.subjects if analyse is not None else ():
            if isinstance(subject, JobSubject) and subject.text:
                begun = self._inputs.unfinished(request.session, subject.id)
                texts += [(typed, ".") for typed in dict.fromkeys((begun + subject.text, edited(begun + subject.text)))]
            elif isinstance(subject, CommandSubject) and subject.stdin and view.analyse(subject).runs_input:
                texts.append((subject.stdin, subject.cwd))
        if analyse is None or not texts:
            return None
        lines = [(line.strip(), cwd) for text, cwd in texts for line in (text, *_LINE_END.split(text)[:MOST_LINES])]
        typed = replace(request, subjects=tuple(CommandSubject(*line) for line in dict.fromkeys(lines) if line[0]))
        return typed, RuleFacts(lambda subject: analyse(subject, request), view.paths, typed=True)

    def _floor(self, request: DecisionRequest, view: RuleFacts) -> Iterator[Opinion]:
        for subject in request.subjects:
            if isinstance(subject, CommandSubject):
                judged = view.analyse(subject)
                liftable = judged.verdict == "deny" and not subject.stdin
                lifted = self._rules.lifts(subject.command, request) if liftable else None
                if lifted:
                    yield Opinion("allow", lifted.name, "A floor_exception in the user's permissions allows this.")
                elif judged.verdict == "deny":
                    yield Opinion("deny", judged.rule, judged.reason)
                elif judged.rule == "shell.tangle":
                    yield Opinion("ask", judged.rule, judged.reason)
                if subject.loopback and self._inputs.sandboxed():
                    yield from _loopback(self._inputs.sandbox_options(request).network, request)
        written: dict[str, list[PathSubject]] = {}
        for item in (one for one in request.subjects if isinstance(one, PathSubject)):
            place = self._outside(item, request)
            # Where nobody is there to be asked the tool refuses it, and says what was meant or how it is opened.
            if place is not None and place.refused and (place.folder or answered(request)):
                yield Opinion("deny", "path.refused", f"{place.path} {place.refused}.")
            elif place is not None and not place.folder and answered(request):
                yield Opinion("ask", OUTSIDE, f"{place.path} is outside the workspace.")
            if item.write:
                root = request.workspace if place is None else place.folder or "/"
                written.setdefault(root, []).append(item if place is None else PathSubject(place.path, write=True))
        for root, items in written.items():
            there = replace(request, workspace=root, subjects=tuple(items))
            held = by_path(there, [self._inputs.paths(one, there) for one in items], self._inputs.special(there))
            if held is not None:
                yield held
        for subject in request.subjects:
            dialled = self._inputs.url(subject.url, request) if isinstance(subject, UrlSubject) else None
            if dialled is not None and dialled.verdict == "deny" and dialled.rule != NETWORK_DEFAULT:
                yield dialled

    def _unruled(self, request: DecisionRequest, view: RuleFacts) -> Opinion:
        """What holds where nobody has said anything: what is built in, of each subject and of the call itself."""
        judged = [self._built_in(subject, request, view) for subject in request.subjects]
        opinions = [opinion for opinion in judged if opinion is not None]
        asks = [opinion for opinion in opinions if opinion.verdict == "ask"]
        if asks:
            reasons = list(dict.fromkeys(opinion.reason for opinion in asks))
            more = f" And {len(reasons) - _MOST_REASONS} more." if len(reasons) > _MOST_REASONS else ""
            return Opinion("ask", asks[0].rule, " ".join(reasons[:_MOST_REASONS]) + more)
        settled = bool(opinions) and len(opinions) == len(judged)
        if settled and not (request.tool in SENDS and opinions[0].verdict == "allow"):
            return opinions[0]
        return by_need(request)

    def _built_in(self, subject: Subject, request: DecisionRequest, view: RuleFacts) -> Opinion | None:
        match subject:
            case CommandSubject():
                return self._command(subject, view.analyse(subject), request)
            case PathSubject(path=path):
                why = secret_file(path)
                return Opinion("ask", "secret.file", f"{path}: {why}.") if why else _written(subject, view)
            case UrlSubject(url=url):
                return self._inputs.url(url, request)
            case JobSubject():
                return self._job(subject, request)
            case ChildSubject():
                return _child(subject, request)

    def _command(self, subject: CommandSubject, judged: "ShellJudgement", request: DecisionRequest) -> Opinion | None:
        if judged.verdict == "allow" and request.tool not in LINES:
            return None
        if judged.verdict == "allow":
            if judged.sandbox == "none" or self._inputs.sandboxed():
                return Opinion("allow", judged.rule, judged.reason)
            return Opinion("ask", "sandbox.none", f"{judged.reason} No sandbox on this machine could limit it to that.")
        if judged.sandbox == SANDBOX and asks_outside(request) and self._holds(request):
            if guarded := _guarded(subject):
                return Opinion("ask", "floor.protected", f"It names {guarded}, which other programs use automatically.")
            return Opinion("allow", HELD.rule, f"Sandboxed: {judged.reason.removeprefix('Needs approval: ')}")
        contained = judged.sandbox == SANDBOX and runs_unasked(request)
        if contained and self._inputs.sandboxed():
            return Opinion("allow", AUTO.rule, f"It runs in a sandbox: {judged.reason}")
        if contained:
            return Opinion("ask", "sandbox.none", f"{judged.reason} No sandbox on this machine could hold it.")
        return Opinion("ask", judged.rule, judged.reason)

    def _holds(self, request: DecisionRequest) -> bool:
        """Whether a sandbox is here that can also hide the home."""
        return self._inputs.sandboxed() and self._inputs.sandbox_options(request).narrows()

    def _job(self, subject: JobSubject, request: DecisionRequest) -> Opinion | None:
        if not subject.text:
            return Opinion("allow", "job.own", "Killing your own jobs needs no approval.")
        profile = self._inputs.job(request.session, subject.id)
        if profile is None or profile != "none":
            return Opinion("allow", "job.contained", "The job is confined by the sandbox it was allowed to run in.")
        return Opinion("ask", "job.input", f"Job {subject.id} runs without a sandbox and would receive this input.")

    def _final(
        self, ruling: Opinion, request: DecisionRequest, judgements: "dict[CommandSubject, ShellJudgement]"
    ) -> Decision:
        verdict = ruling.verdict or "ask"
        if verdict == "deny" or Effect.EXECUTES not in request.effects:
            places = self._places(request) if verdict != "deny" else {}
            offer = self._folder(places) if ruling.rule == OUTSIDE else _offer(ruling, request, judgements)
            return Decision(verdict, ruling.rule, ruling.reason, allowances=tuple(places), offer=offer)
        if (ruling is AUTO and not self._inputs.sandboxed()) or (ruling is HELD and not self._holds(request)):
            ruling = Opinion("ask", "sandbox.none", f"{request.tool} runs a program, and no sandbox can hold it.")
        profile, allowances = self._profile(ruling, request, list(judgements.values()))
        offer = _offer(ruling, request, judgements)
        fetches = _fetches(request, list(judgements.values()))
        verdict = ruling.verdict or "ask"
        return Decision(verdict, ruling.rule, ruling.reason, profile, allowances, offer, fetches=fetches)

    def _places(self, request: DecisionRequest) -> dict[str, Outside]:
        """What a call would use outside the workspace, as allowances."""
        paths = [subject for subject in request.subjects if isinstance(subject, PathSubject)]
        known = [(subject.write, self._outside(subject, request)) for subject in paths]
        return {
            f"{'write' if write else 'read'}:{place.folder or place.path}": place
            for write, place in known
            if place is not None and (place.folder or answered(request))
        }

    def _folder(self, places: dict[str, Outside]) -> Offer | None:
        """The one folder that would have to be added for nothing of a call to be asked about."""
        offers = {place.offer for place in places.values() if not place.folder}
        return Offer("", "folder", offers.pop()) if len(offers) == 1 and "" not in offers else None

    def _profile(
        self, ruling: Opinion, request: DecisionRequest, judged: "list[ShellJudgement]"
    ) -> tuple[str, tuple[str, ...]]:
        """The profile that a program of the call runs under, and what it may beyond it: what was approved reaches the
        network where it needs to, what runs unasked never does but in yolo mode."""
        narrower = (TOOLCHAINS,) if asks_outside(request) and self._holds(request) else ()
        if ruling.verdict == "allow" and judged and all(one.verdict == "allow" for one in judged):
            profile = min((one.sandbox for one in judged), key=("read-only", SANDBOX, "none").index)
            seen = (f"read:{folder}" for folder in request.folders)
            less = (*seen, *self._inputs.sandbox_options(request).less, *narrower)
            return profile, less if profile != "none" else ()
        if not self._inputs.sandboxed():
            return "none", ()
        rights = self._inputs.sandbox_options(request)
        more = (*(f"write:{folder}" for folder in request.folders), *rights.more, *rights.less)
        if ruling.rule == HELD.rule:
            return SANDBOX, tuple(dict.fromkeys((*more, *narrower, *((OFFLINE,) if rights.network == "off" else ()))))
        own = (*((NETWORK,) if rights.network == "on" else ()), *more)
        own += (OFFLINE,) if rights.network == "off" else ()
        needed = () if ruling.rule == AUTO.rule else self._needed(request, judged, rights)
        return SANDBOX, tuple(dict.fromkeys((*needed, *own)))

    def _needed(
        self, request: DecisionRequest, judged: "list[ShellJudgement]", rights: SandboxOptions
    ) -> tuple[str, ...]:
        local = any(isinstance(one, CommandSubject) and one.loopback for one in request.subjects)
        reaches = rights.network != "off" and (_yolo(request) or local or any(one.sandbox == "none" for one in judged))
        programs = {command.argv[0] for one in judged for command in one.commands if command.argv}
        caches = sorted({f"cache:{_CACHES[program]}" for program in programs if program in _CACHES})
        return (NETWORK, *caches) if reaches else tuple(caches)


def _child(child: ChildSubject, request: DecisionRequest) -> Opinion:
    """Whether a sub-agent may be opened. What it then does is decided call by call, within the rights of its parent:
    the person is asked once about one that may do more than read, where there is one."""
    beyond = set(child.effects) - {Effect.READS}
    if not beyond or request.mode is Mode.YOLO or request.authority is not Authority.PERSON or runs_unasked(request):
        return READ
    if request.mode is Mode.PLAN:
        return PLAN_READ
    return Opinion("ask", "agent.open", f"A sub-agent of the role {child.role} may do more than read.")


def _offer(
    ruling: Opinion, request: DecisionRequest, judgements: "dict[CommandSubject, ShellJudgement]"
) -> Offer | None:
    """What an approval may be remembered as: only for an ask that no rule, hook or floor makes."""
    if ruling.verdict != "ask" or ruling.rule.startswith(_ONCE):
        return None
    if request.server and not request.subjects:
        return Offer(request.tool, "tool")
    if len(request.subjects) != 1:
        return Offer(request.tool, "tests") if not request.subjects and request.tool == "run_tests" else None
    match request.subjects[0]:
        case CommandSubject() as subject:
            judged = judgements.get(subject)
            return _remembered(subject, judged, request.tool) if judged is not None else None
        case PathSubject(path=path):
            return Offer(request.tool, "path", path)
        case UrlSubject(url=url):
            host = host_of(url)
            return Offer(request.tool, "host", host) if host else None
        case _:
            return None


def _remembered(subject: CommandSubject, judged: "ShellJudgement", tool: str) -> Offer | None:
    """What an approval of a command is remembered as: how the project's tests are run, its first words, or the whole
    line, which says all that runs unless text is fed to it or nobody can take it in."""
    if subject.stdin or judged.rule in _UNREAD or odd_character(subject.command):
        return None
    if judged.tests:
        return Offer(tool, "tests", judged.tests)
    prefix = offered(judged.commands[0].argv) if judged.plain and len(judged.commands) == 1 else ""
    return Offer(tool, "prefix", prefix) if prefix else Offer(tool, "exact", subject.command.strip())


def _fetches(request: DecisionRequest, judged: "list[ShellJudgement]") -> bool:
    """Whether commands may print what others wrote, where they have the network: in yolo mode all do, and those count
    that surely need it."""
    reaching = [one for one in judged if not _yolo(request) or one.rule == "shell.network"]
    return any(set(command.argv[:1]) - _INSTALLERS for one in reaching for command in one.commands)


def _always_asked(request: DecisionRequest, view: RuleFacts) -> bool:
    """Whether a call is asked about whatever a skill pre-approves: one of a session that has read what others wrote,
    or one that reads secrets, leaves the workspace, or names a protected path."""
    commands = [subject for subject in request.subjects if isinstance(subject, CommandSubject)]
    sends = request.tool in SENDS
    return sends or request.tainted or any(view.analyse(one).rule in _NO_SKILLS or _guarded(one) for one in commands)


def _guarded(subject: CommandSubject) -> str:
    """A path in a command line that is protected, or that other programs act on by themselves; "" for none."""
    words: list[str] = _PATHS.findall(subject.command)
    for word in words:
        path = beneath(f"/{subject.cwd}/{word}", "/")
        if path and (guard(path) or started_by(path)):
            return word
    return ""


def _loopback(network: str, request: DecisionRequest) -> Iterator[Opinion]:
    """What is asked where a command would serve on this machine's loopback, which is its network as a whole."""
    if network == "off":
        yield Opinion("deny", LOOPBACK, "The user's configuration gives commands no network (sandbox.network = off).")
    elif network == "ask" and not _yolo(request):
        reason = (
            "It may listen on 127.0.0.1, where every program on this machine can reach it, and connect to others there"
        )
        yield Opinion("ask", LOOPBACK, f"{reason}. The sandbox opens the rest of the network with that.")


def _written(subject: PathSubject, view: RuleFacts) -> Opinion | None:
    names = view.paths(subject) if subject.write else ()
    for name in names:
        if who := started_by(name):
            return Opinion("ask", "file.started", f"{name} {who}.")
    if subject.executable:
        return Opinion("ask", "file.executable", f"{subject.path} becomes executable.")
    return None


def edited(text: str) -> str:
    """Typed text as a terminal hands it on: what its erasing keys take back is gone."""
    text = _KILLED.sub("", text)
    for _ in range(min(256, text.count("\x7f") + text.count("\x08"))):
        text = _ERASED.sub("", text)
    return text.replace("\x16", "")


def _yolo(request: DecisionRequest) -> bool:
    return request.mode is Mode.YOLO


def _strictness(opinion: Opinion) -> int:
    return _ORDER[opinion.verdict or "allow"]


def decide(request: DecisionRequest, disabled: frozenset[str] = frozenset()) -> Decision:
    """Allow, ask or deny one call by mode, effects and authority; `disabled` tools are denied in every mode. A call
    with a command line is not for here."""
    return Policy(_BARE, disabled=disabled).decide(request)


def _named(subject: PathSubject, request: DecisionRequest) -> tuple[str, ...]:
    path = beneath(subject.path, request.workspace or "/")
    return () if path is None else (path,)


_BARE = PolicyInputs(
    url=lambda url, request: None,
    paths=_named,
    special=lambda request: NOTHING_SPECIAL,
    sandboxed=lambda: True,
    job=lambda session, job: None,
)
