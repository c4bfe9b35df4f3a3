"""A broker without a store loads nothing of those over one."""

import subprocess
import sys


def test_a_broker_without_a_store_imports_nothing_of_brokers_over_one():
    code = (
        "import sys, horolog.broker.server.app, horolog.broker.handlers.fetch, horolog.broker.handlers.produce\n"
        "print([one for one in sys.modules if one.startswith(('horolog.broker.bucket', 'horolog.broker.backup', 'horolog.stores', 'obstore'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
