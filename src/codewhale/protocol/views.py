"""Questions that an interface asks beside a session's events, and the rows that answer them. All are read-only."""

from typing import Any

from msgspec import Struct

from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.memory import ContextPart, LayerRow
from codewhale.protocol.requests import Query


class ListCommands(Query[tuple["CommandRow", ...]], frozen=True, tag="list_commands"):
    """Ask for the slash commands; answered by CommandRow rows, by name."""

    session: str


class CommandRow(Struct, frozen=True):
    """A slash command: its name with the slash, its arguments as help shows them, one line of what it does."""

    name: str
    usage: str
    summary: str


class CompleteCommand(Query[tuple["Choice", ...]], frozen=True, tag="complete_command"):
    """Ask what may stand at the end of a slash command line ("/mo", "/mode p"), best first."""

    session: str
    line: str


class Choice(Struct, frozen=True, omit_defaults=True):
    """One way to complete: `value` replaces the last word of the line, `detail` says what it is."""

    value: str
    detail: str = ""


class FindFiles(Query[tuple["FileMatch", ...]], frozen=True, tag="find_files", omit_defaults=True):
    """Ask for the workspace's files that fit a text, letters in order but not together; ignored ones are left out. What
    was mentioned often and lately comes first."""

    session: str
    text: str
    limit: int = 50


class FileMatch(Struct, frozen=True):
    """A file, or a folder (its path ends with a slash), relative to the workspace; a higher score fits better."""

    path: str
    score: float


class LookAtMentions(Query[tuple["FileMention", ...]], frozen=True, tag="look_at_mentions"):
    """Ask what becomes of the files of the workspace that a message names as @path."""

    session: str
    text: str


class FileMention(Struct, frozen=True):
    """A file that a message names: its bytes, whether they go along, and why the message cannot be sent with it. What
    neither goes along nor is refused stays a path: it is too large."""

    path: str
    size: int
    attached: bool = False
    refused: str = ""


class ListModels(Query[tuple["ModelRow", ...]], frozen=True, tag="list_models", omit_defaults=True):
    """Ask which models can be chosen; answered by ModelRow rows, usable ones first. With `dial` the session's own
    provider, or the one of that name, is asked which it serves, once and again when `fresh`."""

    session: str
    dial: bool = False
    provider: str = ""
    fresh: bool = False


class ModelRow(Struct, frozen=True):
    """A model at a provider. `window` is in tokens, 0 when unknown; `price` is as in UsageView, None when unknown;
    `why` says what it lacks when it is not `ready`; `current` is the session's own; `images`: it takes images."""

    provider: str
    model: str
    window: int
    price: dict[str, Any] | None
    ready: bool
    why: str
    current: bool
    images: bool = False


class ListProviders(Query[tuple["ProviderRow", ...]], frozen=True, tag="list_providers"):
    """Ask which providers there are; answered by ProviderRow rows, usable ones first."""

    session: str


class FindLocal(Query[tuple["ProviderRow", ...]], frozen=True, tag="find_local"):
    """Look for model servers on this machine at their usual ports; answered by those that answered."""

    session: str


class ProviderRow(Struct, frozen=True, omit_defaults=True):
    """A provider. `why` says what it lacks when it is not `ready`, in one sentence; `local` is one on this machine;
    `key_env` names the environment variable that its key may stand in, "" where it needs none; `models` are those that
    it said to serve when it was looked for."""

    name: str
    dialect: str
    base_url: str
    ready: bool
    why: str
    local: bool = False
    key_env: str = ""
    models: tuple[str, ...] = ()
    current: bool = False


class CheckEndpoint(Query["EndpointView"], frozen=True, tag="check_endpoint", omit_defaults=True):
    """Ask what answers at an address as a person wrote it, or at the provider of a `name`; with a `key` that is not
    kept yet, and unencrypted where that is `exposed`. Answered by an EndpointView."""

    session: str
    address: str = ""
    name: str = ""
    key: str = ""
    exposed: bool = False


class EndpointView(Struct, frozen=True, omit_defaults=True):
    """What answered: a `name` for it, its `base_url`, the `models` it lists and the one to begin with. `why` says in
    one sentence why it cannot be used; `wants_key` that it is for want of a key, or of another one, `exposed` that
    requests would go unencrypted to another machine, so that nothing was asked."""

    name: str
    base_url: str
    models: tuple[ModelRow, ...] = ()
    model: str = ""
    why: str = ""
    wants_key: bool = False
    exposed: bool = False


class PreviewSession(Query["SessionPreview"], frozen=True, tag="preview_session", omit_defaults=True):
    """Ask how a session, open or not, ends: its last messages; answered by a SessionPreview."""

    id: str
    last: int = 8


class SessionSummary(Struct, frozen=True):
    """A row of a listing. `state` is idle, open or damaged; times are RFC 3339; `parent` is "" or an id; `owner`
    is that of the session it works for, with the `kind` of its work, its `name` and its `role` there; `files`
    counts the files that it changed."""

    id: str
    title: str
    created: str
    updated: str
    workspace: str
    turns: int
    messages: int
    model: str
    state: str
    parent: str
    owner: str = ""
    kind: str = ""
    name: str = ""
    files: int = 0
    role: str = ""


class SessionPreview(Struct, frozen=True):
    """A session before it is opened: `lines` are (role, the start of what was said), oldest first."""

    summary: SessionSummary
    lines: tuple[tuple[str, str], ...]


class ListFormer(Query[tuple["FormerMessage", ...]], frozen=True, tag="list_former"):
    """Ask for the messages that the conversation can go back to; answered by FormerMessage rows, oldest first."""

    session: str


class FormerMessage(Struct, frozen=True):
    """A message of the person that began turn `turn`, and when."""

    turn: int
    text: str
    at: str


class PreviewRewind(Query["RewindView"], frozen=True, tag="preview_rewind"):
    """Ask what going back to before turn `turn` would do; answered by a RewindView."""

    session: str
    turn: int


class RewindView(Struct, frozen=True):
    """What a rewind takes back: the `messages` that go, what would become of each file, what stays as it is and why;
    `why` says that files cannot be put back here."""

    messages: tuple[str, ...]
    files: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    diffs: tuple[DiffBlock, ...] = ()
    why: str = ""


class ReadOutput(Query[str], frozen=True, tag="read_output", omit_defaults=True):
    """Ask for all that a call printed or answered: by the `kept` sha256 that its event names, else by its id."""

    session: str
    call_id: str = ""
    kept: str = ""


class GetClosing(Query["ClosingView"], frozen=True, tag="get_closing"):
    """Ask what a session came to, to be shown when it is left; answered by a ClosingView."""

    session: str


class ClosingView(Struct, frozen=True):
    """What a session came to: its title, how many files its agent changed that still stand so, the lines that came and
    went in them, and the cost by currency."""

    title: str
    turns: int
    files: int
    added: int
    removed: int
    cost: dict[str, float]


class ListJobs(Query[tuple["JobRow", ...]], frozen=True, tag="list_jobs"):
    """Ask for the session's background commands; answered by JobRow rows, running ones first."""

    session: str


class JobRow(Struct, frozen=True):
    """A background command. `status` is Running, Completed, Failed, Killed, TimedOut or Stale; `tail` is the end of
    what it printed, `bytes` how much that was in all."""

    id: str
    command: str
    cwd: str
    status: str
    seconds: float
    exit_code: int | None
    tail: str
    bytes: int


class GetQueue(Query[tuple["QueuedRow", ...]], frozen=True, tag="get_queue"):
    """Ask what waits for the running turn: what joins it at its next step first; answered by QueuedRow rows."""

    session: str


class QueuedRow(Struct, frozen=True):
    """A message that waits; `delivery` is steer or queue, `attachments` how many it carries."""

    text: str
    delivery: str
    attachments: int = 0


class GetContext(Query["ContextView"], frozen=True, tag="get_context", omit_defaults=True):
    """Ask how full the context is; answered by a ContextView. A `brief` one says nothing of what the next request
    consists of, and costs nothing."""

    session: str
    brief: bool = False


class GetTools(Query["ToolsView"], frozen=True, tag="get_tools"):
    """Ask which tools requests carry; answered by a ToolsView."""

    session: str


class ContextView(Struct, frozen=True):
    """How full the context is, in tokens: what /context shows. `spendable` is the window less `reserved`, the room
    for the answer; `used` is what the next request takes, by the provider's last count where `calibrated`; from
    `threshold` on room is made (0: never by itself). What the next request takes stands in the `rows` of the layers of
    memory and in all other `parts`: their bytes come to `bytes`, its body without the words that the person will say,
    and their tokens to `used`. Billed and cached are apart."""

    provider: str
    model: str
    window: int
    window_source: str
    reserved: int
    spendable: int
    used: int
    threshold: int
    rows: tuple[LayerRow, ...]
    parts: tuple[ContextPart, ...]
    bytes: int
    calibrated: bool
    billed_input: int
    billed_output: int
    last_hit: int
    last_miss: int
    compactions: int


class ToolsView(Struct, frozen=True):
    """The tools array that requests carry: what /tools shows. `tools` are names with their bytes, in the order in which
    they stand there; those of `activated` stand behind the head, in the order of time. `request` is the number of the
    last request, 0 before the first; `bytes` the size of the whole value."""

    profile: str
    dialect: str
    request: int
    bytes: int
    tools: tuple[tuple[str, int], ...]
    activated: tuple[str, ...]


class GetWorkspace(Query["WorkspaceRow"], frozen=True, tag="get_workspace"):
    """Ask where the session works; answered by a WorkspaceRow."""

    session: str


class WorkspaceRow(Struct, frozen=True):
    """`branch` is "" outside a git repository; `changed` counts the files that git sees as changed, at most 1,000."""

    root: str
    branch: str
    changed: int


class GetDiff(Query[tuple[DiffBlock, ...]], frozen=True, tag="get_diff", omit_defaults=True):
    """Ask what differs from the last commit (without git: from what the agent found) in `path` ("" is everywhere)."""

    session: str
    path: str = ""


class PreviewUndo(Query["UndoView"], frozen=True, tag="preview_undo", omit_defaults=True):
    """Ask what taking back the last `turns` turns that changed files would do; answered by an UndoView."""

    session: str
    turns: int = 1


class UndoView(Struct, frozen=True):
    """What can be taken back and what doing so would change. `rows` are (number for /undo, the turn in one line);
    `files` what would become of each file, `refused` what stays as it is and why; `why` says that nothing can be taken
    back here."""

    rows: tuple[tuple[int, str], ...]
    files: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    diffs: tuple[DiffBlock, ...] = ()
    why: str = ""


class GetSettings(Query[tuple["SettingRow", ...]], frozen=True, tag="get_settings"):
    """Ask for every value of the configuration and where it comes from; answered by SettingRow rows, by key."""

    session: str


class SettingRow(Struct, frozen=True, omit_defaults=True):
    """A value: `shown` never holds a secret, `origin` is default, a file, an environment variable or the command line.
    `choices` are the values that there are, () where any may stand; `fixed` ones are not changed from here."""

    key: str
    shown: str
    origin: str
    choices: tuple[str, ...] = ()
    fixed: bool = False


class ListServers(Query[tuple["ServerRow", ...]], frozen=True, tag="list_servers"):
    """The MCP servers of a session's workspace, those that cannot be used too. Nothing is started for it."""

    session: str


class ServerRow(Struct, frozen=True, omit_defaults=True):
    """An MCP server. `state` is "off" (disabled), "faulty", "unapproved", "changed" (since it was approved), "idle"
    (not started), "starting", "ready", "failed" or "closed"; `error` is the last one, or what is wrong, with the
    remedy. `line` is its command line or address; the three times are those of connecting, calling and reading, in
    seconds. `tools` are (name that a model calls, its own name, description), `prompts` and `resources` (name or
    address, description); `since` is when they were listed. `notes` are what else a person should know of it."""

    name: str
    file: str
    source: str
    transport: str
    line: str
    state: str
    error: str = ""
    stderr: str = ""
    times: tuple[float, float, float] = (0.0, 0.0, 0.0)
    required: bool = False
    version: str = ""
    protocol: str = ""
    tools: tuple[tuple[str, str, str], ...] = ()
    prompts: tuple[tuple[str, str], ...] = ()
    resources: tuple[tuple[str, str], ...] = ()
    since: str = ""
    notes: tuple[str, ...] = ()
