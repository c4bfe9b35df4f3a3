"""Who may come in: what a listener asks of its peers, and how that is checked."""
