"""Transactions: which producer may write in one, what belongs to it, and how it ends in every partition alike."""

__all__ = [
    "coordinator",
    "joining",
    "other_brokers",
    "records",
    "states",
]
