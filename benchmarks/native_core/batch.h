/* Numbers as the protocol has them, the checksum, and the verdict on one plain batch: for the native core and for the floor. */
#pragma once
#include <nmmintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HEADER = 61 };

static inline uint16_t g16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
static inline uint32_t g32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
static inline int64_t g64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return (int64_t)__builtin_bswap64(v); }
static inline uint8_t *p16(uint8_t *p, int v) { p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v; return p + 2; }
static inline uint8_t *p32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); return p + 4; }
static inline uint8_t *p64(uint8_t *p, int64_t n) { uint64_t v = __builtin_bswap64((uint64_t)n); memcpy(p, &v, 8); return p + 8; }

/* -- checksum: three streams at once where there is much, as the instruction takes three cycles */

enum { LANE = 4096 };
static uint32_t shifted[4][256]; /* what LANE bytes of zeros make of a sum, by each of its bytes */

static uint32_t crc_plain(uint32_t sum, const uint8_t *p, size_t n) {
  uint64_t s = sum;
  for (; n >= 8; p += 8, n -= 8) { uint64_t w; memcpy(&w, p, 8); s = _mm_crc32_u64(s, w); }
  for (; n; p++, n--) s = _mm_crc32_u8((uint32_t)s, *p);
  return (uint32_t)s;
}

static void crc_prepare(void) {
  static const uint8_t zeros[LANE];
  for (int byte = 0; byte < 4; byte++)
    for (uint32_t value = 0; value < 256; value++) shifted[byte][value] = crc_plain(value << 8 * byte, zeros, LANE);
}

static inline uint32_t past_lane(uint32_t s) {
  return shifted[0][s & 255] ^ shifted[1][s >> 8 & 255] ^ shifted[2][s >> 16 & 255] ^ shifted[3][s >> 24];
}

static uint32_t crc32c(const uint8_t *p, size_t n) {
  uint32_t sum = 0xffffffffu;
  for (; n >= 3 * LANE; p += 3 * LANE, n -= 3 * LANE) {
    uint64_t a = sum, b = 0, c = 0, x, y, z;
    for (size_t at = 0; at < LANE; at += 8) {
      memcpy(&x, p + at, 8); memcpy(&y, p + LANE + at, 8); memcpy(&z, p + 2 * LANE + at, 8);
      a = _mm_crc32_u64(a, x); b = _mm_crc32_u64(b, y); c = _mm_crc32_u64(c, z);
    }
    sum = past_lane(past_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
  }
  return ~crc_plain(sum, p, n);
}

/* -- the verdict on one batch */

typedef struct { int64_t max_bytes, now_ms, before_ms, after_ms; int compact; } Rules;
typedef struct { int64_t count, max_timestamp, producer_id; } Found;

/* A varint of at most `most` bytes as it is written; -1: none. Values above 63 bits are none either. */
static inline int64_t varint(const uint8_t **at, const uint8_t *end, int most) {
  const uint8_t *p = *at; uint64_t value = 0;
  for (int n = 0; n < most; n++) {
    if (p >= end) return -1;
    uint8_t byte = *p++; value |= (uint64_t)(byte & 127) << 7 * n;
    if (byte < 128) { *at = p; return value > INT64_MAX ? -1 : (int64_t)value; }
  }
  return -1;
}

static inline int64_t unzigzag(int64_t raw) { return (raw >> 1) ^ -(raw & 1); }

/* Moves past `raw` (the length as it is written) bytes; an odd raw of 1 is null and has none. */
static inline int skip(const uint8_t **p, const uint8_t *end, int64_t raw) {
  if (raw == 1) return 1;
  if (raw < 0 || raw & 1 || raw >> 1 > end - *p) return 0;
  *p += raw >> 1; return 1;
}

static int walk(const uint8_t *p, const uint8_t *end, int64_t count, int64_t *lowest, int64_t *highest, int *null_key) {
  *lowest = INT64_MAX; *highest = INT64_MIN; *null_key = 0;
  for (int64_t index = 0; index < count; index++) {
    int64_t raw = varint(&p, end, 5); if (raw < 0 || raw & 1 || raw >> 1 > end - p) return 0;
    const uint8_t *stop = p + (raw >> 1);
    if (p >= stop) return 0;
    p++;
    if ((raw = varint(&p, stop, 9)) < 0) return 0; /* a delta of 64 bits is Python's to judge */
    int64_t delta = unzigzag(raw); if (delta < *lowest) *lowest = delta; if (delta > *highest) *highest = delta;
    if (varint(&p, stop, 5) != 2 * index) return 0;
    if ((raw = varint(&p, stop, 5)) == 1) *null_key = 1;
    if (!skip(&p, stop, raw)) return 0;
    if ((raw = varint(&p, stop, 5)) < 0 || !skip(&p, stop, raw)) return 0;
    int64_t headers = varint(&p, stop, 5); if (headers < 0 || headers & 1) return 0;
    for (headers >>= 1; headers > 0; headers--) {
      if ((raw = varint(&p, stop, 5)) < 0 || raw & 1 || !skip(&p, stop, raw)) return 0;
      if ((raw = varint(&p, stop, 5)) < 0 || !skip(&p, stop, raw)) return 0;
    }
    if (p != stop) return 0;
  }
  return p == end;
}

/* Whether Python would accept the batch and store it as it came, but for its place. */
static inline int check(const uint8_t *b, int64_t size, const Rules *rules, Found *found) {
  if (size < HEADER || size > rules->max_bytes || b[16] != 2 || (int64_t)(int32_t)g32(b + 8) + 12 != size) return 0;
  if (g64(b) || g16(b + 21)) return 0; /* any attribute: compressed, a control batch, of a transaction, a time of the log */
  int64_t count = (int32_t)g32(b + 57), base = g64(b + 27), claimed = g64(b + 35);
  if (count <= 0 || (int32_t)g32(b + 23) != count - 1 || count > (size - HEADER) / 7) return 0;
  found->producer_id = g64(b + 43);
  if (found->producer_id >= 0 && (int32_t)g32(b + 53) < 0) return 0;
  if (crc32c(b + 21, (size_t)size - 21) != g32(b + 17)) return 0;
  int64_t lowest, highest; int null_key;
  if (!walk(b + HEADER, b + size, count, &lowest, &highest, &null_key) || (null_key && rules->compact)) return 0;
  if (__builtin_add_overflow(base, lowest, &lowest) || __builtin_add_overflow(base, highest, &highest)) return 0;
  int64_t behind, ahead;
  if (__builtin_sub_overflow(rules->now_ms, lowest, &behind) || __builtin_sub_overflow(highest, rules->now_ms, &ahead)) return 0;
  if ((behind > rules->before_ms && rules->before_ms != INT64_MAX) || ahead > rules->after_ms) return 0;
  if (highest < -1) highest = -1;
  if (highest != claimed) return 0;
  found->count = count; found->max_timestamp = highest;
  return 1;
}
