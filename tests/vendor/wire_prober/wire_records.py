"""Message sets and record batches: made by hand with any field wrong, and read back into plain values."""

import gzip
import struct
import zlib

from tests.vendor.wire_prober.wire_codecs import (
    XERIAL,
    crc32c,
    gz,
    lz4,
    snappy_raw,
    snappy_xerial,
    unlz4,
    unsnappy,
    unzstd,
    zstd,
)
from tests.vendor.wire_prober.wire_schema import Dec, Short, varint


# ------------------------------------------------------------------ messages magic 0/1
def msg(value=b"v", key=None, offset=0, magic=1, attrs=0, ts=-1, crc=None, size=None):
    """One entry of a message set: offset, size, message"""
    nb = lambda x: struct.pack(">i", -1) if x is None else struct.pack(">i", len(x)) + x
    b = bytes([magic & 255, attrs & 255])
    if magic != 0:
        b += struct.pack(">q", ts)
    b += nb(key) + nb(value)
    c = zlib.crc32(b) & 0xFFFFFFFF if crc is None else crc & 0xFFFFFFFF
    m = struct.pack(">I", c) + b
    return struct.pack(">qi", offset, len(m) if size is None else size) + m


def compress(codec, b, magic=1):
    if codec in ("gzip", 1):
        return 1, gz(b)
    if codec in ("snappy", 2):
        return 2, snappy_xerial(b)
    if codec == "snappy_raw":
        return 2, snappy_raw(b)
    if codec in ("lz4", 3):
        return 3, lz4(b, broken=(magic == 0))
    if codec == "lz4_frame":
        return 3, lz4(b)
    if codec == "lz4_legacy":
        return 3, lz4(b, broken=True)
    if codec == "lz4_badhc":
        return 3, lz4(b, bad=True)
    if codec in ("zstd", 4):
        return 4, zstd(b)
    raise KeyError(codec)


def wrap(codec, inner, magic=1, ts=-1, offset=0, attrs=0, key=None, crc=None):
    """A wrapper message around the bytes of an inner message set"""
    c, data = compress(codec, inner, magic)
    return msg(data, key, offset, magic, attrs | c, ts, crc)


# ------------------------------------------------------------------ record batch v2
def rec(value=b"v", key=None, od=0, td=0, headers=(), attrs=0):
    vb = lambda x: varint(-1) if x is None else varint(len(x)) + x
    b = bytes([attrs]) + varint(td) + varint(od) + vb(key) + vb(value) + varint(len(headers))
    for k, v in headers:
        b += varint(len(k)) + k + vb(v)
    return varint(len(b)) + b


def batch(
    values=(b"v",),
    ts=0,
    codec=None,
    attrs=0,
    base=0,
    ple=-1,
    pid=-1,
    epoch=-1,
    seq=-1,
    last_delta=None,
    first_ts=None,
    max_ts=None,
    count=None,
    magic=2,
    crc=None,
    records=None,
    length=None,
):
    """values: bytes, or dicts for rec() where ts is absolute"""
    rs, n, mx = b"", 0, None
    first = None
    for i, v in enumerate(values):
        d = dict(v) if isinstance(v, dict) else {"value": v}
        t = d.pop("ts", ts)
        if first is None:
            first = t if first_ts is None else first_ts
        mx = t if mx is None else max(mx, t)
        d.setdefault("od", i)
        d.setdefault("td", t - first)
        rs += rec(**d)
        n += 1
    if records is not None:
        rs = records
    first = (first_ts if first_ts is not None else ts) if first is None else first
    mx = ts if mx is None else mx
    a = attrs
    if codec is not None:
        c, rs = compress(codec, rs, 2)
        a |= c
    tail = (
        struct.pack(
            ">hiqqqhii",
            a,
            n - 1 if last_delta is None else last_delta,
            first,
            mx if max_ts is None else max_ts,
            pid,
            epoch,
            seq,
            n if count is None else count,
        )
        + rs
    )
    c = crc32c(tail) if crc is None else crc
    rest = struct.pack(">ibI", ple, magic, c) + tail
    return struct.pack(">qi", base, len(rest) if length is None else length) + rest


# ------------------------------------------------------------------ reading what Fetch returned
def _short(b):
    if b is None:
        return None
    if len(b) <= 48 and all(32 <= x < 127 for x in b):
        return b.decode()
    if len(b) <= 24:
        return "hex:" + b.hex()
    return "bytes:%d:%08x" % (len(b), zlib.crc32(b) & 0xFFFFFFFF)


def parse_records(b, deep=True, sent=None):
    """List of entries found in a message set / batch sequence; timestamps under keys ending in 'ts'"""
    if b is None:
        return None
    out, p = [], 0
    while p < len(b):
        if len(b) - p < 12:
            out.append({"partial": True})
            break
        off, size = struct.unpack_from(">qi", b, p)
        if size < 0 or p + 12 + size > len(b):
            out.append({"partial": True})
            break
        raw = b[p + 12 : p + 12 + size]
        p += 12 + size
        try:
            out.append(_v2(off, raw) if len(raw) > 4 and raw[4] == 2 else _v01(off, raw, deep, sent))
        except (Short, struct.error, zlib.error, OSError, EOFError, IndexError) as e:
            out.append({"offset": off, "undecodable": type(e).__name__})
    return out


def uncompress(codec, data):
    extra = {}
    if codec == 1:
        return gzip.decompress(data), extra
    if codec == 2:
        extra["framing"] = "xerial" if data[:8] == XERIAL[:8] else "raw"
        return unsnappy(data), extra
    if codec == 3:
        r, kind = unlz4(data)
        extra["lz4_header_checksum"] = kind
        return r, extra
    return unzstd(data), extra


def _v01(off, raw, deep, sent):
    d = Dec(raw)
    crc = d.num("I")
    magic, attrs = d.num("b"), d.num("b")
    m = {"magic": magic, "offset": off, "attrs": attrs, "crc_ok": crc == zlib.crc32(raw[4:]) & 0xFFFFFFFF}
    if magic == 1:
        m["ts"] = d.num("q")
    m["key"] = _short(d.blob("i"))
    v = d.blob("i")
    if attrs & 7 and deep and v is not None:
        inner, extra = uncompress(attrs & 7, v)
        m.update(extra)
        m["inner"] = parse_records(inner, deep)
        if sent is not None:
            m["payload_same_as_sent"] = v in sent
    else:
        m["value"] = _short(v)
    return m


def _v2(off, raw):
    ple, magic, crc, attrs, lod, fts, mts, pid, ep, seq, n = struct.unpack_from(">ibIhiqqqhii", raw, 0)
    m = {
        "magic": 2,
        "offset": off,
        "ple": ple,
        "attrs": attrs,
        "last_delta": lod,
        "base_ts": fts,
        "max_ts": mts,
        "producer_id": pid,
        "epoch": ep,
        "seq": seq,
        "count": n,
        "crc_ok": crc == crc32c(raw[9:]),
    }
    data = raw[49:]
    if attrs & 7:
        data, extra = uncompress(attrs & 7, data)
        m.update(extra)
    d = Dec(data)
    rs = []
    for _ in range(n):
        d.var()
        a = d.num("b")
        td, od = d.var(), d.var()
        kl = d.var()
        k = None if kl < 0 else d.take(kl)
        vl = d.var()
        v = None if vl < 0 else d.take(vl)
        hs = []
        for _ in range(d.var()):
            hk = d.take(d.var())
            hl = d.var()
            hs.append([_short(hk), None if hl < 0 else _short(d.take(hl))])
        r = {"offset": off + od, "ts": fts + td, "key": _short(k), "value": _short(v)}
        if hs:
            r["headers"] = hs
        if a:
            r["attrs"] = a
        rs.append(r)
    m["records"] = rs
    if d.p != len(data):
        m["rest"] = len(data) - d.p
    return m
