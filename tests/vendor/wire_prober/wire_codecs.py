"""Checksums and codecs in plain Python, with the mistakes that real clients made as options."""

import gzip
import struct

from tests.vendor.wire_prober.wire_schema import Dec, Short, uvarint


# ------------------------------------------------------------------ checksums
def _tab(poly):
    t = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ poly if c & 1 else c >> 1
        t.append(c)
    return t


_C32C = _tab(0x82F63B78)


def crc32c(b):
    c = 0xFFFFFFFF
    t = _C32C
    for x in b:
        c = t[(c ^ x) & 255] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def xxh32(b, seed=0):
    P1, P2, P3, P4, P5, M = 2654435761, 2246822519, 3266489917, 668265263, 374761393, 0xFFFFFFFF
    rot = lambda x, r: ((x << r) | (x >> (32 - r))) & M
    n, i = len(b), 0
    if n >= 16:
        v = [(seed + P1 + P2) & M, (seed + P2) & M, seed, (seed - P1) & M]
        while i + 16 <= n:
            for k in range(4):
                w = struct.unpack_from("<I", b, i + 4 * k)[0]
                v[k] = rot((v[k] + w * P2) & M, 13) * P1 & M
            i += 16
        h = (rot(v[0], 1) + rot(v[1], 7) + rot(v[2], 12) + rot(v[3], 18)) & M
    else:
        h = (seed + P5) & M
    h = (h + n) & M
    while i + 4 <= n:
        h = rot((h + struct.unpack_from("<I", b, i)[0] * P3) & M, 17) * P4 & M
        i += 4
    while i < n:
        h = rot((h + b[i] * P5) & M, 11) * P1 & M
        i += 1
    h = (h ^ (h >> 15)) * P2 & M
    h = (h ^ (h >> 13)) * P3 & M
    return h ^ (h >> 16)


# ------------------------------------------------------------------ codecs
def gz(b):
    return gzip.compress(b, 6, mtime=0)


def snappy_raw(b):
    out = uvarint(len(b))
    for i in range(0, len(b), 60000):
        c = b[i : i + 60000]
        n = len(c) - 1
        if n < 60:
            out += bytes([n << 2])
        elif n < 256:
            out += bytes([60 << 2, n])
        else:
            out += bytes([61 << 2]) + struct.pack("<H", n)
        out += c
    return out


def unsnappy_raw(b):
    d = Dec(b)
    n = d.uvar()
    out = bytearray()
    while d.p < len(b):
        t = d.take(1)[0]
        k = t & 3
        if k == 0:
            ln = t >> 2
            if ln >= 60:
                ln = int.from_bytes(d.take(ln - 59), "little")
            out += d.take(ln + 1)
            continue
        if k == 1:
            ln, off = ((t >> 2) & 7) + 4, ((t >> 5) << 8) | d.take(1)[0]
        else:
            ln, off = (t >> 2) + 1, int.from_bytes(d.take(2 if k == 2 else 4), "little")
        if off == 0 or off > len(out):
            raise Short("snappy offset")
        for _ in range(ln):
            out.append(out[-off])
    if len(out) != n:
        raise Short("snappy length")
    return bytes(out)


XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def snappy_xerial(b):
    out = XERIAL
    for i in range(0, len(b), 32768):
        c = snappy_raw(b[i : i + 32768])
        out += struct.pack(">i", len(c)) + c
    return out


def unsnappy(b):
    if b[:8] != XERIAL[:8]:
        return unsnappy_raw(b)
    d = Dec(b)
    d.p = 16
    out = b""
    while d.p < len(b):
        out += unsnappy_raw(d.take(d.num("i")))
    return out


def lz4(b, broken=False, bad=False):
    desc = bytes([0x60, 0x40])
    hc = (xxh32((b"\x04\x22\x4d\x18" if broken else b"") + desc) >> 8) & 255
    if bad:
        hc ^= 0x55
    out = b"\x04\x22\x4d\x18" + desc + bytes([hc])
    for i in range(0, len(b), 60000):
        c = b[i : i + 60000]
        n = len(c)
        blk = bytes([min(n, 15) << 4])
        if n >= 15:
            r = n - 15
            while r >= 255:
                blk += b"\xff"
                r -= 255
            blk += bytes([r])
        blk += c
        out += struct.pack("<I", len(blk)) + blk
    return out + b"\0\0\0\0"


def lz4_length(blk, i, ln):
    """Returns (length, position): 15 says that more bytes follow, each 255 that one more does"""
    if ln < 15:
        return ln, i
    while True:
        ln += blk[i]
        i += 1
        if blk[i - 1] != 255:
            return ln, i


def unlz4_block(blk, out):
    i = 0
    while i < len(blk):
        t = blk[i]
        ln, i = lz4_length(blk, i + 1, t >> 4)
        out += blk[i : i + ln]
        i += ln
        if i >= len(blk):
            break
        off = blk[i] | blk[i + 1] << 8
        ln, i = lz4_length(blk, i + 2, t & 15)
        for _ in range(ln + 4):
            out.append(out[-off])


def unlz4(b):
    """Returns (data, header checksum kind)"""
    if b[:4] != b"\x04\x22\x4d\x18":
        raise Short("lz4 magic")
    flg = b[4]
    p = 6 + (8 if flg & 8 else 0)
    desc = b[4:p]
    kind = "bad"
    if b[p] == (xxh32(desc) >> 8) & 255:
        kind = "ok"
    elif b[p] == (xxh32(b[:p]) >> 8) & 255:
        kind = "legacy"
    p += 1
    out = bytearray()
    while True:
        n = struct.unpack_from("<I", b, p)[0]
        p += 4
        if n == 0:
            break
        blk = b[p : p + (n & 0x7FFFFFFF)]
        if len(blk) != n & 0x7FFFFFFF:
            raise Short("lz4 block")
        p += len(blk) + (4 if flg & 16 else 0)
        if n & 0x80000000:
            out += blk
            continue
        unlz4_block(blk, out)
    return bytes(out), kind


def zstd(b):
    """A valid frame of raw (stored) blocks"""
    n = len(b)
    if n < 256:
        h = bytes([0x20, n])
    elif n < 65792:
        h = bytes([0x60]) + struct.pack("<H", n - 256)
    else:
        h = bytes([0xA0]) + struct.pack("<I", n)
    out = b"\x28\xb5\x2f\xfd" + h
    for i in range(0, max(n, 1), 100000):
        c = b[i : i + 100000]
        last = i + 100000 >= n
        out += struct.pack("<I", (len(c) << 3) | int(last))[:3] + c
    return out


def unzstd(b):
    if b[:4] != b"\x28\xb5\x2f\xfd":
        raise Short("zstd magic")
    fhd = b[4]
    p = 5 + (0 if fhd & 0x20 else 1) + (0, 1, 2, 4)[fhd & 3]
    p += (1 if fhd & 0x20 else 0, 2, 4, 8)[fhd >> 6]
    out = b""
    while True:
        h = int.from_bytes(b[p : p + 3], "little")
        p += 3
        typ, n = (h >> 1) & 3, h >> 3
        if typ == 0:
            out += b[p : p + n]
            p += n
        elif typ == 1:
            out += b[p : p + 1] * n
            p += 1
        else:
            raise Short("zstd compressed block (not decoded here)")
        if h & 1:
            return out
