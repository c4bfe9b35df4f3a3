"""Keys and values of records as what they mean: JSON, Avro, Protobuf and MessagePack become values of Python, by a schema where one is needed.

    decoder = Decoder(Options(registry=RegistryAccess("http://schemas:8081")))
    decoded = await decoder.decode(record)
    decoded.value, decoded.value_schema, decoded.value_problem, decoded.value_text

Any bytes decode to something: what cannot be read by its schema stays text, or hexadecimal digits, beside the reason. `values` says which
values there are, `plain` turns them into what JSON has. Formats and the registry are imported when the first record needs them. All
of it is written for bytes that nobody vouches for: a reader is done after as many steps as the bytes are long, and libraries for Avro
were not taken for that reason (fastavro 1.13 takes all memory for six bytes that claim 2^33 nulls).
"""

from horolog.client.decoding.decoder import FORMATS, Decoded, Decoder, Options
from horolog.client.decoding.registry_access import RegistryAccess
from horolog.client.decoding.values import DecodingError, Instant, plain, plain_text, readable_bytes

__all__ = [
    "FORMATS",
    "Decoded",
    "Decoder",
    "DecodingError",
    "Instant",
    "Options",
    "RegistryAccess",
    "plain",
    "plain_text",
    "readable_bytes",
]
