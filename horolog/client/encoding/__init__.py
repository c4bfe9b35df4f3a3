"""Encodes keys and values by a schema, of a file or of a registry: what JSON says becomes Avro or Protobuf; the opposite of `decoding`.

encoder = encoder_of_file("order.avsc")
encoder.encode(b'{"id": 7}')
"""

from horolog.client.encoding.avro_writing import AvroWriter
from horolog.client.encoding.fitting import EncodingError
from horolog.client.encoding.schema_encoder import SchemaEncoder, encoder_of_file

__all__ = [
    "AvroWriter",
    "EncodingError",
    "SchemaEncoder",
    "avro_writing",
    "encoder_of_file",
    "fitting",
    "protobuf_writing",
    "schema_encoder",
]
