"""An S3 server on loopback that keeps objects in memory, well or badly: each `Habit` is one way in which stores go wrong."""

import re
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "hidden", "HOME": "/nonexistent"}


class Habit(Enum):
    GOOD = auto()
    FORGETS_CONDITION = auto()
    CHECKS_THEN_ACTS = auto()
    """Looks for the key, and creates it a moment later."""
    CONFLICTS = auto()
    """Answers 409 to a create of a key that is taken, and never 412."""
    TAKEN_BY_NOBODY = auto()
    ALTERS_BYTES = auto()
    LISTS_LATE = auto()
    IGNORES_RANGES = auto()
    KEEPS_DELETED = auto()
    WRONG_CLOCK = auto()
    LOSES_FIRST_ANSWER = auto()
    """Creates the object, and answers 503 to the first create of each key."""
    ALTERS_READS = auto()
    """Keeps what it got, and gives out other bytes."""
    SLOW = auto()
    NEVER_ANSWERS = auto()
    RESETS = auto()


class Server(ThreadingHTTPServer):
    """`refuses` maps a method to the status, and the store's code, that it is answered with, for keys below `refuses_below`.

    The habit is that for keys below `habit_below`; other keys are served well. Both may be tuples.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, habit, refuses):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.habit, self.refuses, self.refuses_below, self.habit_below = habit, refuses, "", ""
        self.objects, self.lock = {}, threading.Lock()
        self.creates, self.requests = [], []
        self.stopping = threading.Event()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _before(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        self.key, self.query = unquote(url.path).partition("/lake/")[2], parse_qs(url.query, keep_blank_values=True)
        self.server.requests.append((self.command, self.key))
        return body

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"ETag": '"1"', **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, status, code):
        self._answer(
            status, f"<Error><Code>{code}</Code><Message>secret text</Message></Error>".encode() if code else b""
        )

    @property
    def _habit(self):
        return self.server.habit if self.key.startswith(self.server.habit_below) else Habit.GOOD

    def _is_refused(self):
        habit = self._habit
        if not self.path.startswith("/lake"):  # a machine without a service for credentials
            self._error(404, "")
            return True
        if habit is Habit.NEVER_ANSWERS:
            self.server.stopping.wait(30)
        elif habit is Habit.SLOW:
            time.sleep(0.1)
        if habit in {Habit.NEVER_ANSWERS, Habit.RESETS}:
            self.close_connection = True
            return True
        refused = self.server.refuses.get(self.command) if self.key.startswith(self.server.refuses_below) else None
        if refused:
            self._error(*refused)
        return refused is not None

    def do_PUT(self):
        body = self._before()
        if self._is_refused():
            return
        habit, objects = self._habit, self.server.objects
        self.server.creates.append(self.headers.get("If-None-Match"))
        if habit is Habit.CHECKS_THEN_ACTS:
            is_taken = self.key in objects
            time.sleep(0.02)
            if not is_taken:
                objects[self.key] = body
        else:
            with self.server.lock:
                is_taken = habit is Habit.TAKEN_BY_NOBODY or self.key in objects
                if not is_taken or habit is Habit.FORGETS_CONDITION:
                    objects[self.key] = body[::-1] if habit is Habit.ALTERS_BYTES and body else body
        if is_taken and habit is not Habit.FORGETS_CONDITION:
            self._error(
                *((409, "ConditionalRequestConflict") if habit is Habit.CONFLICTS else (412, "PreconditionFailed"))
            )
        elif habit is Habit.LOSES_FIRST_ANSWER:
            self._error(503, "SlowDown")
        else:
            self._answer(200)

    def do_GET(self):
        self._before()
        if self._is_refused():
            return
        if "list-type" in self.query:
            self._list(self.query.get("prefix", [""])[0], self.query.get("delimiter", [None])[0])
            return
        data = self.server.objects.get(self.key)
        if data is None:
            self._error(404, "NoSuchKey")
            return
        if self._habit is Habit.ALTERS_READS:
            data = bytes(255 - one for one in data)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if wanted is None:
            self._answer(200, data, Last_Modified=self._now())
            return
        first, last = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
        if first >= len(data):
            self._error(416, "InvalidRange")
            return
        part = data[first : last + 1][:: -1 if self._habit is Habit.IGNORES_RANGES else 1]
        self._answer(206, part, Content_Range=f"bytes {first}-{last}/{len(data)}", Last_Modified=self._now())

    do_HEAD = do_GET  # noqa: N815 - the names that http.server calls

    def _now(self):
        return formatdate(time.time() - (4_000_000 if self.server.habit is Habit.WRONG_CLOCK else 0), usegmt=True)

    def _list(self, prefix, delimiter):
        hidden = self.server.habit is Habit.LISTS_LATE
        found = (
            [] if hidden else sorted((key, data) for key, data in self.server.objects.items() if key.startswith(prefix))
        )
        folders = {
            key[: key.index("/", len(prefix)) + 1] for key, _ in found if delimiter and "/" in key[len(prefix) :]
        }
        found = [(key, data) for key, data in found if not any(key.startswith(one) for one in folders)]
        when = "2026-01-01T00:00:00.000Z"
        contents = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{when}</LastModified><ETag>1</ETag><Size>{len(data)}</Size></Contents>"
            for key, data in found
        )
        contents += "".join(f"<CommonPrefixes><Prefix>{one}</Prefix></CommonPrefixes>" for one in sorted(folders))
        text = f"<ListBucketResult><Name>lake</Name><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        self._answer(200, text.encode())

    def do_DELETE(self):
        self._before()
        if not self._is_refused():
            self._forget(self.key)
            self._answer(204)

    def do_POST(self):
        keys = re.findall(r"<Key>([^<]+)</Key>", self._before().decode())
        if self._is_refused():
            return
        for key in keys:
            self._forget(key)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _forget(self, key):
        if self.server.habit is not Habit.KEEPS_DELETED:
            self.server.objects.pop(key, None)

    def log_message(self, *_):
        pass


@contextmanager
def serving(habit=Habit.GOOD, refuses=None):
    """The server with the bucket `lake`, until the block ends."""
    with Server(habit, refuses or {}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join(10)
