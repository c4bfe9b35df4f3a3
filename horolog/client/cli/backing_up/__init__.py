"""What `horolog backup` and `horolog restore` do: a round of a backup, its moments, its objects, and a moment as a data folder."""

__all__ = ["places", "restored", "rounds", "shown"]
