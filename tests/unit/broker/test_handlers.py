"""The table of handlers: each is imported when the first request for it comes, and is there."""

import subprocess
import sys

import pytest

from horolog.broker.handlers import HANDLERS, Handler
from horolog.broker.handlers.produce import handle
from horolog.protocol.apis import API


@pytest.mark.parametrize("key", HANDLERS, ids=lambda key: key.name)
def test_what_is_served_is_declared_and_there(key):
    handler = HANDLERS[key]
    assert callable(handler.function)
    assert API[key].min_version <= handler.min_version <= handler.max_version <= API[key].max_version


def test_a_handler_is_found_by_module_and_name_and_kept():
    handler = Handler(0, 13, "produce:handle")
    assert repr(handler) == "Handler(v0-v13, 'produce:handle')"
    assert handler.function is handler.function is handle


def test_nothing_is_imported_before_it_is_asked_for():
    code = "import sys, horolog.broker.handlers; print('horolog.broker.handlers.produce' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
