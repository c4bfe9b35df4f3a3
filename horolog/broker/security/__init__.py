"""Authentication and authorization: what a listener requires of its peers, how that is checked, and access lists."""
