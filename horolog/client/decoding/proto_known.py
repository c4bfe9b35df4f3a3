"""The .proto files that come with Protobuf and with registries, so that users need not supply them; and a part of descriptor.proto.

They have only what decoding needs: names of messages, and numbers, names and types of fields.
"""

from typing import Final

_WRAPPERS: Final = {
    "DoubleValue": "double",
    "FloatValue": "float",
    "Int64Value": "int64",
    "UInt64Value": "uint64",
    "Int32Value": "int32",
    "UInt32Value": "uint32",
    "BoolValue": "bool",
    "StringValue": "string",
    "BytesValue": "bytes",
}
WRAPPERS: Final = tuple(f"google.protobuf.{name}" for name in _WRAPPERS)

_GOOGLE: Final = 'syntax = "proto3"; package google.protobuf; '
_TYPE: Final = 'syntax = "proto3"; package google.type; '

FILES: Final = {
    "google/protobuf/any.proto": _GOOGLE + "message Any { string type_url = 1; bytes value = 2; }",
    "google/protobuf/timestamp.proto": _GOOGLE + "message Timestamp { int64 seconds = 1; int32 nanos = 2; }",
    "google/protobuf/duration.proto": _GOOGLE + "message Duration { int64 seconds = 1; int32 nanos = 2; }",
    "google/protobuf/empty.proto": _GOOGLE + "message Empty {}",
    "google/protobuf/field_mask.proto": _GOOGLE + "message FieldMask { repeated string paths = 1; }",
    "google/protobuf/wrappers.proto": _GOOGLE
    + " ".join(f"message {name} {{ {kind} value = 1; }}" for name, kind in _WRAPPERS.items()),
    "google/protobuf/struct.proto": _GOOGLE
    + """
        message Struct { map<string, Value> fields = 1; }
        message Value {
          oneof kind {
            NullValue null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
            Struct struct_value = 5; ListValue list_value = 6;
          }
        }
        enum NullValue { NULL_VALUE = 0; }
        message ListValue { repeated Value values = 1; }
    """,
    "google/type/date.proto": _TYPE + "message Date { int32 year = 1; int32 month = 2; int32 day = 3; }",
    "google/type/timeofday.proto": _TYPE
    + "message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
    "google/type/money.proto": _TYPE + "message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }",
    "google/type/latlng.proto": _TYPE + "message LatLng { double latitude = 1; double longitude = 2; }",
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type;'
    "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
}

DESCRIPTORS: Final = """
    syntax = "proto2"; package google.protobuf;
    message FileDescriptorSet { repeated FileDescriptorProto file = 1; }
    message FileDescriptorProto {
      optional string name = 1; optional string package = 2; repeated string dependency = 3;
      repeated DescriptorProto message_type = 4; repeated EnumDescriptorProto enum_type = 5;
      optional Options options = 8; optional string syntax = 12;
    }
    message DescriptorProto {
      optional string name = 1; repeated FieldDescriptorProto field = 2; repeated DescriptorProto nested_type = 3;
      repeated EnumDescriptorProto enum_type = 4; optional MessageOptions options = 7;
      repeated OneofDescriptorProto oneof_decl = 8;
    }
    message MessageOptions { optional bool map_entry = 7; }
    message OneofDescriptorProto { optional string name = 1; }
    message FieldDescriptorProto {
      enum Type {
        TYPE_DOUBLE = 1; TYPE_FLOAT = 2; TYPE_INT64 = 3; TYPE_UINT64 = 4; TYPE_INT32 = 5; TYPE_FIXED64 = 6;
        TYPE_FIXED32 = 7; TYPE_BOOL = 8; TYPE_STRING = 9; TYPE_GROUP = 10; TYPE_MESSAGE = 11; TYPE_BYTES = 12;
        TYPE_UINT32 = 13; TYPE_ENUM = 14; TYPE_SFIXED32 = 15; TYPE_SFIXED64 = 16; TYPE_SINT32 = 17; TYPE_SINT64 = 18;
      }
      enum Label { LABEL_OPTIONAL = 1; LABEL_REQUIRED = 2; LABEL_REPEATED = 3; }
      optional string name = 1; optional int32 number = 3; optional Label label = 4; optional Type type = 5;
      optional string type_name = 6; optional FieldOptions options = 8; optional int32 oneof_index = 9;
      optional bool proto3_optional = 17;
    }
    message EnumDescriptorProto { optional string name = 1; repeated EnumValueDescriptorProto value = 2; }
    message EnumValueDescriptorProto { optional string name = 1; optional int32 number = 2; }
    message Options { optional FeatureSet features = 50; }
    message FieldOptions { optional FeatureSet features = 21; }
    message FeatureSet {
      enum Presence { FIELD_PRESENCE_UNKNOWN = 0; EXPLICIT = 1; IMPLICIT = 2; LEGACY_REQUIRED = 3; }
      enum Encoding { MESSAGE_ENCODING_UNKNOWN = 0; LENGTH_PREFIXED = 1; DELIMITED = 2; }
      optional Presence field_presence = 1; optional Encoding message_encoding = 5;
    }
"""
"""For reading files of descriptors, which are messages themselves."""
