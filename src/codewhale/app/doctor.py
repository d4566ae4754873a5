"""Is this machine fit to work on: checks that look and never start or repair anything; `examine` also asks the
provider."""

import asyncio
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from codewhale import __version__
from codewhale.app.connecting import reach
from codewhale.app.keys import MISSING
from codewhale.app.mcpparts import any_named, open_servers
from codewhale.app.routes import KeyState, Routes, open_routes
from codewhale.app.settings import open_config
from codewhale.config import Config, config_file
from codewhale.lib.clock import SystemClock
from codewhale.lib.text import counted, sanitise
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.known_models import DEFAULT_PROVIDER
from codewhale.models.loopback import plain_url
from codewhale.process.command import home_inside
from codewhale.process.confinement import BUBBLEWRAP, sandbox
from codewhale.process.itself import own_places
from codewhale.process.programs import PROGRAMS, find_program, how_to_install
from codewhale.protocol.errors import CodeWhaleError, ConfigError
from codewhale.services.testruns.runners import runner_program
from codewhale.session.store import SessionStore

Status = Literal["ok", "warn", "fail"]
MEBI = 1 << 20
_NOTHING: Mapping[str, str] = MappingProxyType({})
LITTLE_SPACE, NO_SPACE = 1024 * MEBI, 64 * MEBI


class Check(Struct, frozen=True):
    """One row; `fix` is what to do, "" when there is nothing."""

    name: str
    status: Status
    detail: str
    fix: str = ""


class Capability(Struct, frozen=True):
    """What is known of the model without asking it; `window_source` says who says so, "" where nothing is known."""

    context_window: int = 0
    window_source: str = ""
    max_output: int = 0


class Diagnosis(Struct, frozen=True):
    """What `codewhale doctor --json` prints. `ok` is False when any check failed."""

    schema_version: int
    version: str
    workspace: str
    config_path: str
    config_present: bool
    provider: str
    model: str
    base_url: str
    api_key: KeyState
    capability: Capability
    ok: bool
    checks: tuple[Check, ...]


async def examine(
    home: str, workspace: str, environ: Mapping[str, str], provider: str = "", model: str = ""
) -> Diagnosis:
    """The diagnosis with what the provider answers, the configured one or that of a session."""
    over = {key: value for key, value in (("provider", provider), ("model", model)) if value}
    found = await asyncio.to_thread(diagnose, home, workspace, environ, over)
    if not found.base_url or found.api_key.source == MISSING or not found.ok:
        return found
    config = await asyncio.to_thread(open_config, home, workspace, environ, over)
    check = await _answer(open_routes(home, config, environ), found.provider, found.model, in_session=bool(over))
    return replace(found, checks=(*found.checks, check), ok=found.ok and check.status != "fail")


async def _answer(routes: Routes, name: str, model: str, in_session: bool) -> Check:
    begun = time.monotonic()
    reached = await reach(routes, name, model)
    failed = reached.failure
    if failed is None:
        listed = f"{len(reached.models):,} models listed, " if reached.models else ""
        return Check("answer", "ok", f"{name} answers; {listed}{time.monotonic() - begun:.1f} s")
    match failed.kind:
        case "auth":
            fix = "/login" if in_session else f"codewhale login {name}"
        case "no_model":
            fix = "/model" if in_session else f"codewhale model list --live --provider {name}, then --model M"
        case _:
            fix = "/connect" if in_session else f"codewhale provider test {name}"
            fix = f"check that the server runs and its address is right: {fix}"
    return Check("answer", "fail", reached.why(name), fix)


_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def read_aloud(found: Diagnosis) -> str:
    """The diagnosis as lines for people."""
    lines = [f"codewhale {found.version}"]
    for check in found.checks:
        fix = f"\n{'':18}-> {check.fix}" if check.fix else ""
        lines.append(sanitise(f"{_MARKS[check.status]}  {check.name:<10}  {check.detail}{fix}"))
    warned = any(check.status == "warn" for check in found.checks)
    lines.append("not ready: see FAIL above" if not found.ok else "usable; see warn above" if warned else "ready")
    return "\n".join(lines)


def diagnose(home: str, workspace: str, environ: Mapping[str, str], over: Mapping[str, str] = _NOTHING) -> Diagnosis:
    path = config_file(home)
    config, rows = _config(home, workspace, environ, over)
    route = _Route() if config is None else _route(config, home, environ)
    checks = (
        *rows,
        _home(home),
        *route.checks,
        _python(workspace),
        *_workspace(workspace),
        *_programs(environ, workspace),
        *_servers(config, home, workspace, environ),
        _sandbox("" if config is None else str(config.get("sandbox.network") or "")),
        _space(home),
        _sessions(home),
        *_tasks(home),
    )
    ok = all(check.status != "fail" for check in checks)
    return Diagnosis(1, __version__, workspace, path, os.path.exists(path), route.provider, route.model,
                     route.base_url, route.key, route.capability, ok, checks)  # fmt: skip


def _config(
    home: str, workspace: str, environ: Mapping[str, str], over: Mapping[str, str]
) -> tuple[Config | None, list[Check]]:
    path = config_file(home)
    try:
        config = open_config(home, workspace, environ, over)
    except ConfigError as error:
        return None, [Check("config", "fail", str(error), f"edit {path}")]
    if config.notices:
        return config, [Check("config", "warn", notice, f"edit {path}") for notice in config.notices]
    present = os.path.exists(path)
    return config, [Check("config", "ok", path if present else f"{path} not found: using defaults")]


def _home(home: str) -> Check:
    try:
        found = os.stat(home)
    except FileNotFoundError:
        above = _nearest(home)
        if not os.access(above, os.W_OK | os.X_OK):
            detail = f"{home} cannot be created: {above} cannot be written"
            return Check("home", "fail", detail, "set CODEWHALE_HOME to a folder of your own")
        return Check("home", "ok", f"{home} will be created by the first session")
    except OSError as error:
        return Check("home", "fail", f"{home}: {error.strerror}", "set CODEWHALE_HOME to a folder of your own")
    if not stat.S_ISDIR(found.st_mode):
        return Check("home", "fail", f"{home} is not a folder", "set CODEWHALE_HOME to a folder")
    if found.st_uid != os.geteuid():
        detail = f"{home} belongs to user {found.st_uid}, not to you ({os.geteuid()}): sessions cannot be opened"
        return Check("home", "fail", detail, "set CODEWHALE_HOME to a folder of your own")
    if not os.access(home, os.W_OK | os.X_OK):
        return Check("home", "fail", f"{home} cannot be written", f"chmod 700 {home}")
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        return Check("home", "warn", f"{home} is open to other users (mode {mode:o})", f"chmod 700 {home}")
    return Check("home", "ok", f"{home}, private")


def _nearest(path: str) -> str:
    above = os.path.dirname(path)
    return above if os.path.isdir(above) or above == path else _nearest(above)


class _Route(Struct, frozen=True):
    """What is used by default, and what there is to say of it."""

    checks: tuple[Check, ...] = ()
    provider: str = ""
    model: str = ""
    base_url: str = ""
    key: KeyState = KeyState(MISSING)
    capability: Capability = Capability()


def _route(config: Config, home: str, environ: Mapping[str, str]) -> _Route:
    routes = open_routes(home, config, environ)
    name, model = routes.default()
    settings = routes.tables.get(name)
    if settings is None:
        detail = f"provider {name!r} has no [providers.{name}] table"
        fix = f"add the table to {config.path}, or: codewhale config set provider {DEFAULT_PROVIDER}"
        return _Route((Check("provider", "fail", detail, fix), Check("api_key", "warn", MISSING)), name, model)
    where = f" at {plain_url(settings.base_url)}" if settings.base_url else ""
    check = Check("provider", "ok", f"{name} ({settings.dialect}){where}")
    can = Capability()
    try:
        facts = routes.build(name, model).model
        can = Capability(facts.window, facts.window_source, facts.max_output)
    except CodeWhaleError as error:
        check = Check("provider", "fail", str(error), f"edit {config.path}")
    found = routes.key(name)
    key = KeyState(found.source, found.refused)
    return _Route((check, _api_key(name, settings, key)), name, model, plain_url(settings.base_url), key, can)


def _api_key(name: str, settings: ProviderSettings, key: KeyState) -> Check:
    if key.source != MISSING:
        return Check("api_key", "ok", "; ".join((key.source, *key.refused)))
    detail = "; ".join(key.refused) or f"{settings.api_key_env} is not set"
    fix = f"codewhale login {name}, or export {settings.api_key_env}=..."
    return Check("api_key", "warn", f"{detail}: {name} will reject requests", fix)


def _servers(config: Config | None, home: str, workspace: str, environ: Mapping[str, str]) -> Iterator[Check]:
    """The MCP servers that are named; nothing where none is. None is started."""
    user_file = "" if config is None else config.section("mcp_config_path", str)
    if config is None or not any_named(user_file, workspace):
        return
    from codewhale.mcp.admin import McpAdmin

    admin = McpAdmin(open_servers(home, workspace, user_file, environ))
    faults = [fault.line for fault in admin.faults()]
    rows = admin.rows()
    faults += [row.error for row in rows if row.state == "faulty"]
    waiting = [row.name for row in rows if row.state in ("unapproved", "changed")]
    states = ", ".join(f"{row.name} {row.state}" for row in rows)
    if faults:
        yield Check("mcp", "warn", f"{counted(len(faults), 'fault')}: {faults[0]}", "codewhale mcp validate")
    elif waiting:
        yield Check("mcp", "warn", f"waiting for approval: {', '.join(waiting)}", "codewhale mcp approve NAME")
    else:
        yield Check("mcp", "ok", states)


def _python(workspace: str) -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    own = own_places(workspace)
    if not own:
        return Check("python", "ok", f"{version} at {sys.executable}")
    detail = f"{version}; codewhale runs from this workspace, so commands cannot change {', '.join(own)}"
    return Check("python", "warn", detail, "install it elsewhere: uv tool install codewhale, or pipx install codewhale")


# Programs that tools use, whatever the workspace; one that only commands of a session may use is no fault.
_WANTED, _OPTIONAL = ("git", "rg", "pdftotext"), ("gh",)


def _programs(environ: Mapping[str, str], workspace: str) -> Iterator[Check]:
    places = environ.get("PATH", os.defpath)
    for row in PROGRAMS:
        if row.name in (*_WANTED, *_OPTIONAL):
            path = find_program(row.name, workspace, places)
            passed = shutil.which(row.name, path=places)
            why = f"{passed} is ignored: others or a project may write there" if passed else "not found"
            missing = Check(row.name, "warn", f"{why}: {row.without}", how_to_install(row.name, places))
            if row.name in _OPTIONAL:
                missing = Check(row.name, "ok", f"{missing.detail}; {missing.fix}")
            yield Check(row.name, "ok", path) if path else missing
    yield _tests(places, workspace)


def _tests(places: str, workspace: str) -> Check:
    program = runner_program(workspace)
    if not program:
        return Check("tests", "ok", "no test runner found in this folder")
    path = shutil.which(program, path=places)
    if path:
        return Check("tests", "ok", f"run by {path}")
    return Check("tests", "warn", f"run by {program}, which is not found", how_to_install(program, places))


def _workspace(workspace: str) -> Iterator[Check]:
    if home_inside(workspace):
        detail = f"{workspace} contains your home folder, where programs run some files automatically"
        yield Check("workspace", "warn", detail, "open the folder of one project")


def _sandbox(network: str) -> Check:
    found = sandbox()
    tried = "; ".join(one.detail for one in found.tried)
    if not found.mechanism:
        detail = f"none, so no command runs unless you allow it: {tried}"
        return Check("sandbox", "warn", detail, found.fix or "codewhale sandbox check")
    if found.mechanism == BUBBLEWRAP:
        held = "files and processes; commands have the network" if network == "on" else "files, processes and network"
        return Check("sandbox", "ok", f"{BUBBLEWRAP}: {held}; try it: codewhale sandbox check")
    limits = "commands cannot change owners or attributes, or create pipes"
    if not found.brokered:
        limits = "commands cannot create files at the top of the workspace, change modes or times, or commit"
    return Check("sandbox", "warn" if found.fix else "ok", f"{found.mechanism}: {limits}; {tried}", found.fix)


def _tasks(home: str) -> Iterator[Check]:
    """Whether somebody works at tasks, where there are any."""
    if not os.path.isdir(os.path.join(home, "journal")):
        return
    from codewhale.journal.model import JournalError
    from codewhale.tasks.book import TaskBook

    book = TaskBook(home, SessionStore(home, SystemClock()))
    try:
        board = book.board(1)
        waiting = board.counts.get("queued", 0)
        counts = ", ".join(f"{count} {state}" for state, count in sorted(board.counts.items())) or "none"
        works = "; ".join(board.workers) or "nobody works"
        fix = "open codewhale, or run: codewhale work" if waiting and not board.workers else ""
        yield Check("tasks", "warn" if fix else "ok", f"{counts}; {works}", fix)
    except JournalError as error:
        yield Check("tasks", "warn", str(error))
    finally:
        book.close()


def _space(home: str) -> Check:
    place = home
    while not os.path.isdir(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Check("disk", "warn", f"{place}: {error.strerror}")
    detail = f"{free // MEBI} MiB free in {place}"
    if free < NO_SPACE:
        return Check("disk", "fail", detail, "free some space; sessions cannot be recorded")
    if free < LITTLE_SPACE:
        return Check("disk", "warn", detail, "free some space")
    return Check("disk", "ok", detail)


def _sessions(home: str) -> Check:
    try:
        rows = SessionStore(home, SystemClock()).summaries(owned=True) if os.path.isdir(home) else []
    except (CodeWhaleError, OSError) as error:
        return Check("sessions", "fail", str(error), "set CODEWHALE_HOME to a folder of your own")
    damaged = [row.id for row in rows if row.state == "damaged"]
    if damaged:
        detail = f"{len(rows)}, damaged: {', '.join(damaged[:5])}{'...' if len(damaged) > 5 else ''}"
        fix = f"resume one to repair it: codewhale exec --resume {damaged[0]} ..."
        return Check("sessions", "warn", detail, fix)
    return Check("sessions", "ok", f"{len(rows)}, none damaged")
