"""Automations over a journal whose clock a test moves, and an independent count of the moments of their rules."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from codewhale.automations.book import AutomationBook
from codewhale.automations.recurrence import DAYS, Recurrence, recurrence
from codewhale.journal.model import RunJournal
from codewhale.journal.sqlite import SqliteJournal
from codewhale.lib.clock import SystemClock
from codewhale.protocol.modes import Mode
from codewhale.session.store import SessionStore
from codewhale.tasks.book import TaskBook
from codewhale.tasks.model import TaskSpec

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC).timestamp()
DAY = 86_400.0
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "America/Sao_Paulo")


class Moved:
    """A clock that stands until it is moved."""

    def __init__(self, at: float = START) -> None:
        self.at = at


class Almanac:
    """The automations of a home, with its journal and the clock of both."""

    def __init__(self, home: Path) -> None:
        self.clock = Moved()
        self._folder = home
        self._tasks = TaskBook(
            str(home), SessionStore(str(home), SystemClock()), lambda place: SqliteJournal(place, lambda: self.clock.at)
        )
        self.automations = AutomationBook(self._tasks)

    @property
    def journal(self) -> RunJournal:
        return self._tasks.journal

    def task(self, prompt: str = "check", workspace: str = "") -> TaskSpec:
        return TaskSpec(prompt, workspace or str(self._folder), Mode.AGENT, auto_approve=True)

    def over(self) -> None:
        """Let every task be over."""
        for run in self.journal.runs.rows("task", ("queued",), 1_000):
            self.journal.runs.stop(run.id)

    def close(self) -> None:
        self._tasks.close()


def almanac(home: Path) -> Almanac:
    return Almanac(home)


def any_rule(dice: random.Random) -> tuple[str, str]:
    """A rule and its zone."""
    zone = dice.choice(ZONES)
    days = ",".join(dice.sample(DAYS, dice.randint(1, 7)))
    if dice.random() < 0.5:
        on = f";BYDAY={days}" if dice.random() < 0.5 else ""
        return f"FREQ=HOURLY;INTERVAL={dice.choice((1, 5, 7, 11, 24, 36))}{on}", zone
    hours = ",".join(map(str, sorted(dice.sample((0, 1, 2, 3, 9, 23), dice.randint(1, 3)))))
    return f"FREQ=WEEKLY;BYDAY={days};BYHOUR={hours};BYMINUTE={dice.choice(('0', '30', '15,45'))}", zone


def counted(rule: Recurrence, until: float) -> int:
    """How many moments a rule has from its start to a moment, by walking days and hours one by one."""
    return sum(1 for moment in _walked(rule) if rule.start < moment <= until) if until > rule.start else 0


def _walked(rule: Recurrence) -> Iterator[float]:
    zone = ZoneInfo(rule.zone)
    if rule.freq == "HOURLY":
        for number in range(1, 24 * 1_000 // rule.interval):
            moment = rule.start + number * rule.interval * 3600
            if not rule.days or datetime.fromtimestamp(moment, UTC).astimezone(zone).weekday() in rule.days:
                yield moment
        return
    first, seen = datetime.fromtimestamp(rule.start, UTC).astimezone(zone).date(), set[float]()
    for ahead in range(-1, 1_000):
        day = first + timedelta(days=ahead)
        for hour in rule.hours if day.weekday() in rule.days else ():
            for minute in rule.minutes:
                local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
                moment = local.timestamp()
                if datetime.fromtimestamp(moment, UTC).astimezone(zone).replace(tzinfo=None) != local.replace(
                    tzinfo=None
                ):
                    moment = _change(local, zone)  # left out by the clocks: it runs when they have changed
                if moment not in seen:
                    seen.add(moment)
                    yield moment


def _change(local: datetime, zone: ZoneInfo) -> float:
    """The moment at which the clocks pass over a time of day."""
    at = (local - timedelta(hours=3)).timestamp()
    offset = datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset()
    while datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset() == offset:
        at += 60
    return at


def sound(home: Path, count: int, ticks: int, seed: int) -> list[str]:
    """What is wrong after 400 days with so many automations and looks at the clock, a jump of a day back and one of a
    year forward among them: a moment that ran twice, or that neither ran nor was said to be missed."""
    dice, book = random.Random(seed), almanac(home)
    rules = {}
    for number in range(count):
        text, zone = any_rule(dice)
        view = book.automations.create(f"a{number}", text, zone, book.task())
        rules[view.id] = recurrence(text, zone, START)
    looks = sorted(START + dice.random() * 400 * DAY for _ in range(ticks))
    shift, queued, furthest = 0.0, dict.fromkeys(rules, 0), START
    for at, moment in enumerate(looks):
        shift += {ticks // 3: -DAY, 2 * ticks // 3: 365 * DAY}.get(at, 0.0)
        book.clock.at = moment + shift
        furthest = max(furthest, book.clock.at)
        for task in book.automations.fire_due():
            run = book.journal.runs.get(task)
            assert run is not None
            queued[str(run.data["by"]).split()[1]] += 1
        if dice.random() < 0.8:
            book.over()
    wrong = []
    for view in book.automations.board(100).automations:
        said = queued[view.id] + view.missed
        wanted = counted(rules[view.id], furthest)
        runs = book.automations.record(view.id).recent_runs
        if said != wanted or len({run.scheduled_for for run in runs}) != len(runs):
            wrong.append(f"{view.rrule} in {view.timezone}: {queued[view.id]} ran, {view.missed} missed of {wanted}")
    book.close()
    return wrong
