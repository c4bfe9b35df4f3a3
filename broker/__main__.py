"""Runs the broker: `python -m broker` is `horolog serve`."""

import sys

from broker.serve import main

sys.exit(main())
