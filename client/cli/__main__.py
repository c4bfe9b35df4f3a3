"""Runs the command line: `python -m client.cli` is `horolog`."""

import sys

from client.cli.main import main

sys.exit(main())
