"""Moves that admin clients ask for: the leader hands the partition over with an entry that ends its stretch of the WAL (`handing`)."""

from __future__ import annotations

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.handing import Handing
from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.cluster.hand_over import HandOvers, Moved


class StoreHandOvers(HandOvers):
    """The hand-overs under way here."""

    handing: Handing

    async def _hand_over(self, topic_id: bytes, name: str, index: int, node: int, done: Moved) -> None:
        place = topic_id, index
        state = self._cluster.state
        assert isinstance(state, BucketState)
        self.moves[name, index] = node
        refusal = await self.handing.give({place: Lead(node, state.leads[place].epoch + 1)})
        del self.moves[name, index]
        done(refusal)
