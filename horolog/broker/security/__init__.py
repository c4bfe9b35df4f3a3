"""Who may come in, and what he may do: what a listener asks of its peers, how that is checked, and access lists."""
