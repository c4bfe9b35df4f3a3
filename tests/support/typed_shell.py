"""A shell at its own terminal, in which a test types and reads the output."""

import os
import pty
import re
import subprocess
import time

from tests.support.waiting import readable

CONTROL = re.compile(r"\x1b(?:\[[0-9;?>=]*[A-Za-z]|[=>]|\][^\x07]*\x07)|[\r\x07\x08]")


class TypedShell:
    """A context manager: the shell ends with it."""

    def __init__(self, words, environ):
        self.words = words
        self.environ = environ
        self.seen = ""

    def __enter__(self):
        self.terminal, inside = pty.openpty()
        self.process = subprocess.Popen(
            self.words, stdin=inside, stdout=inside, stderr=inside, env=self.environ, start_new_session=True
        )
        os.close(inside)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(60)
        os.close(self.terminal)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def until(self, expected, seconds=60):
        """Wait until this appears; returns the output since the last call."""
        give_up = time.monotonic() + seconds
        while expected not in CONTROL.sub("", self.seen):
            left = give_up - time.monotonic()
            assert left > 0, f"{expected!r} does not appear: {self.seen!r}"
            if readable(self.terminal, min(left, 0.5)):
                self.seen += os.read(self.terminal, 65536).decode(errors="replace")
        found, self.seen = self.seen, ""
        return CONTROL.sub("", found)

    def until_after(self, key, expected):
        """Press a key until this appears: the key is pressed again if nothing happens."""
        for attempt in range(5):
            self.type(key)
            try:
                return self.until(expected, 15)
            except AssertionError:
                assert attempt < 4
        return ""
