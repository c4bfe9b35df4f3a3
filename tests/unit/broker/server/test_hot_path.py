"""The log says which form of the hot path runs."""

from horolog.broker.server.hot_path import HOT_PATH
from horolog.protocol.records.walk import IS_COMPILED


def test_the_form_is_named_and_what_plain_python_costs():
    if IS_COMPILED:
        assert HOT_PATH == "compiled"
    else:
        assert HOT_PATH.startswith("plain Python, with a quarter of the speed")
        assert "make compiled" in HOT_PATH
