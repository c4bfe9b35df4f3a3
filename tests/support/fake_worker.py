"""A worker without a broker, for tests of the supervisor: `fake_worker.py NUMBER DESCRIPTOR BEHAVIOUR`.

It settles if it is the first, waits for its release, reports that it is ready, answers requests,
stands still for a backup, and ends cleanly on request,
except for its behaviour. It writes what it receives to the file `heard-NUMBER` in the data folder, and its process id to `pid-NUMBER`.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path

BEHAVIOURS = ("good", "fails", "dies", "deaf", "never-ready", "ends-badly", "leaves", "writes")


class FakeWorker:
    def __init__(self, number: int, descriptor: int, behaviour: str) -> None:
        assert behaviour in BEHAVIOURS, behaviour
        self.number = number
        self.behaviour = behaviour
        self._socket = socket.socket(fileno=descriptor)
        self._reader = self._socket.makefile("rb")
        _, self.orders = self._hear()
        self.folder = Path(self.orders["data_dirs"][0])

    def _hear(self):
        line = self._reader.readline()
        if not line:
            sys.exit(0)
        return json.loads(line)

    def say(self, word, *values) -> None:
        self._socket.sendall(json.dumps([word, *values]).encode() + b"\n")

    def run(self) -> None:
        (self.folder / f"pid-{self.number}").write_text(str(os.getpid()))
        if self.behaviour == "fails":
            self.say("failed", "the port is taken", 7)
            sys.exit(7)
        if self.behaviour == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        signal.signal(signal.SIGTERM, self._stop)
        if self.orders["context"]["is_first"]:
            self.say("settled")
        with (self.folder / f"heard-{self.number}").open("a") as heard:
            while True:
                word, *values = self._hear()
                if word != "ping":
                    print(word, *values, file=heard, flush=True)
                self._answer(word, values)

    def _answer(self, word, values) -> None:
        if word == "go" and self.behaviour != "never-ready":
            self.say("ready")
        if word == "ping" and self.behaviour != "deaf":
            self.say("pong")
        if word == "journal":
            self.say("applied", *values)
        if word == "stand":
            self._stand(*values)
        if word == "live" and values[0] == self.orders["context"]["nodes"]:
            if self.behaviour == "leaves":
                self._stop()
            if self.behaviour == "writes":
                self.say("journal", 41)

    def _stand(self, number) -> None:
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.settimeout(20)
            os.chdir(self.orders["context"]["sockets"])  # the path of a socket has at most 108 bytes
            waiting.connect("standstill")
            waiting.sendall(b"%d\n" % number)
            stood = waiting.recv(1) == b"!"
        self.say("ends", number, [("t", self.number, 0, 100)] if stood else None)

    def _stop(self, *_) -> None:
        self.say("stopping")
        os._exit(3 if self.behaviour == "ends-badly" else 0)


if __name__ == "__main__":
    FakeWorker(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]).run()
