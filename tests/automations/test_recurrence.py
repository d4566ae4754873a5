"""When an automation runs: what a rule may say, what is refused by name, and the moments across daylight saving."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from codewhale.automations.recurrence import MOST_COUNTED, AutomationError, Recurrence, local_zone, recurrence
from support.patience import HANG

BERLIN = "Europe/Berlin"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def moments(rule: Recurrence, first: str, days: float) -> list[float]:
    found, moment = list[float](), at(first)
    while (following := rule.after(moment)) is not None and following <= at(first) + days * 86_400:
        found.append(following)
        moment = following
    return found


@pytest.mark.parametrize(
    ("rule", "said", "better"),
    [
        ("", "it is empty", "FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;BYMINUTE=30"),
        ("every day", "is no KEY=VALUE", ""),
        ("FREQ=DAILY;BYHOUR=7", "DAILY is not supported", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=7"),
        ("FREQ=MINUTELY;INTERVAL=5", "MINUTELY is not supported", "FREQ=HOURLY;INTERVAL=1"),
        ("BYDAY=MO;BYHOUR=9", "it has no FREQ", ""),
        ("FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYSECOND=1", "BYSECOND is not supported", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9", "INTERVAL is not supported", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"),
        ("FREQ=HOURLY;BYHOUR=9", "BYHOUR is not supported", "FREQ=HOURLY"),
        ("FREQ=HOURLY;COUNT=3", "COUNT is not supported", "FREQ=HOURLY"),
        ("FREQ=HOURLY;INTERVAL=0", "INTERVAL=0 is no whole number from 1 to", "FREQ=HOURLY;INTERVAL=1"),
        ("FREQ=HOURLY;INTERVAL=-2", "INTERVAL=-2 is no whole number", "FREQ=HOURLY;INTERVAL=1"),
        ("FREQ=HOURLY;INTERVAL=99999", "INTERVAL=99999", "FREQ=HOURLY;INTERVAL=8784"),
        ("FREQ=HOURLY;INTERVAL=168;BYDAY=FR", "never falls on FR", "FREQ=HOURLY;INTERVAL=1;BYDAY=FR"),
        ("FREQ=WEEKLY;BYDAY=1MO;BYHOUR=9", "BYDAY=1MO is no day", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"),
        ("FREQ=WEEKLY;BYDAY=MO;BYHOUR=24", "BYHOUR=24", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=23"),
        ("FREQ=WEEKLY;BYDAY=MO", "needs BYHOUR", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"),
        ("FREQ=WEEKLY;BYHOUR=9", "needs BYDAY", "FREQ=WEEKLY;BYHOUR=9;BYDAY=MO"),
        ("FREQ=WEEKLY;BYDAY=MO;BYDAY=TU;BYHOUR=9", "BYDAY stands in it twice", ""),
        ("FREQ=WEEKLY;BYDAY=MO;BYHOUR=1,2,3,4,5;BYMINUTE=0,10,20,30,40", "25 moments a day", ""),
    ],
)
def test_a_rule_that_cannot_be_names_its_fault_and_one_that_can(rule: str, said: str, better: str) -> None:
    with pytest.raises(AutomationError) as caught:
        recurrence(rule, "UTC", 0)
    error = caught.value
    assert error.field == "rrule" and said in str(error) and error.better in str(error)
    assert not better or error.better == better
    assert recurrence(error.better, "UTC", 0).after(0)


@pytest.mark.parametrize(
    ("zone", "better"),
    [
        ("Europe/Berlim", BERLIN), ("europe/berlin", BERLIN), ("Berlin", BERLIN), ("new york", "America/New_York"),
        ("CEST", "UTC"), ("Mars", "UTC"), ("", "UTC"), ("../x", "UTC"),
        ("localtime", "UTC"), ("Factory", "UTC"),
    ],
)  # fmt: skip
def test_an_unknown_zone_is_refused(zone: str, better: str) -> None:
    with pytest.raises(AutomationError) as caught:
        recurrence("FREQ=HOURLY", zone, 0)
    assert (caught.value.field, caught.value.better) == ("timezone", better)
    assert recurrence("FREQ=HOURLY", local_zone(), 0)


def test_what_is_kept_reads_as_the_same_rule() -> None:
    for text in ("RRULE:freq=weekly;byday=we,mo;byhour=17,9", "FREQ=HOURLY;BYDAY=SU;INTERVAL=7;"):
        rule = recurrence(text, BERLIN, 12.0)
        assert recurrence(rule.text, BERLIN, 12.0) == rule


def test_a_time_of_day_stays_that_across_daylight_saving_and_never_comes_twice() -> None:
    rule = recurrence("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=2;BYMINUTE=30", BERLIN, 0)
    for first in ("2026-03-20", "2026-10-20"):
        found = moments(rule, first, 10)
        local = [datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(BERLIN)) for moment in found]
        assert len({day.date() for day in local}) == len(found) == 10, "each day once"
        usual = [day for day in local if (day.hour, day.minute) == (2, 30)]
        assert len(usual) == (9 if first == "2026-03-20" else 10), "where 2:30 is left out it runs at the change"


def test_an_interval_is_elapsed_time_from_its_start() -> None:
    start = at("2026-03-27 10:00")
    rule = recurrence("FREQ=HOURLY;INTERVAL=7", BERLIN, start)
    found = moments(rule, "2026-03-27 10:00", 5)
    assert [moment - start for moment in found] == [7 * 3600.0 * number for number in range(1, len(found) + 1)]
    sundays = recurrence("FREQ=HOURLY;INTERVAL=7;BYDAY=SU", BERLIN, start)
    kept = [m for m in found if datetime.fromtimestamp(m, UTC).astimezone(ZoneInfo(BERLIN)).weekday() == 6]
    assert moments(sundays, "2026-03-27 10:00", 5) == kept != []


def test_moments_are_counted_up_to_a_bound() -> None:
    rule = recurrence("FREQ=HOURLY", "UTC", 0)
    assert rule.between(3600, 3600 * 5 + 10) == (5, 3600 * 5)
    count, last = rule.between(3600, 3600 * 24 * timedelta(days=4000).days)
    assert (count, last) == (MOST_COUNTED, 3600.0 * MOST_COUNTED)


def test_a_system_without_time_zones_has_those_of_the_package() -> None:
    program = f"""
from codewhale.automations.recurrence import recurrence
for zone in ("UTC", "{BERLIN}"):
    print(recurrence("FREQ=WEEKLY;BYDAY=MO;BYHOUR=9", zone, 0.0).after(0.0))
"""
    env = {**os.environ, "PYTHONTZPATH": ""}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=HANG)
    assert done.stdout.split() == [str(at("1970-01-05 09:00")), str(at("1970-01-05 08:00"))], done.stderr
