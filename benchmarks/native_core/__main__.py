"""Starts a broker that has the core; see the package."""

import sys

from benchmarks.native_core.building import built
from benchmarks.native_core.glue import install
from horolog.client.cli.main import main

install(built())
sys.exit(main())
