"""Authentication by SASL: its mechanisms, and the order in which their messages may come."""
