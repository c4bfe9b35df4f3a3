"""Writes the settings table as a file in Kafka's form, every key with its sentence and its default: config/server.properties."""

import sys
import textwrap

from horolog.base.properties_file import escape_value
from horolog.broker.config.setting_types import Spec, render
from horolog.broker.config.settings import SPECS

HEADER = """\
# The settings of a horolog broker. Most are Kafka's, with the same names and meanings; horolog's own begin with horolog.
#
# Each key has a description, the allowed values and its default. To change a setting, remove the # and edit the value.
# The environment (KAFKA_LOG_SEGMENT_BYTES for log.segment.bytes) overrides this file; flags (--set KEY=VALUE) override both.
# You can change keys marked * while the broker runs. `make config` writes this file from broker/config/settings.py.
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
