"""Which command starts a checkout, of whatever age."""

import pytest

from benchmarks import brokers


@pytest.mark.parametrize(
    ("files", "module"),
    [
        (["horolog/client/cli/main.py", "client/cli/main.py"], "horolog.client.cli.main"),
        (["client/cli/main.py"], "client.cli.main"),
    ],
)
def test_a_checkout_is_started_by_the_command_that_it_has(tmp_path, files, module):
    for one in files:
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).touch()
    assert brokers.module_of(tmp_path) == module
