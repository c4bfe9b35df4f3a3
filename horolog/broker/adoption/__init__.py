"""Takes over a data folder that a Kafka has written: reads what its controller knew, and decides which settings each topic has."""
