"""Writes the settings table as a file in Kafka's form, every key with its sentence and its default: config/server.properties."""

import sys
import textwrap

from horolog.base.properties_file import escape_value
from horolog.broker.config.setting_types import Spec, render
from horolog.broker.config.settings import SPECS

HEADER = """\
# The settings of a horolog broker: Kafka's own names in Kafka's own form, and a few of its own, which begin with horolog.
#
# Every key stands here with what it is for, what it may be and its default, commented out: remove the # and change the value.
# The environment (KAFKA_LOG_SEGMENT_BYTES for log.segment.bytes) wins over this file, flags (--set KEY=VALUE) over both.
# Keys marked * may also change while the broker runs. `make config` writes this file from the table in broker/config/settings.py.
"""

WIDTH = 120


def text() -> str:
    """The whole file."""
    return HEADER + "".join(
        f"\n{_comment(spec)}\n#{spec.name}={escape_value(render(spec.default))}\n" for spec in SPECS.values()
    )


def _comment(spec: Spec) -> str:
    mark = " *" if spec.dynamic else ""
    said = f"{spec.sentence} Allowed: {spec.allowed()}.{mark}"
    return "\n".join(textwrap.wrap(said, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False))


if __name__ == "__main__":
    sys.stdout.write(text())
