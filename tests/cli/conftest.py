"""Commands run as a user types them: in this process with captured output, and the golden folders to run them on."""

from tests.support.command import horolog
from tests.support.fixtures import golden_root

__all__ = ["golden_root", "horolog"]
