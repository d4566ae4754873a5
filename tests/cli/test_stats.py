"""`codewhale stats` over what `codewhale exec` left behind."""

import json
from pathlib import Path

import pytest

from support.program import codewhale_program, configure

TURN = {"text": "Done.", "usage": {"input": 1000, "output": 50, "cache_hit": 0, "cache_miss": 1000}}


def priced(home: Path) -> None:
    """Configure a scripted model with a price."""
    script = home / "script.jsonl"
    script.write_text(json.dumps(TURN) + "\n")
    configure(
        home,
        f'provider = "played"\nmodel = "m"\n[providers.played]\ndialect = "scripted"\nscript = "{script}"\n'
        '[providers.played.prices.m]\nmiss = 2.0\nhit = 0.5\noutput = 8.0\ncurrency = "EUR"\n',
    )


def test_no_calls_is_no_error(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "stats")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no model calls yet\n", "")
    assert json.loads(codewhale_program(tmp_path, "stats", "--json").stdout)["sessions"] == 0
    assert not (tmp_path / "state").exists()


def test_exec_counts_and_stats_sums(tmp_path: Path) -> None:
    priced(tmp_path)
    done = codewhale_program(tmp_path, "exec", "--output-format", "json", "Go")
    usage = json.loads(done.stdout)["usage"]
    assert usage == {
        "input": 1000, "output": 50, "cache_hit": 0, "cache_miss": 1000, "cost": pytest.approx(0.0024),
        "currency": "EUR",
    }  # fmt: skip
    again = codewhale_program(tmp_path, "exec", "Again")
    assert again.stdout == "Done.\n"
    assert again.stderr == "1,000 tokens in, 50 out: 0.0024 EUR (codewhale stats sums it up)\n"
    stats = json.loads(codewhale_program(tmp_path, "stats", "--json").stdout)
    assert (stats["sessions"], stats["total"]["input"]) == (2, 2000)
    assert stats["total"]["cost"] == {"EUR": pytest.approx(0.0048)}
    assert stats["models"][0]["model"] == "m"
    text = codewhale_program(tmp_path, "stats", "--days").stdout
    assert "tokens    2,000 in, 100 out (0 reasoning)" in text
    assert "cost      0.004800 EUR" in text
    assert "missed    cold: 2,000 tokens in 2 calls" in text
    assert "model     m at played: 2 calls, 2,000 in, 100 out, 0.004800 EUR" in text
    assert text.count("\nday ") == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert codewhale_program(tmp_path, "stats", "-w", str(elsewhere)).stdout == "no model calls yet\n"
    assert codewhale_program(tmp_path, "stats", "--since", "2999-01-01").stdout == "no model calls yet\n"
    assert "2 model calls" in codewhale_program(tmp_path, "stats", "--since", "1h").stdout


def test_money_bounds_an_exec_whose_price_is_known(tmp_path: Path) -> None:
    priced(tmp_path)
    done = codewhale_program(tmp_path, "exec", "--max-cost", "0.0001", "Go")
    assert done.returncode == 4
    assert "Stopped before the next model call: the next call would exceed the cost limit of 0.0001" in done.stderr


@pytest.mark.parametrize("when", ["yesterday", "7", "7x", "2026-13", "--json"])
def test_a_time_that_makes_no_sense_is_wrong_usage(tmp_path: Path, when: str) -> None:
    done = codewhale_program(tmp_path, "stats", f"--since={when}")
    assert done.returncode == 2
    assert "--since" in done.stderr and done.stderr.count("\n") == 1
