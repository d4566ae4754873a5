"""Damage done to bytes at random."""

import random


def damaged(data: bytes, chance: random.Random) -> tuple[bytes, list[tuple[int, int]], str]:
    """The data with one damage, the ranges of the original it touched, and its kind."""
    kind = chance.choice(["flip", "flips", "truncate", "nuls", "garbage", "double", "insert"])
    size = len(data)
    start = chance.randrange(size)
    end = min(size, start + chance.randrange(1, 900))
    if kind == "flip":
        flipped = data[start] ^ 1 << chance.randrange(8)
        return data[:start] + bytes([flipped]) + data[start + 1 :], [(start, start)], kind
    if kind == "flips":
        places = sorted(chance.sample(range(size), 5))
        spoilt = bytearray(data)
        for place in places:
            spoilt[place] ^= chance.randrange(1, 256)
        return bytes(spoilt), [(place, place) for place in places], kind
    if kind == "truncate":
        return data[:start], [(start, size)], kind
    if kind == "nuls":
        return data[:start] + bytes(end - start) + data[end:], [(start, end - 1)], kind
    if kind == "garbage":
        return data[:start] + chance.randbytes(end - start) + data[end:], [(start, end - 1)], kind
    if kind == "insert":
        return data[:start] + chance.randbytes(40) + data[start:], [(start, start)], kind
    return data[:end] + data[start:end] + data[end:], [(end - 1, end)], kind  # a block stands twice
