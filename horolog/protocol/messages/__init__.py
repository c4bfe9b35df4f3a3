"""Kafka's messages, declared once for all versions, one module per family."""
