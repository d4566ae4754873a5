"""How long 500 skills take to be looked at: of a person and of a workspace that is trusted, first and once more."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from codewhale.permissions.trust import TrustStore
from codewhale.skills.places import SkillPlaces, project_texts
from codewhale.skills.store import SkillStore

COUNT, COLD, WARM = 500, 1_500, 150  # skills, milliseconds
TEXT = """---
name: skill-{0}
description: Does the thing of number {0}. Use when: it is asked for
metadata:
  codewhale-globs: "*.py, src/**/*.{{ts,tsx}}"
  codewhale-tools: read_file exec_shell(git:*)
---
"""


def measure(top: Path, beneath: str) -> tuple[float, float]:
    """Milliseconds of the first look at skills below a folder, and the median of the next ones."""
    home, work, folder = top / "home", top / "work", top / beneath / ".agents/skills"
    work.mkdir()
    for number in range(COUNT):
        (folder / f"skill-{number}").mkdir(parents=True)
        (folder / f"skill-{number}/SKILL.md").write_text(TEXT.format(number) + "Do this.\n" * 500)
        (folder / f"skill-{number}/run.sh").write_text(f"echo {number}\n")
    trust = TrustStore(str(home))
    for standing in trust.survey(str(work), project_texts(str(work))):
        trust.add(standing)
    store = SkillStore(SkillPlaces(str(home), str(top / "person"), system=str(top / "etc")), TrustStore(str(home)))
    took = []
    for _ in range(6):
        began = time.perf_counter()
        found = store.of(str(work))
        took.append((time.perf_counter() - began) * 1000)
        assert len(found.skills) == COUNT and not found.problems, found.problems[:3]
    return took[0], statistics.median(took[1:])


def main() -> int:
    """Print the figures; 1 where one is above its bound."""
    slow = False
    for name, beneath in (("of a person", "person"), ("of a trusted workspace", "work")):
        with tempfile.TemporaryDirectory() as top:
            cold, warm = measure(Path(top), beneath)
        slow = slow or cold > COLD or warm > WARM
        print(f"{COUNT} skills {name}: first {cold:.0f} ms (bound {COLD:,}), then {warm:.0f} ms (bound {WARM})")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
