"""Repair of calls over one catalog; built when the first call needs it."""

from codewhale.catalog.registry import Catalog
from codewhale.repair.judge import Extent, Verdict, judge
from codewhale.repair.names import known
from codewhale.repair.textcalls import Found, TextCall, find_calls, looks_like_call


class CallRepairer:
    """Makes out what a call was meant to be. `extent` is how far it goes: full, names (a tool's other names) or off."""

    def __init__(self, catalog: Catalog, extent: Extent = "full") -> None:
        self._catalog = catalog
        self._extent = extent

    def judge(self, name: str, raw: str, cut: bool = False, ended: bool = False) -> Verdict:
        """What a call means and whether it may run; `cut` says that its answer hit the length limit, `ended` that its
        model said that it was at its end."""
        return judge(name, raw, self._catalog, extent=self._extent, cut=cut, ended=ended)

    def find_calls(self, text: str) -> Found | None:
        """The calls that a text ends with, None where there are none in a form that may run."""
        return find_calls(text, self._known) if self._extent == "full" else None

    def takes(self, found: Found, channel: bool) -> bool:
        """Whether calls found in a text may run: all of a text, or behind words where they only read. `channel` says
        that text is the model's channel for calls: then also as its server's parser would take them. What is refused
        in any case is taken, so that its refusal says why."""
        if found.form == "alone" or (channel and found.form != "cut"):
            return True
        verdicts = [self.judge(call.name, call.arguments) for call in found.calls]
        if all(verdict.error is not None for verdict in verdicts):
            return True
        reads = all(verdict.spec is not None and not verdict.spec.touches for verdict in verdicts)
        return found.form == "ending" and reads

    def looks_like_call(self, text: str) -> TextCall | None:
        """A call that a text writes in whatever form, for its writer to be told that it was not run."""
        return looks_like_call(text, self._known)

    def _known(self, name: str) -> bool:
        return known(name, self._catalog.rows)
