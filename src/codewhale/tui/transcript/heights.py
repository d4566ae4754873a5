"""How many lines each of many blocks takes, and where each begins: estimated until it was drawn, exact from then on.
Every question is answered in logarithmic time (a Fenwick tree, Fenwick 1994)."""


class Heights:
    """The heights of blocks in order, in lines."""

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._exact = bytearray()
        self._tree: list[int] = [0]

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        """All lines together."""
        return self.start(len(self._heights))

    def is_exact(self, index: int) -> bool:
        """Whether a block's height is known and no estimate."""
        return bool(self._exact[index])

    def height(self, index: int) -> int:
        """The lines of a block."""
        return self._heights[index]

    def append(self, height: int) -> None:
        """Add a block behind the others with an estimate."""
        self._heights.append(height)
        self._exact.append(0)
        place = len(self._heights)
        sum_ = height
        step = 1
        while step < place & -place:
            sum_ += self._tree[place - step]
            step <<= 1
        self._tree.append(sum_)

    def cut(self, count: int) -> None:
        """Keep the first `count` blocks."""
        del self._heights[count:], self._exact[count:], self._tree[count + 1 :]

    def set(self, index: int, height: int, exact: bool = True) -> int:
        """Give a block its height; by how much it has grown."""
        grown = height - self._heights[index]
        self._exact[index] = exact
        if grown:
            self._heights[index] = height
            place = index + 1
            while place < len(self._tree):
                self._tree[place] += grown
                place += place & -place
        return grown

    def start(self, index: int) -> int:
        """The first line of a block."""
        total = 0
        while index:
            total += self._tree[index]
            index &= index - 1
        return total

    def at(self, line: int) -> int:
        """The block that a line belongs to: the last one that begins at or before it and is not empty there; the last
        block for a line behind all."""
        place, step = 0, 1 << len(self._heights).bit_length()
        while step:
            if place + step < len(self._tree) and self._tree[place + step] <= line:
                place += step
                line -= self._tree[place]
            step >>= 1
        return min(place, max(0, len(self._heights) - 1))

    def forget(self) -> None:
        """Take every height for an estimate."""
        self._exact = bytearray(len(self._heights))
