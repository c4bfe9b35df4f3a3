"""T: the rules of time that the recorded brokers do not share: expected outcomes are written in the case."""
