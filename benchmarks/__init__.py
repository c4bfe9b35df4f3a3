"""Measurements: what each step costs, and how the whole stands beside a real Kafka in the same run."""
