"""A prototype of a native core, to decide by its figures whether one is worth building. Nothing imports it, no wheel has it.

    python -m benchmarks.native_core serve --data FOLDER --listen 127.0.0.1:9092

starts a broker whose plain connections are read by the core. It takes the words of `horolog serve`. README.md has the figures.
"""
