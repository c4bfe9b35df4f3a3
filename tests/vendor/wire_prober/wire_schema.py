"""The prober's own schema language for Kafka messages: declare, encode, decode. Pure standard library, no client."""

import re
import struct

# ------------------------------------------------------------------ schema mini-language
# field@versions#tag:type=default ; types b i8 i16 u16 i32 i64 str bytes uuid [x] ?[x] {..} ?{..}
# strings and bytes are always allowed to be null.
SPEC = {}
NAMES = {}


class _Field:
    __slots__ = ("default", "hi", "lo", "name", "nullable", "sub", "tag", "type")


_TOK = re.compile(r"\s*(?:(\w+)(?:@(\d+)(\+|-\d+)?)?(?:#(\d+))?:|(\?\[|\[|\]|\?\{|\{|\})|(\w+)|=(-?\w+))")


def _tokens(s):
    pos, out = 0, []
    s = s.strip()
    while pos < len(s):
        m = _TOK.match(s, pos)
        if not m:
            raise ValueError("spec: %r" % s[pos : pos + 40])
        if m.group(1):
            lo = int(m.group(2)) if m.group(2) else 0
            r = m.group(3)
            hi = 999 if (r == "+" or m.group(2) is None) else (int(r[1:]) if r else lo)
            out.append(("F", m.group(1), lo, hi, None if m.group(4) is None else int(m.group(4))))
        elif m.group(5):
            out.append(("P", m.group(5)))
        elif m.group(6):
            out.append(("T", m.group(6)))
        else:
            out.append(("D", m.group(7)))
        pos = m.end()
        while pos < len(s) and s[pos].isspace():
            pos += 1
    return out


def _fields(toks, i, end):
    fs = []
    while i < len(toks):
        t = toks[i]
        if t == ("P", end):
            return fs, i + 1
        f = _Field()
        _, f.name, f.lo, f.hi, f.tag = t
        i += 1
        f.nullable, f.sub, f.default = False, None, None
        t = toks[i]
        if t[0] == "T":
            f.type = t[1]
            i += 1
        elif t[1] in ("[", "?["):
            f.nullable = t[1] == "?["
            if toks[i + 1][0] == "T":
                f.type, f.sub = "parr", toks[i + 1][1]
                i += 3
            else:
                f.type = "arr"
                f.sub, i = _fields(toks, i + 1, "]")
        else:
            f.nullable = t[1] == "?{"
            f.type = "struct"
            f.sub, i = _fields(toks, i + 1, "}")
        if i < len(toks) and toks[i][0] == "D":
            d = toks[i][1]
            f.default = None if d == "null" else int(d, 0)
            if d == "null":
                f.nullable = True
                f.default = "null"
            i += 1
        fs.append(f)
    return fs, i


def api(key, name, flex, req, resp):
    SPEC[name] = (key, flex, _fields(_tokens(req), 0, None)[0], _fields(_tokens(resp), 0, None)[0])
    NAMES[key] = name


class Short(Exception):
    pass


class Dec:
    def __init__(self, b, flex=False):
        self.b, self.p, self.flex = b, 0, flex

    def take(self, n):
        if n < 0 or self.p + n > len(self.b):
            raise Short("want %d at %d of %d" % (n, self.p, len(self.b)))
        r = self.b[self.p : self.p + n]
        self.p += n
        return r

    def num(self, fmt):
        return struct.unpack(">" + fmt, self.take(struct.calcsize(fmt)))[0]

    def uvar(self):
        r = s = 0
        while True:
            c = self.take(1)[0]
            r |= (c & 127) << s
            if c < 128:
                return r
            s += 7
            if s > 70:
                raise Short("varint")

    def var(self):
        u = self.uvar()
        return (u >> 1) ^ -(u & 1)

    def blob(self, lenfmt):
        n = self.uvar() - 1 if self.flex else self.num(lenfmt)
        return None if n < 0 else self.take(n)

    def prim(self, t):
        if t in _FMT:
            v = self.num(_FMT[t])
            return v
        if t == "b":
            return self.take(1)[0]
        if t == "str":
            v = self.blob("h")
            return None if v is None else v.decode("utf-8", "replace")
        if t == "bytes":
            return self.blob("i")
        if t == "uuid":
            return self.take(16).hex()
        raise KeyError(t)

    def value(self, f, ver):
        if f.type in ("arr", "parr"):
            n = self.uvar() - 1 if self.flex else self.num("i")
            if n < 0:
                return None
            if n > 100000:
                raise Short("array of %d" % n)
            return [self.prim(f.sub) if f.type == "parr" else self.struct(f.sub, ver) for _ in range(n)]
        if f.type == "struct":
            if f.nullable and self.num("b") < 0:
                return None
            return self.struct(f.sub, ver)
        return self.prim(f.type)

    def struct(self, fs, ver):
        out = {}
        for f in fs:
            if f.tag is None and f.lo <= ver <= f.hi:
                out[f.name] = self.value(f, ver)
        if self.flex:
            for _ in range(self.uvar()):
                tag, n = self.uvar(), self.uvar()
                raw = self.take(n)
                for f in fs:
                    if f.tag == tag and f.lo <= ver <= f.hi:
                        out[f.name] = Dec(raw, True).value(f, ver)
                        break
                else:
                    out["tag%d" % tag] = raw.hex()
        return out


_FMT = {"i8": "b", "i16": "h", "u16": "H", "i32": "i", "i64": "q"}


def uvarint(n):
    out = b""
    while True:
        if n < 128:
            return out + bytes([n])
        out += bytes([n & 127 | 128])
        n >>= 7


def varint(n):
    return uvarint((n << 1) ^ (n >> 63))


def _enc_prim(t, v, flex):
    if t in _FMT:
        return struct.pack(">" + _FMT[t], v)
    if t == "b":
        return bytes([int(v)])
    if t == "uuid":
        return bytes.fromhex(v)
    if t == "str":
        b = None if v is None else (v if isinstance(v, bytes) else v.encode())
        n = -1 if b is None else len(b)
        return (uvarint(n + 1) if flex else struct.pack(">h", n)) + (b or b"")
    if t == "bytes":
        n = -1 if v is None else len(v)
        return (uvarint(n + 1) if flex else struct.pack(">i", n)) + (v or b"")
    raise KeyError(t)


def _default(f):
    if f.default == "null":
        return None
    if f.default is not None:
        return f.default
    if f.type == "str":
        return ""
    if f.type == "bytes":
        return b""
    if f.type == "uuid":
        return "00" * 16
    if f.type in ("arr", "parr"):
        return []
    if f.type == "struct":
        return None if f.nullable else {}
    return 0


def _enc_value(f, v, ver, flex):
    if f.type in ("arr", "parr"):
        n = -1 if v is None else len(v)
        out = uvarint(n + 1) if flex else struct.pack(">i", n)
        for x in v or ():
            out += _enc_prim(f.sub, x, flex) if f.type == "parr" else enc_struct(f.sub, x, ver, flex)
        return out
    if f.type == "struct":
        if f.nullable:
            if v is None:
                return b"\xff"
            return b"\x01" + enc_struct(f.sub, v, ver, flex)
        return enc_struct(f.sub, v, ver, flex)
    return _enc_prim(f.type, v, flex)


def enc_struct(fs, d, ver, flex):
    out, tags = b"", []
    known = {f.name for f in fs}
    for k in d:
        if k not in known:
            raise KeyError("unknown field %s" % k)
    for f in fs:
        if not (f.lo <= ver <= f.hi):
            continue
        if f.tag is None:
            out += _enc_value(f, d[f.name] if f.name in d else _default(f), ver, flex)
        elif f.name in d:
            raw = _enc_value(f, d[f.name], ver, flex)
            tags.append(uvarint(f.tag) + uvarint(len(raw)) + raw)
    if flex:
        out += uvarint(len(tags)) + b"".join(tags)
    return out


def body(name, ver, d):
    key, flex, req, _ = SPEC[name]
    return enc_struct(req, d, ver, flex is not None and ver >= flex)


def is_flex(name, ver):
    flex = SPEC[name][1]
    return flex is not None and ver >= flex


def header(key, ver, corr, client_id="probe", flex=False, tags=b"\x00"):
    h = struct.pack(">hhi", key, ver, corr) + _enc_prim("str", client_id, False)
    return h + (tags if flex else b"")


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


def decode(name, ver, payload):
    """payload: reply after the correlation id."""
    flex = is_flex(name, ver)
    d = Dec(payload, flex)
    if flex and name != "ApiVersions":
        for _ in range(d.uvar()):
            d.uvar()
            d.take(d.uvar())
    out = d.struct(SPEC[name][3], ver)
    if d.p != len(payload):
        out["_trailing"] = len(payload) - d.p
    return out
