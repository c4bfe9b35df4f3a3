"""Runs a broker with a wall clock other than the machine's, by libfaketime."""

from pathlib import Path

from tests.support.broker_process import BrokerProcess

LIBRARY = next(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1"), None)


def faked(offset_file: Path) -> type[BrokerProcess]:
    """A broker whose wall clock is offset as the file says; its monotonic clock is the machine's."""

    class Faked(BrokerProcess):
        def command(self) -> list[str]:
            fakes = {
                "LD_PRELOAD": str(LIBRARY),
                "FAKETIME_TIMESTAMP_FILE": str(offset_file),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1",
            }
            return ["env", *(f"{key}={value}" for key, value in fakes.items()), *super().command()]

    return Faked
