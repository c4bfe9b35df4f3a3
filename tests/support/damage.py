"""Damaged copies of bytes: every cut, and every flipped bit."""


def cuts(data):
    return (data[:size] for size in range(len(data)))


def flips(data):
    for position in range(len(data)):
        for bit in range(8):
            hurt = bytearray(data)
            hurt[position] ^= 1 << bit
            yield bytes(hurt)
