"""Faults and repairs come from one table: what an operator breaks, some inverse repairs."""

import random
import sys
from pathlib import Path

import pytest

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from mutations import OPERATORS, apply, faults, repairs, words

PYTHON = '''
def pick(items, low=0, high=10):
    """Between low and high: not this text, and 3 < 4."""
    found = []
    for item in items:
        if low <= item < high and not item == 5 or item is None:
            found.append(item + 1)
        elif item in (1, 2):
            continue
    while len(found) > 3:
        found -= 1  # or 2
        break
    return clamp(min(found), max(low, high)) - 2 * 3 // 4
'''
SCRIPT = """
function pick(items, low) { // 1 < 2
  var found = [], re = /a<b/;
  if (!items || low === 0) { return "a && b"; }
  for (var i = 0; i < items.length; i++) {
    if (items[i] != low && true) { found.push(items[i] / 2 - 1); continue; }
  }
  return Math.min(found.length, low) * 2;
}
"""
TEXTS = {"python": PYTHON, "javascript": SCRIPT}


@pytest.mark.parametrize("language", TEXTS)
def test_every_fault_has_its_repair(language: str) -> None:
    text = TEXTS[language]
    sites = faults(text, language)
    broken = {site: apply(text, site) for site in sites}
    lost = [
        site for site in sites if not any(apply(broken[site], fix) == text for fix in repairs(broken[site], language))
    ]
    assert lost == []
    assert len({site.operator for site in sites}) >= 12


@pytest.mark.parametrize("language", TEXTS)
def test_strings_and_comments_stay_as_they_are(language: str) -> None:
    code = " ".join(word.text for word in words(TEXTS[language], language))
    assert "this text" not in code and "a<b" not in code and "1 < 2" not in code and "or 2" not in code


def test_there_are_twenty_operators_and_more() -> None:
    assert len(OPERATORS["python"]) >= 20 and len(OPERATORS["javascript"]) >= 20


def test_a_real_file_is_broken_and_repaired(tmp_path: Path) -> None:
    text = (ROOT / "scripts" / "docs.py").read_text()
    chance = random.Random(7)
    for site in chance.sample([site for site in faults(text, "python") if site.operator != "return_removed"], 12):
        broken = apply(text, site)
        assert any(apply(broken, fix) == text for fix in repairs(broken, "python")), site
