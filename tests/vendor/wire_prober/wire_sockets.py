"""A connection that sends and reads raw frames."""

import socket
import struct

from tests.vendor.wire_prober.wire_schema import SPEC, Short, body, decode, frame, header, is_flex


class Closed(Exception):
    pass


class NoReply(Exception):
    pass


class Conn:
    def __init__(self, host, port, timeout=10.0):
        self.s = socket.create_connection((host, port), timeout=timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout = timeout
        self.corr = 100
        self.buf = b""

    def close(self):
        try:
            self.s.close()
        except OSError:
            pass

    def raw(self, b):
        try:
            self.s.sendall(b)
        except OSError as e:
            raise Closed(str(e))

    def _read(self, n, timeout):
        self.s.settimeout(timeout)
        while len(self.buf) < n:
            try:
                d = self.s.recv(65536)
            except TimeoutError:
                raise NoReply("no reply within %gs" % timeout)
            except OSError:
                raise Closed("reset")
            if not d:
                raise Closed("eof")
            self.buf += d
        r, self.buf = self.buf[:n], self.buf[n:]
        return r

    def recv(self, timeout=None):
        t = self.timeout if timeout is None else timeout
        n = struct.unpack(">i", self._read(4, t))[0]
        if n < 0 or n > 200_000_000:
            raise Short("reply frame length %d" % n)
        return self._read(n, max(t, 5.0))

    def send(self, name, ver, d, client_id="probe", raw_body=None, corr=None):
        key = SPEC[name][0]
        if corr is None:
            self.corr += 1
            corr = self.corr
        b = body(name, ver, d) if raw_body is None else raw_body
        self.raw(frame(header(key, ver, corr, client_id, is_flex(name, ver)) + b))
        return corr

    def reply(self, name, ver, corr=None, timeout=None):
        p = self.recv(timeout)
        if len(p) < 4:
            raise Short("reply of %d bytes" % len(p))
        got = struct.unpack(">i", p[:4])[0]
        out = decode(name, ver, p[4:])
        if corr is not None and got != corr:
            out["_corr"] = "mismatch"
        return out

    def call(self, name, ver, d, timeout=None, **kw):
        corr = self.send(name, ver, d, **kw)
        return self.reply(name, ver, corr, timeout)
