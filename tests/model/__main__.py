"""`python -m tests.model`: explores the model of the protocol of brokers over one store."""

import sys

from tests.model.exploring import main

sys.exit(main(*sys.argv[1:]))
