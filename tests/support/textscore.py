"""What the 300 texts add up to: the counts of one channel, and which texts broke which bound."""

from collections.abc import Iterable

from msgspec import Struct

from support.textcases import MEANT, Outcome, TextCase
from support.writtencalls import Call

# What is marked as code or quoted and has words behind it is an answer: nothing is to be said of it.
_SHOWN = ("fence", "quote")
Judged = dict[str, list[Call]]


class Score(Struct):
    """`unmeant`: a change ran that was not meant; `silent`: nothing ran and nothing was told; `undone`: meant and not
    done within one more answer; `judged`: what ran differs from what the public parser takes; `failed`: the turn did;
    `unseen`: what was shown is not what is recorded."""

    texts: int = 0
    meant: int = 0
    unmeant: list[str] = []
    silent: list[str] = []
    undone: list[str] = []
    judged: list[str] = []
    failed: list[str] = []
    unseen: list[str] = []

    @property
    def done(self) -> float:
        """How many of those that were meant were done in time, in percent."""
        return 100 * (1 - len(self.undone) / max(1, self.meant))


def score(played: Iterable[tuple[TextCase, Outcome]], judged: Judged, *, native: bool) -> Score:
    """The counts of texts at a model with a native channel, or at one whose channel is text."""
    total = Score()
    for case, came in played:
        meant = case.kind in MEANT
        layout = case.id.split("/")[3]
        total.texts += 1
        total.meant += meant
        # At a model whose channel is text a call at the very end is one, whatever was meant by it.
        wanted = judged[case.id] if case.whole and not native else []
        rows = {
            "unmeant": not meant and (came.changed or bool(came.ran)) and (native or not case.whole),
            "silent": not came.ran and not came.told and layout not in _SHOWN,
            "undone": meant and not (came.changed and came.answers <= (2 if came.told else 1)),
            "judged": not native and [_bare(call) for call in came.ran] != [_bare(call) for call in wanted],
            "failed": came.status != "done",
            "unseen": came.shown != came.recorded,
        }
        for name, broken in rows.items():
            if broken:
                getattr(total, name).append(case.id)
    return total


def _bare(call: Call) -> Call:
    """A call without the line breaks around its values: some parsers strip them, ours keeps them."""
    return call[0], {key: value.strip() if isinstance(value, str) else value for key, value in call[1].items()}
