"""What every test may ask for."""

from tests.support.fixtures import broker, session_broker, start_broker

__all__ = ["broker", "session_broker", "start_broker"]
