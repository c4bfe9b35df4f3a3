"""Commands run as a user types them: in this process, at a broker that several test files share."""

from tests.support.command import horolog
from tests.support.fixtures import golden_root
from tests.support.online_commands import address, hourly, run, topic

__all__ = ["address", "golden_root", "horolog", "hourly", "run", "topic"]
