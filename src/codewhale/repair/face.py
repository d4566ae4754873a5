"""What the engine and the command line ask of this room; built when the first call needs mending."""

from codewhale.catalog.registry import Catalog
from codewhale.repair.judge import Verdict, judge
from codewhale.repair.names import known
from codewhale.repair.strict import judge_strictly
from codewhale.repair.textcalls import Found, find_calls


class Repair:
    """Repair over one catalog. `extent` is how far it goes: full, names (a tool's other names alone) or off."""

    def __init__(self, catalog: Catalog, extent: str = "full") -> None:
        self._catalog = catalog
        self._extent = extent

    def judge(self, name: str, raw: str, cut: bool = False, ended: bool = False) -> Verdict:
        """What a call means and whether it may run; `cut` says that its answer hit the length limit, `ended` that its
        model said that it was at its end."""
        if self._extent != "full":
            return judge_strictly(name, raw, self._catalog, cut=cut, names=self._extent == "names")
        return judge(name, raw, self._catalog, cut=cut, ended=ended)

    def find_calls(self, text: str) -> Found | None:
        """The calls that a model wrote as text, None where it wrote none that was meant."""
        return find_calls(text, self._known) if self._extent == "full" else None

    def _known(self, name: str) -> bool:
        return known(name, self._catalog.rows)
