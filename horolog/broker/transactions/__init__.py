"""Transactions: who may write in one, what belongs to it, and how it ends, the same in every partition."""
