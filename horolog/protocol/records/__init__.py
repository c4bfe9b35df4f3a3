"""Records: the three formats in which they travel and lie on disk, and everything that reads, checks, writes or converts them.

Where to look:

- `record`       the value all formats share, `Record`
- `batch`        format v2: batch header, crc32c, reading and writing of batches
- `scan`         what a v2 batch's records say about time and offsets, at C speed where they are alike
- `message_set`  formats v0 and v1: messages, wrappers, sets
- `walk_set`     whether a set of plain v1 messages is without a fault, at a fraction of a value for each
- `entries`      logs and record sets of any mixture: walk over whole batches and messages, check them, read their records
- `compression`  the codecs, with a bound on what comes out; `lz4_frame` is the header checksum of the oldest clients
- `timestamps`   the rules of KIP-32 as pure functions
- `convert`      v2 to v1 to v0 for old readers, and one format for a log that wants one
- `convert_up`   v0 and v1 to v2 for current readers; `plain_messages` writes them as records
- `control`      transaction markers and leader changes

Everything raises `protocol.errors.DecodeError` for impossible bytes; nothing else escapes, whatever the bytes.
"""
