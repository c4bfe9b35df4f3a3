"""The command answers quickly, knows its version, and needs a subcommand."""

import subprocess
import sys

import pytest

from broker import __version__
from client.cli import main
from tests.support.style import PROJECT


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out.split()) == (0, ["horolog", __version__])


@pytest.mark.parametrize("argv", [[], ["no-such-command"], ["serve", "--no-such-flag"]])
def test_arguments_that_cannot_be_read_end_with_code_2(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(argv)
    assert ended.value.code == 2
    assert "usage: horolog" in capsys.readouterr().err


def test_help_loads_none_of_the_broker():
    code = "import sys\nfrom client.cli import main\nmain.build_parser()\nprint(sorted(m for m in sys.modules if m.startswith(('broker', 'protocol', 'uvloop', 'asyncio'))))"
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=PROJECT, text=True)
    assert loaded.strip() == "['broker', 'broker.serve']"
