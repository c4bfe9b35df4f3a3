"""Decodes keys and values of records: JSON, Avro, Protobuf and MessagePack become Python values, by a schema where one is needed.

    decoder = Decoder(Options(registry=RegistryAccess("http://schemas:8081")))
    decoded = await decoder.decode(record)
    decoded.value, decoded.value_schema, decoded.value_problem, decoded.value_text

Any bytes decode to something: what its schema cannot read stays text, or hexadecimal digits, with the reason. `values` defines
the types of values, `plain` turns them into JSON's types. Formats and the registry are imported when the first record needs
them. Bytes are never trusted: a reader takes no more steps than there are bytes, which is why no Avro library is used
(fastavro 1.13 takes all memory for six bytes that claim 2^33 nulls).
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
    "avro",
    "decoder",
    "json_text",
    "msgpack",
    "plain",
    "plain_text",
    "proto_known",
    "proto_text",
    "proto_types",
    "protobuf",
    "readable_bytes",
    "registry",
    "registry_access",
    "values",
    "where",
]
