"""Who a peer is, by name and proof: the mechanisms of SASL, and the order in which their messages may come."""
