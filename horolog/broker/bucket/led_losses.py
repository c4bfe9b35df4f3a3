"""What cannot be read of the partitions that are open here, because the store has lost or altered objects of their segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from horolog.broker.bucket.remote_segment import MetaReader
    from horolog.broker.bucket.shipped_partition import ShippedPartition
    from horolog.broker.on_record.cluster_file import Place


class LedLosses:
    """See the module's docstring. `look` is called now and then."""

    def __init__(self, led: Mapping[Place, ShippedPartition], metas: Callable[[], MetaReader | None]) -> None:
        """`metas` reads segments, once one is open."""
        self._led = led
        self._metas = metas

    def __repr__(self) -> str:
        return f"<LedLosses of {len(self._led)} partitions>"

    def lines(self) -> dict[str, str]:
        """Which records cannot be read, and why, by the objects that are lost."""
        fronts = [led.front for led in self._led.values() if led.front is not None]
        return {key: line for front in fronts for key, line in front.unreadable().items()}

    def look(self) -> None:
        """Ask for lost objects again that a partition still needs, and forget the others."""
        metas = self._metas()
        if metas is not None and metas.fetcher.lost:
            metas.fetcher.lost.keep(self.lines())
            metas.fetcher.ask_again()
