"""The measure of many jobs, in small: every figure is there and keeps to its bound."""

import sys
from pathlib import Path

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import jobs


async def test_a_few_jobs_and_a_small_flood(workspace: Path) -> None:
    figures = [*await jobs.crowd(workspace, 10, "none"), *await jobs.flood(workspace, 100_000_000, "none")]
    assert len(figures) == 11 and all(figure.good for figure in figures), figures
    assert {figure.bound for figure in figures} >= {40.0, 0.2, 2.0, 1.0, 3, 50_000_000}


def test_a_figure_beyond_its_bound_is_told() -> None:
    figure = jobs.Figure("starting", 16.0, 15.0, "s")
    assert not figure.good and "TOO MUCH" in figure.line()
