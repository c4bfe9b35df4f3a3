"""What the tests of jobs share."""

from tests.support.jobs_fixtures import produce, run

__all__ = ["produce", "run"]
