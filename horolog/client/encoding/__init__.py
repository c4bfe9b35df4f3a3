"""Encodes keys and values by a schema, of a file or of a registry: what JSON says becomes Avro; the opposite of `decoding`.

encoder = SchemaEncoder(schema_of_file("order.avsc"))
encoder.encode(b'{"id": 7}')
"""

from horolog.client.encoding.avro_writing import AvroWriter, EncodingError
from horolog.client.encoding.schema_encoder import SchemaEncoder, schema_of_file

__all__ = ["AvroWriter", "EncodingError", "SchemaEncoder", "avro_writing", "schema_encoder", "schema_of_file"]
