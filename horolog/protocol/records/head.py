"""The head of an entry of a log, a v2 batch or a v0 or v1 message: the only place that knows where its fields lie.

    at   v2 batch                    v1 message                  v0 message
     0   base offset int64           offset int64                offset int64        a wrapper's: that of its last message
     8   length int32                size int32                  size int32          of all that follows
    12   leader epoch int32          crc uint32                  crc uint32
    16   magic int8 = 2              magic int8 = 1              magic int8 = 0
    17   crc uint32                  attributes int8             attributes int8
    18                               timestamp int64             key length int32
    21   attributes int16
    23   last offset delta int32
    26                               key length int32
    27   base timestamp int64
    35   max timestamp int64
    43   producer id int64
    51   producer epoch int16
    53   base sequence int32
    57   record count int32
    61   records

The crc of a message covers what lies behind it, that of a batch what begins with its attributes: offset, length, and the
leader epoch and magic of a batch, are covered by none.
"""

from struct import Struct

OFFSET_BYTES = 8
LENGTH_AT = 8
LENGTH_ENDS_AT = 12
EPOCH_AT = 12
EPOCH_ENDS_AT = 16
MAGIC_AT = 16
UNCOVERED_BYTES = 17
"""What may have to be put right in a batch: all that lies before its crc."""

# -- v2

CRC_AT = 17
ATTRIBUTES_AT = 21
ATTRIBUTES_LOW_AT = 22
"""Their low byte, which holds all bits that are in use."""
DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_AT = 43
HEADER_BYTES = 61
TIMES_END_AT = PRODUCER_AT

# -- v0 and v1

MESSAGE_CRC_AT = 12
MESSAGE_COVERED_FROM = 16
MESSAGE_ATTRIBUTES_AT = 17
MESSAGE_TIMESTAMP_AT = 18
MESSAGE_KEY_AT = {0: 18, 1: 26}
SMALLEST_MESSAGE_LENGTH = {0: 14, 1: 22}
"""What a message without key and value says of its size."""
SMALLEST_ENTRY_BYTES = LENGTH_ENDS_AT + SMALLEST_MESSAGE_LENGTH[0]

# -- reads of several fields at once

HEADER = Struct(">qiibIhiqqqhii")
"""All of a v2 batch's head."""
START = Struct(">qiibIhi")
"""As far as the last offset delta: of a message only the offset, the size and the magic mean anything."""
MESSAGE_START = Struct(">qiIb")
"""Offset, size, crc and magic: the crc is that of a message, in a batch the leader epoch lies there."""
PREFIX = Struct(">qi4xb")
"""Offset, length and magic."""
PREFIX_BYTES = PREFIX.size
ENTRY = Struct(">qi")
"""Offset and length."""
UP_TO_EPOCH = Struct(">qii")
"""Offset, length and leader epoch: what the broker sets in a batch without its crc."""
MESSAGE_HEAD = Struct(">IbB")
"""A message's crc, magic and attributes."""
MESSAGE_TYPE_AND_TIME = Struct(">bq")
"""A v1 message's attributes and timestamp."""
MESSAGE_UP_TO_KEY = (Struct(">qiIbBi"), Struct(">qiIbBqi"))
"""By magic: all of a message's head, and the length of its key."""
MESSAGE_FROM_LENGTH = Struct(">iIbbqii")
"""A v1 message from its size on: with the key's length, and the value's if the key is null."""
PRODUCER = Struct(">qh")
"""Producer id and epoch."""
OFFSET = TIMESTAMP = Struct(">q")
LENGTH = EPOCH = DELTA = Struct(">i")
ATTRIBUTES = Struct(">h")
CRC = Struct(">I")
