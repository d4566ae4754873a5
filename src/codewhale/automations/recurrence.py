"""When an automation runs: the subset of iCalendar rules that it may have, and the moments of one.

Days and hours of a week are those of a time zone; an interval of hours is elapsed time from a beginning, so that it
knows no midnight and no daylight saving. Every moment is UTC, in seconds since 1970.
"""

import difflib
import functools
import math
import os
import zoneinfo
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from cronsim import CronSim
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.tasks.model import TaskError

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
HOURLY, WEEKLY = "HOURLY", "WEEKLY"
KEYS = {HOURLY: ("FREQ", "INTERVAL", "BYDAY"), WEEKLY: ("FREQ", "BYDAY", "BYHOUR", "BYMINUTE")}
EXAMPLES = {HOURLY: "FREQ=HOURLY;INTERVAL=6", WEEKLY: "FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;BYMINUTE=30"}
MOST_HOURS, MOST_A_DAY = 8_784, 24
MOST_COUNTED = 10_000
RULE_CHARS = 300
_STEPS = 400  # of an interval, between two moments on days of the week: their order repeats after 168
_HOUR = 3600.0


class AutomationError(TaskError):
    """What was asked of an automation cannot be: `field` is the argument at fault, `better` what it could be."""

    def __init__(self, text: str, field: str = "", better: str = "") -> None:
        super().__init__(text, field)
        self.better = better


class Recurrence(Struct, frozen=True):
    """A rule as it was read. `days` are those of the week from Monday, none for every one; `zone` names the time zone
    of days and hours; `start` is what an interval of hours counts from."""

    freq: str
    zone: str
    start: float
    interval: int = 1
    days: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The rule as it is kept."""
        days = f";BYDAY={','.join(DAYS[day] for day in self.days)}" if self.days else ""
        if self.freq == HOURLY:
            return f"FREQ=HOURLY;INTERVAL={self.interval}{days}"
        return f"FREQ=WEEKLY{days};BYHOUR={_numbers(self.hours)};BYMINUTE={_numbers(self.minutes)}"

    def after(self, moment: float) -> float | None:
        """The first moment behind this one; None where there is none."""
        return next(self.moments(moment), None)

    def between(self, first: float, until: float) -> tuple[int, float]:
        """How many moments there are from `first`, which is one, to `until`, 10,000 at most, and the last of them."""
        count, last = 1, first
        for moment in self.moments(first):
            if moment > until or count == MOST_COUNTED:
                break
            count, last = count + 1, moment
        return count, last

    def moments(self, behind: float) -> Iterator[float]:
        """The moments behind this one, in order, each once."""
        return self._interval(behind) if self.freq == HOURLY else self._week(behind)

    def _interval(self, behind: float) -> Iterator[float]:
        step = self.interval * _HOUR
        number, idle = max(1, math.floor((behind - self.start) / step) + 1), 0
        while idle < _STEPS:
            at, idle = self.start + number * step, idle + 1
            number += 1
            if at > behind and (not self.days or self._local(at).weekday() in self.days):
                idle = 0
                yield at

    def _week(self, behind: float) -> Iterator[float]:
        days = ",".join(str((day + 1) % 7) for day in self.days)
        line = f"{_numbers(self.minutes)} {_numbers(self.hours)} * * {days}"
        for at in CronSim(line, self._local(behind)):
            if (moment := at.timestamp()) > behind:
                behind = moment
                yield moment

    def _local(self, moment: float) -> datetime:
        return datetime.fromtimestamp(moment, UTC).astimezone(_zone(self.zone))


def recurrence(rule: str, zone: str, start: float) -> Recurrence:
    """The rule of this text. Raises AutomationError that names what is wrong with it."""
    _check_zone(zone)
    parts = _parts(rule)
    freq = parts.get("FREQ", "")
    if freq not in KEYS:
        what = f"FREQ={one_line(freq, 40)} is not supported" if freq else "it has no FREQ"
        raise _wrong(f"{what}: it is HOURLY or WEEKLY", _instead(freq, parts))
    for key in parts:
        if key not in KEYS[freq]:
            allowed = ", ".join(KEYS[freq])
            better = ";".join(f"{name}={value}" for name, value in parts.items() if name in KEYS[freq])
            raise _wrong(f"{one_line(key, 40)} is not supported with FREQ={freq}, which takes {allowed}", better)
    days = _days(parts["BYDAY"], parts) if "BYDAY" in parts else ()
    if freq == HOURLY:
        interval = _one(parts, "INTERVAL", 1, MOST_HOURS) if "INTERVAL" in parts else 1
        made = Recurrence(freq, zone, start, interval, days)
        if made.after(start) is None:
            said = f"every {interval} hours from now never falls on {parts['BYDAY']}"
            raise _wrong(said, _with(parts, "INTERVAL", "1"))
        return made
    for key, value in (("BYDAY", "MO"), ("BYHOUR", "9")):
        if key not in parts:
            raise _wrong(f"FREQ=WEEKLY needs {key}", _with(parts, key, value))
    hours = _many(parts, "BYHOUR", 23)
    minutes = _many(parts, "BYMINUTE", 59) if "BYMINUTE" in parts else (0,)
    if len(hours) * len(minutes) > MOST_A_DAY:
        said = f"BYHOUR and BYMINUTE give {len(hours) * len(minutes)} moments a day, {MOST_A_DAY} are the most"
        raise _wrong(said, _with(parts, "BYMINUTE", str(minutes[0])))
    return Recurrence(freq, zone, start, days=days, hours=hours, minutes=minutes)


def local_zone() -> str:
    """The name of this machine's time zone, UTC where it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    linked = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    return next((name for name in (named, linked) if name and name in _zones()), "UTC")


def _parts(rule: str) -> dict[str, str]:
    text = rule.strip().removeprefix("RRULE:").rstrip(";")
    if not text or len(text) > RULE_CHARS:
        raise _wrong("it is empty" if not text else f"it has more than {RULE_CHARS} characters", EXAMPLES[WEEKLY])
    parts: dict[str, str] = {}
    for part in text.split(";"):
        key, found, value = (piece.strip().upper() for piece in part.partition("="))
        if not found or not key or not value:
            raise _wrong(f"{one_line(part, 40)!r} is no KEY=VALUE", EXAMPLES[WEEKLY])
        if key in parts:
            raise _wrong(f"{one_line(key, 40)} stands in it twice", EXAMPLES[WEEKLY])
        parts[key] = value
    return parts


def _days(value: str, parts: dict[str, str]) -> tuple[int, ...]:
    names = value.split(",")
    for name in names:
        if name not in DAYS:
            known = [day for day in names if day in DAYS] or ["MO"]
            raise _wrong(
                f"BYDAY={one_line(name, 40)} is no day: {', '.join(DAYS)}", _with(parts, "BYDAY", ",".join(known))
            )
    return tuple(sorted({DAYS.index(name) for name in names}))


def _many(parts: dict[str, str], key: str, most: int) -> tuple[int, ...]:
    return tuple(sorted({_number(parts, key, text, 0, most) for text in parts[key].split(",")}))


def _one(parts: dict[str, str], key: str, least: int, most: int) -> int:
    return _number(parts, key, parts[key], least, most)


def _number(parts: dict[str, str], key: str, text: str, least: int, most: int) -> int:
    whole = text.isascii() and text.isdigit() and len(text) <= 6
    if whole and least <= int(text) <= most:
        return int(text)
    near = str(most if whole and int(text) > most else least)
    raise _wrong(f"{key}={one_line(text, 40)} is no whole number from {least} to {most}", _with(parts, key, near))


def _with(parts: dict[str, str], key: str, value: str) -> str:
    return ";".join(f"{name}={text}" for name, text in {**parts, key: value}.items())


def _wrong(text: str, better: str) -> AutomationError:
    """An error of a rule; what is offered instead is one that can be, or the example."""
    try:
        recurrence(better, "UTC", 0.0)
    except AutomationError:
        better = EXAMPLES[WEEKLY]
    return AutomationError(f"`rrule`: {text}. For example: {better}", "rrule", better)


def _instead(freq: str, parts: dict[str, str]) -> str:
    """The rule that comes nearest to one of another frequency."""
    if freq in ("SECONDLY", "MINUTELY"):
        return f"FREQ={HOURLY};INTERVAL=1"
    if freq != "DAILY":
        return EXAMPLES[WEEKLY]
    minutes = f";BYMINUTE={parts['BYMINUTE']}" if "BYMINUTE" in parts else ""
    return f"FREQ={WEEKLY};BYDAY={parts.get('BYDAY') or ','.join(DAYS)};BYHOUR={parts.get('BYHOUR') or 9}{minutes}"


def _check_zone(zone: str) -> None:
    if zone in _zones():
        return
    near = _near_zone(zone)
    hint = f"Did you mean {near}?" if near else "It is a name such as Europe/Berlin, or UTC."
    raise AutomationError(
        f"`timezone`: there is no time zone {one_line(zone, 60)!r}. {hint}", "timezone", near or "UTC"
    )


def _near_zone(zone: str) -> str:
    """The zone that was meant: by its name in another case, by its town, or a slip of the hand. A few letters alone
    are like too many."""
    asked = "_".join(zone.split()).casefold()
    near = [name for name in _zones() if name.casefold() == asked]
    near = near or [name for name in _zones() if name.casefold().endswith(f"/{asked}")]
    if not near and "/" in zone:
        near = difflib.get_close_matches(zone, _zones(), 1, 0.75)
    return min(near, key=len, default="")


@functools.cache
def _zones() -> Sequence[str]:
    return tuple(sorted(zoneinfo.available_timezones() - {"localtime", "Factory"}))  # which name no place


@functools.cache
def _zone(name: str) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(name)


def _numbers(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
