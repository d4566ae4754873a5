"""The screen that the panels stand on."""

from textual.screen import Screen


class Conversation(Screen[None]):
    """Every panel is given its style where it is mounted: the first frame does not wait until all have theirs again."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._begun = False

    def update_node_styles(self, animate: bool = True) -> None:
        """Style the panels anew, but for the first time, when the screen comes up with them."""
        if self._begun:
            super().update_node_styles(animate)
        self._begun = True
