"""Bytes to values and back: Kafka's messages, headers and frames, without socket, clock or event loop."""
