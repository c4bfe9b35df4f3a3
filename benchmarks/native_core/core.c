/* A prototype of a native core: connections that it reads itself, and Produce of plain batches.

   One call of `turn` stands for one turn of the event loop. It reads every socket that has bytes, cuts frames, and decides those
   that are a Produce v3 to v13 of plain batches which `validate_batch` would accept without a change: checksum, records, times. It
   numbers the batches in place, has Python append and write them (one call a turn, per partition one append), and answers. Every
   other frame goes to the Python conversation, after everything before it is written. See README.md for what is left out. */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 16384, MOST_ITEMS = 64, MOST_BATCHES = 1024, SLOTS = 16384, EVENTS = 256, JOIN_BELOW = 32768 };
enum { FIRST_VERSION = 3, FLEXIBLE_FROM = 9, IDS_FROM = 13, LAST_VERSION = 13, BUCKETS = 32 };

#include "batch.h"

/* -- state */

typedef struct { uint8_t *data; int64_t size, first, last, max_timestamp; } Batch;
typedef struct {
  PyObject *partition; uint64_t hash; uint8_t key[256]; int key_size; int32_t index;
  uint64_t fresh; /* the number of the stretch of time for which the next fields hold */
  int takes; int64_t next, log_start, segment_bytes; int32_t epoch; Rules rules;
  Batch *batches; int count, room; int64_t bytes; uint64_t seen; /* by which request */
} Part;
typedef struct Conn {
  int fd, id, is_dead, in_python, is_dirty, served, served_count; /* requests of one version that are not timed yet */ PyObject *transport, *conversation;
  uint8_t *in, *out; size_t have, room_in, at, out_bytes, room_out; double began;
} Conn;
typedef struct { Part *part; uint8_t *batch; uint32_t size; Found found; } Item;
typedef struct { Conn *conn; size_t at; Part *part; } Answer;
typedef struct { PyObject *route, *requests, *received, *sent, *seconds, *counts; int64_t n, received_bytes, sent_bytes; int64_t times[BUCKETS]; double sum; } Route;
typedef struct {
  PyObject_HEAD
  PyObject *glue, *routes, *cache; int ep; Conn **conns; int conn_count; Part *parts[SLOTS]; int part_count; uint64_t tag, stretch, request;
  int64_t now_ms, max_request; double bounds[BUCKETS]; int bound_count; Route route[LAST_VERSION + 1];
  Part *dirty[MOST_BATCHES]; int dirty_count; Conn *touched[EVENTS]; int touched_count;
  Answer *answers; int answer_count, answer_room; int64_t native, python;
} Core;

static PyObject *s_find, *s_end_turn, *s_is_clear, *s_rest, *s_gone, *s_receive, *s_unfinished, *s_facts, *s_route, *s_value, *s_sum, *s_is_active,
    *s_wall, *s_producer;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + (double)t.tv_nsec / 1e9; }

static void *grown(void *old, int *room, int need, size_t each) {
  if (need <= *room) return old;
  *room = need * 2; return realloc(old, (size_t)*room * each);
}

/* -- partitions: found by the request's own bytes; a change of Python's cache empties this one */

static void forget_parts(Core *k) {
  for (int i = 0; i < SLOTS; i++)
    if (k->parts[i]) { Py_DECREF(k->parts[i]->partition); free(k->parts[i]->batches); free(k->parts[i]); k->parts[i] = NULL; }
  k->part_count = 0;
}

static void begin_stretch(Core *k) {
  uint64_t tag = ((PyDictObject *)k->cache)->ma_version_tag;
  if (tag != k->tag) { forget_parts(k); k->tag = tag; }
  k->stretch++;
}

static Part *part_of(Core *k, const uint8_t *key, int key_size, int32_t index, int is_id) {
  if (key_size > 256) return NULL;
  uint64_t hash = 1469598103934665603ull ^ (uint32_t)index;
  for (int i = 0; i < key_size; i++) hash = (hash ^ key[i]) * 1099511628211ull;
  uint32_t at = (uint32_t)(hash ^ hash >> 32) & (SLOTS - 1);
  for (; k->parts[at]; at = (at + 1) & (SLOTS - 1)) {
    Part *p = k->parts[at];
    if (p->hash == hash && p->index == index && p->key_size == key_size && !memcmp(p->key, key, (size_t)key_size)) return p;
  }
  if (k->part_count > SLOTS / 2) return NULL;
  PyObject *name = is_id ? PyBytes_FromStringAndSize((const char *)key, key_size) : PyUnicode_DecodeUTF8((const char *)key, key_size, NULL);
  PyObject *number = PyLong_FromLong(index);
  PyObject *found = name && number ? PyObject_CallMethodObjArgs(k->glue, s_find, name, number, NULL) : NULL;
  Py_XDECREF(name); Py_XDECREF(number);
  if (!found) { PyErr_Clear(); return NULL; }
  if (found == Py_None) { Py_DECREF(found); return NULL; }
  Part *p = calloc(1, sizeof *p);
  p->partition = found; p->hash = hash; p->index = index; p->key_size = key_size; memcpy(p->key, key, (size_t)key_size);
  k->parts[at] = p; k->part_count++;
  return p;
}

/* What Python says of a partition now: (takes, next offset, epoch, log start, segment bytes, max bytes, before, after, compact). */
static int refresh(Core *k, Part *p) {
  if (p->fresh == k->stretch) return p->takes;
  PyObject *facts = PyObject_CallMethodOneArg(k->glue, s_facts, p->partition);
  if (!facts) { PyErr_Clear(); return 0; }
  p->fresh = k->stretch;
  if ((p->takes = facts != Py_None)) {
    p->next = PyLong_AsLongLong(PyTuple_GET_ITEM(facts, 0)); p->epoch = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(facts, 1));
    p->log_start = PyLong_AsLongLong(PyTuple_GET_ITEM(facts, 2)); p->segment_bytes = PyLong_AsLongLong(PyTuple_GET_ITEM(facts, 3));
    p->rules.max_bytes = PyLong_AsLongLong(PyTuple_GET_ITEM(facts, 4)); p->rules.before_ms = PyLong_AsLongLong(PyTuple_GET_ITEM(facts, 5));
    p->rules.after_ms = PyLong_AsLongLong(PyTuple_GET_ITEM(facts, 6)); p->rules.compact = PyTuple_GET_ITEM(facts, 7) == Py_True;
    p->rules.now_ms = k->now_ms;
  }
  Py_DECREF(facts);
  return p->takes;
}

/* -- routes: Python's, as long as nothing stands between a request and the handler */

static Route *route_of(Core *k, int version) {
  PyObject *number = PyLong_FromLong(version), *route = PyDict_GetItem(k->routes, number);
  Py_DECREF(number);
  Route *r = &k->route[version];
  if (!route) return NULL;
  if (route == r->route) return r->requests ? r : NULL;
  if (r->n) return NULL; /* counts of the route before it are not written yet */
  Py_XDECREF(r->route); Py_CLEAR(r->requests); Py_CLEAR(r->received); Py_CLEAR(r->sent); Py_CLEAR(r->seconds); Py_CLEAR(r->counts);
  r->route = Py_NewRef(route);
  PyObject *parts = PyObject_CallMethodOneArg(k->glue, s_route, route);
  if (!parts) { PyErr_Clear(); return NULL; }
  if (parts != Py_None) {
    r->requests = Py_NewRef(PyTuple_GET_ITEM(parts, 0)); r->received = Py_NewRef(PyTuple_GET_ITEM(parts, 1)); r->sent = Py_NewRef(PyTuple_GET_ITEM(parts, 2));
    r->seconds = Py_NewRef(PyTuple_GET_ITEM(parts, 3)); r->counts = Py_NewRef(PyTuple_GET_ITEM(parts, 4));
  }
  Py_DECREF(parts);
  return r->requests ? r : NULL;
}

static int add(PyObject *counter, PyObject *name, int64_t more) {
  PyObject *value = PyObject_GetAttr(counter, name); if (!value) return -1;
  PyObject *sum = PyLong_FromLongLong(PyLong_AsLongLong(value) + more);
  int failed = PyObject_SetAttr(counter, name, sum);
  Py_DECREF(value); Py_DECREF(sum);
  return failed;
}

static int count_up(Core *k) {
  for (int v = FIRST_VERSION; v <= LAST_VERSION; v++) {
    Route *r = &k->route[v];
    if (!r->n) continue;
    if (add(r->requests, s_value, r->n) || add(r->received, s_value, r->received_bytes) || add(r->sent, s_value, r->sent_bytes)) return -1;
    PyObject *sum = PyObject_GetAttr(r->seconds, s_sum); if (!sum) return -1;
    PyObject *more = PyFloat_FromDouble(PyFloat_AsDouble(sum) + r->sum); Py_DECREF(sum);
    int failed = PyObject_SetAttr(r->seconds, s_sum, more); Py_DECREF(more); if (failed) return -1;
    for (int i = 0; i <= k->bound_count; i++)
      if (r->times[i]) { PyList_SetItem(r->counts, i, PyLong_FromLongLong(PyLong_AsLongLong(PyList_GET_ITEM(r->counts, i)) + r->times[i])); r->times[i] = 0; }
    r->n = r->received_bytes = r->sent_bytes = 0; r->sum = 0;
  }
  return 0;
}

static void time_served(Core *k, Conn *c) {
  if (!c->served_count) return;
  Route *r = &k->route[c->served]; double took = now() - c->began; int bucket = 0;
  while (bucket < k->bound_count && took > k->bounds[bucket]) bucket++;
  r->times[bucket] += c->served_count; r->sum += took * c->served_count; c->served_count = 0;
}

/* -- one Produce */

typedef struct { const uint8_t *p, *end; int flexible, failed; } Reader;
static int64_t take_int(Reader *r, int bytes) {
  if (r->end - r->p < bytes) { r->failed = 1; return 0; }
  int64_t v = bytes == 2 ? (int16_t)g16(r->p) : (int32_t)g32(r->p);
  r->p += bytes; return v;
}
static int64_t take_length(Reader *r, int bytes) { /* -1: null */
  if (!r->flexible) return take_int(r, bytes);
  int64_t v = varint(&r->p, r->end, 5); if (v < 0) r->failed = 1;
  return v - 1;
}
static const uint8_t *take_bytes(Reader *r, int64_t n) {
  if (n < 0 || n > r->end - r->p) { r->failed = 1; return r->p; }
  const uint8_t *at = r->p; r->p += n; return at;
}
static void no_tags(Reader *r) { if (r->flexible && (r->p >= r->end || *r->p++)) r->failed = 1; }

typedef struct { const uint8_t *name; int name_size, count; } Topic;

static uint8_t *put_length(uint8_t *o, int flexible, uint32_t n) {
  if (!flexible) return p32(o, n);
  for (n++; n > 127; n >>= 7) *o++ = (uint8_t)(n | 128);
  *o++ = (uint8_t)n; return o;
}

static int produce(Core *k, Conn *c, uint8_t *frame, uint32_t size) {
  Reader r = {frame, frame + size, 0, 0};
  if (size < 14 || g16(frame)) return 0;
  int version = g16(frame + 2);
  if (version < FIRST_VERSION || version > LAST_VERSION) return 0;
  Route *route = route_of(k, version); if (!route) return 0;
  uint32_t correlation = g32(frame + 4);
  r.p += 8; int64_t n = take_int(&r, 2); if (n > 0) take_bytes(&r, n);
  r.flexible = version >= FLEXIBLE_FROM; no_tags(&r);
  if (take_length(&r, 2) != -1 || r.failed) return 0;
  int acks = (int)take_int(&r, 2); take_int(&r, 4);
  if (acks != 0 && acks != 1) return 0;
  int64_t topic_count = take_length(&r, 4);
  Item items[MOST_ITEMS]; Topic topics[MOST_ITEMS]; int item_count = 0; int64_t names = 0;
  if (r.failed || topic_count < 1 || topic_count > MOST_ITEMS) return 0;
  k->request++;
  for (int t = 0; t < topic_count; t++) {
    int64_t name_size = version >= IDS_FROM ? 16 : take_length(&r, 2);
    const uint8_t *name = take_bytes(&r, name_size);
    int64_t count = take_length(&r, 4);
    if (r.failed || count < 1 || item_count + count > MOST_ITEMS) return 0;
    for (int other = 0; other < t; other++)
      if (topics[other].name_size == name_size && !memcmp(topics[other].name, name, (size_t)name_size)) return 0;
    topics[t] = (Topic){name, (int)name_size, (int)count}; names += name_size;
    for (; count; count--) {
      int32_t index = (int32_t)take_int(&r, 4); int64_t bytes = take_length(&r, 4);
      const uint8_t *batch = take_bytes(&r, bytes); no_tags(&r);
      if (r.failed) return 0;
      Part *p = part_of(k, name, (int)name_size, index, version >= IDS_FROM);
      if (!p || p->seen == k->request || !refresh(k, p)) return 0;
      p->seen = k->request;
      Item *item = &items[item_count++];
      *item = (Item){p, (uint8_t *)batch, (uint32_t)bytes, {0}};
      if (bytes > p->segment_bytes || !check(batch, bytes, &p->rules, &item->found)) return 0;
    }
    no_tags(&r);
  }
  no_tags(&r);
  if (r.failed || r.p != r.end) return 0;
  /* Idempotent producers: Python looks the sequence up, and notes the batch as the newest. */
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < item_count; i++) {
      Item *item = &items[i]; if (item->found.producer_id < 0) continue;
      PyObject *data = PyBytes_FromStringAndSize((char *)item->batch, HEADER);
      PyObject *first = PyLong_FromLongLong(item->part->next), *is_note = PyBool_FromLong(pass);
      PyObject *said = PyObject_CallMethodObjArgs(k->glue, s_producer, item->part->partition, data, first, is_note, NULL);
      Py_DECREF(data); Py_DECREF(first); Py_DECREF(is_note);
      if (!said) return -1;
      int is_next = said == Py_True; Py_DECREF(said);
      if (!is_next) return 0;
    }
  /* Nothing can go wrong any more but the write. */
  size_t need = c->out_bytes + 64 + (size_t)names + (size_t)topic_count * 16 + (size_t)item_count * 64;
  if (need > c->room_out) { c->room_out = need * 2; c->out = realloc(c->out, c->room_out); }
  uint8_t *start = c->out + c->out_bytes, *o = start + 4; int i = 0;
  o = p32(o, correlation); if (r.flexible) *o++ = 0;
  o = put_length(o, r.flexible, (uint32_t)topic_count);
  for (int t = 0; t < topic_count; t++) {
    if (version < IDS_FROM) { if (r.flexible) o = put_length(o, 1, (uint32_t)topics[t].name_size); else o = p16(o, topics[t].name_size); }
    memcpy(o, topics[t].name, (size_t)topics[t].name_size); o += topics[t].name_size;
    o = put_length(o, r.flexible, (uint32_t)topics[t].count);
    for (int left = topics[t].count; left; left--, i++) {
      Item *item = &items[i]; Part *p = item->part; int64_t first = p->next, last = first + item->found.count - 1;
      if (!p->count) k->dirty[k->dirty_count++] = p;
      p->batches = grown(p->batches, &p->room, p->count + 1, sizeof(Batch));
      p64(item->batch, first); p32(item->batch + 12, (uint32_t)p->epoch);
      p->batches[p->count++] = (Batch){item->batch, item->size, first, last, item->found.max_timestamp};
      p->bytes += item->size; p->next = last + 1;
      if (acks) {
        k->answers = grown(k->answers, &k->answer_room, k->answer_count + 1, sizeof(Answer));
        k->answers[k->answer_count++] = (Answer){c, (size_t)(o - c->out) + 4, p};
      }
      o = p32(o, (uint32_t)p->index); o = p16(o, 0); o = p64(o, first); o = p64(o, -1);
      if (version >= 5) o = p64(o, p->log_start);
      if (version >= 8) { o = put_length(o, r.flexible, 0); if (r.flexible) *o++ = 0; else o = p16(o, -1); }
      if (r.flexible) *o++ = 0;
    }
    if (r.flexible) *o++ = 0;
  }
  o = p32(o, 0); if (r.flexible) *o++ = 0;
  route->n++; route->received_bytes += size + 4;
  if (c->served != version) { time_served(k, c); c->served = version; }
  c->served_count++;
  if (acks) { p32(start, (uint32_t)(o - start - 4)); c->out_bytes = (size_t)(o - c->out); route->sent_bytes += o - start; }
  c->is_dirty = 1; k->native++;
  return 1;
}

/* -- the end of a stretch: append, write, answer */

static PyObject *appended(Part *p, int from, int to, PyObject *data) {
  Batch *first = &p->batches[from], *last = &p->batches[to - 1], *most = first; int64_t bytes = 0, largest = 0;
  for (int i = from; i < to; i++) { if (p->batches[i].max_timestamp > most->max_timestamp) most = &p->batches[i]; }
  PyObject *marks = to - from > 1 ? PyTuple_New(to - from) : NULL;
  for (int i = from; i < to; i++) {
    Batch *b = &p->batches[i];
    if (marks) PyTuple_SET_ITEM(marks, i - from, Py_BuildValue("(LLLLL)", bytes, b->first, b->last, b->max_timestamp, b->last));
    bytes += b->size; if (b->size > largest) largest = b->size;
  }
  PyObject *made = Py_BuildValue("(ONLLLLLLLO)", p->partition, data, bytes, first->first, last->last, last->last - first->first + 1,
                                 most->max_timestamp, most->last, first->max_timestamp, marks ? marks : Py_None);
  Py_XDECREF(marks);
  return made;
}

static int settle(Core *k) {
  if (!k->dirty_count) return 0;
  PyObject *list = PyList_New(0); int failed = 0;
  for (int d = 0; d < k->dirty_count && !failed; d++) {
    Part *p = k->dirty[d];
    int joins = p->count > 1 && p->bytes <= JOIN_BELOW;
    for (int i = 0; i < p->count && !failed; i += joins ? p->count : 1) {
      PyObject *data;
      if (joins) {
        data = PyBytes_FromStringAndSize(NULL, p->bytes); char *to = PyBytes_AS_STRING(data);
        for (int j = 0; j < p->count; j++) { memcpy(to, p->batches[j].data, (size_t)p->batches[j].size); to += p->batches[j].size; }
      } else data = PyMemoryView_FromMemory((char *)p->batches[i].data, p->batches[i].size, PyBUF_WRITE);
      PyObject *one = appended(p, i, joins ? p->count : i + 1, data);
      failed = !one || PyList_Append(list, one); Py_XDECREF(one);
    }
  }
  PyObject *now_ms = PyLong_FromLongLong(k->now_ms);
  PyObject *failures = failed ? NULL : PyObject_CallMethodObjArgs(k->glue, s_end_turn, list, now_ms, NULL);
  Py_DECREF(list); Py_DECREF(now_ms);
  if (!failures) return -1;
  if (failures != Py_None)
    for (int i = 0; i < k->answer_count; i++) {
      PyObject *code = PyDict_GetItem(failures, k->answers[i].part->partition);
      if (code) { uint8_t *o = k->answers[i].conn->out + k->answers[i].at; p16(o, (int)PyLong_AsLong(code)); p64(o + 2, -1); }
    }
  Py_DECREF(failures);
  for (int d = 0; d < k->dirty_count; d++) { k->dirty[d]->count = 0; k->dirty[d]->bytes = 0; }
  k->dirty_count = k->answer_count = 0;
  for (int i = 0; i < k->touched_count; i++) {
    Conn *c = k->touched[i];
    if (!c->is_dirty) continue;
    c->is_dirty = 0; time_served(k, c);
    if (c->is_dead || !c->out_bytes) { c->out_bytes = 0; continue; }
    ssize_t sent = send(c->fd, c->out, c->out_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < (ssize_t)c->out_bytes) {
      size_t from = sent > 0 ? (size_t)sent : 0; c->in_python = 1;
      PyObject *rest = PyBytes_FromStringAndSize((char *)c->out + from, (Py_ssize_t)(c->out_bytes - from));
      PyObject *done = PyObject_CallMethodOneArg(c->transport, s_rest, rest); Py_DECREF(rest);
      if (!done) return -1;
      Py_DECREF(done);
    }
    c->out_bytes = 0;
  }
  return count_up(k);
}

static int to_python(Core *k, Conn *c, const uint8_t *data, size_t size) {
  if (settle(k)) return -1;
  PyObject *bytes = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
  PyObject *done = PyObject_CallMethodOneArg(c->conversation, s_receive, bytes);
  Py_DECREF(bytes); c->in_python = 1; k->python++;
  if (!done) return -1;
  Py_DECREF(done); begin_stretch(k);
  return 0;
}

static int is_clear(Conn *c) { /* whether nothing of this peer waits in Python */
  PyObject *said = PyObject_CallMethodNoArgs(c->transport, s_is_clear); if (!said) return -1;
  int clear = said == Py_True; Py_DECREF(said); return clear;
}

static int serve(Core *k, Conn *c) {
  ssize_t got = recv(c->fd, c->in + c->have, c->room_in - c->have, MSG_DONTWAIT);
  if (got <= 0) {
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (settle(k)) return -1;
    PyObject *done = PyObject_CallMethodNoArgs(c->transport, s_gone); if (!done) return -1;
    Py_DECREF(done); return 0;
  }
  c->have += (size_t)got; c->began = now();
  if (PyObject_SetAttr(c->conversation, s_is_active, Py_True)) return -1;
  if (c->in_python) { int clear = is_clear(c); if (clear < 0) return -1; c->in_python = !clear; }
  size_t at = 0;
  while (c->have - at >= 4 && !c->is_dead) {
    int32_t size = (int32_t)g32(c->in + at);
    if (size <= 0 || size > k->max_request) { if (to_python(k, c, c->in + at, c->have - at)) return -1; at = c->have; break; }
    if (c->have - at < 4 + (size_t)size) break;
    int done = 0;
    if (!c->in_python) {
      if (k->dirty_count + MOST_ITEMS > MOST_BATCHES && settle(k)) return -1;
      if ((done = produce(k, c, c->in + at + 4, (uint32_t)size)) < 0) return -1;
    }
    if (!done && to_python(k, c, c->in + at, 4 + (size_t)size)) return -1;
    at += 4 + (size_t)size;
  }
  c->at = at;
  return 0;
}

/* Moves what is left to the front, once nothing before it is needed, and makes room for the rest of its frame. */
static int make_room(Conn *c) {
  size_t rest = c->have - c->at; int had = c->at == 0 && c->have > ROOM;
  if (c->at && rest) memmove(c->in, c->in + c->at, rest);
  c->have = rest; c->at = 0;
  if (rest >= 4) {
    size_t need = g32(c->in) + 4 + ROOM, most = 16 * (rest > ROOM ? rest : ROOM);
    if (need > most) need = most;
    if (need > c->room_in) { c->room_in = need; c->in = realloc(c->in, need); }
  }
  if (rest > ROOM || had) {
    PyObject *bytes = PyLong_FromSize_t(rest), *done = PyObject_CallMethodOneArg(c->transport, s_unfinished, bytes);
    Py_DECREF(bytes); if (!done) return -1;
    Py_DECREF(done);
  }
  return 0;
}

static void drop(Core *k, Conn *c) {
  k->conns[c->id] = NULL; epoll_ctl(k->ep, EPOLL_CTL_DEL, c->fd, NULL); close(c->fd);
  Py_DECREF(c->transport); Py_DECREF(c->conversation); free(c->in); free(c->out); free(c);
}

static PyObject *turn(Core *k, PyObject *none) {
  struct epoll_event events[EVENTS]; int n = epoll_wait(k->ep, events, EVENTS, 0);
  if (n <= 0) Py_RETURN_NONE;
  PyObject *wall = PyObject_CallMethodNoArgs(k->glue, s_wall); if (!wall) return NULL;
  k->now_ms = PyLong_AsLongLong(wall); Py_DECREF(wall);
  begin_stretch(k); int failed = 0;
  for (int i = 0; i < n; i++) k->touched[i] = events[i].data.ptr; /* which `forget` leaves to the end of the turn */
  k->touched_count = n;
  for (int i = 0; i < n && !failed; i++) if (!k->touched[i]->is_dead) failed = serve(k, k->touched[i]);
  if (!failed) failed = settle(k);
  for (int i = 0; i < k->touched_count && !failed; i++) if (!k->touched[i]->is_dead) failed = make_room(k->touched[i]);
  for (int i = 0; i < k->touched_count; i++) if (k->touched[i]->is_dead) drop(k, k->touched[i]);
  k->touched_count = 0;
  if (failed) return NULL;
  Py_RETURN_NONE;
}

/* -- the type */

static PyObject *adopt(Core *k, PyObject *args) {
  int fd; PyObject *transport, *conversation; if (!PyArg_ParseTuple(args, "iOO", &fd, &transport, &conversation)) return NULL;
  int id = 0; while (id < k->conn_count && k->conns[id]) id++;
  if (id == k->conn_count) { k->conns = realloc(k->conns, sizeof(Conn *) * (size_t)(id + 64)); memset(k->conns + id, 0, sizeof(Conn *) * 64); k->conn_count += 64; }
  Conn *c = calloc(1, sizeof *c);
  c->fd = dup(fd); c->id = id; c->transport = Py_NewRef(transport); c->conversation = Py_NewRef(conversation); c->in_python = 1;
  c->room_in = ROOM; c->in = malloc(ROOM); k->conns[id] = c;
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c}; epoll_ctl(k->ep, EPOLL_CTL_ADD, c->fd, &e);
  return PyLong_FromLong(id);
}

static Conn *conn_of(Core *k, PyObject *id) { long n = PyLong_AsLong(id); return n >= 0 && n < k->conn_count ? k->conns[n] : NULL; }

static PyObject *forget(Core *k, PyObject *id) {
  Conn *c = conn_of(k, id); if (!c) Py_RETURN_NONE;
  c->is_dead = 1;
  for (int i = 0; i < k->touched_count; i++) if (k->touched[i] == c) Py_RETURN_NONE; /* at the end of the turn */
  drop(k, c);
  Py_RETURN_NONE;
}

static PyObject *listen_to(Core *k, PyObject *args) { /* the bytes that have come already stay where they are */
  int id, reads; if (!PyArg_ParseTuple(args, "ip", &id, &reads)) return NULL;
  Conn *c = id >= 0 && id < k->conn_count ? k->conns[id] : NULL; if (!c) Py_RETURN_NONE;
  struct epoll_event e = {.events = reads ? EPOLLIN : 0, .data.ptr = c}; epoll_ctl(k->ep, EPOLL_CTL_MOD, c->fd, &e); c->in_python = 1;
  Py_RETURN_NONE;
}

static PyObject *counts(Core *k, PyObject *none) { return Py_BuildValue("(LL)", k->native, k->python); }
static PyObject *core_fileno(Core *k, PyObject *none) { return PyLong_FromLong(k->ep); }

static int init(Core *k, PyObject *args, PyObject *named) {
  PyObject *bounds; if (!PyArg_ParseTuple(args, "OO!O!LO!", &k->glue, &PyDict_Type, &k->routes, &PyDict_Type, &k->cache, &k->max_request, &PyTuple_Type, &bounds)) return -1;
  Py_INCREF(k->glue); Py_INCREF(k->routes); Py_INCREF(k->cache);
  k->bound_count = (int)PyTuple_GET_SIZE(bounds); if (k->bound_count >= BUCKETS) { PyErr_SetString(PyExc_ValueError, "too many bounds"); return -1; }
  for (int i = 0; i < k->bound_count; i++) k->bounds[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(bounds, i));
  k->ep = epoll_create1(EPOLL_CLOEXEC);
  return 0;
}

/* For tests: what the core says of one batch, None where it leaves the decision to Python. */
static PyObject *verdict(PyObject *self, PyObject *args) {
  Py_buffer data; Rules rules; Found found;
  if (!PyArg_ParseTuple(args, "y*LLLLp", &data, &rules.max_bytes, &rules.now_ms, &rules.before_ms, &rules.after_ms, &rules.compact)) return NULL;
  int passes = check(data.buf, data.len, &rules, &found); PyBuffer_Release(&data);
  if (!passes) Py_RETURN_NONE;
  return Py_BuildValue("(LLL)", found.count, found.max_timestamp, found.producer_id);
}

static PyMethodDef methods[] = {{"turn", (PyCFunction)turn, METH_NOARGS, ""}, {"adopt", (PyCFunction)adopt, METH_VARARGS, ""},
  {"forget", (PyCFunction)forget, METH_O, ""}, {"listen_to", (PyCFunction)listen_to, METH_VARARGS, ""}, {"counts", (PyCFunction)counts, METH_NOARGS, ""},
  {"fileno", (PyCFunction)core_fileno, METH_NOARGS, ""}, {0}};
static PyTypeObject type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "native_core.Core", .tp_basicsize = sizeof(Core), .tp_flags = Py_TPFLAGS_DEFAULT,
  .tp_new = PyType_GenericNew, .tp_init = (initproc)init, .tp_methods = methods};
static PyMethodDef functions[] = {{"verdict", verdict, METH_VARARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native_core", "", -1, functions};

PyMODINIT_FUNC PyInit_native_core(void) {
  crc_prepare();
  s_find = PyUnicode_InternFromString("find"); s_end_turn = PyUnicode_InternFromString("end_turn"); s_is_clear = PyUnicode_InternFromString("is_clear");
  s_rest = PyUnicode_InternFromString("send_rest"); s_gone = PyUnicode_InternFromString("gone"); s_receive = PyUnicode_InternFromString("receive");
  s_unfinished = PyUnicode_InternFromString("unfinished"); s_facts = PyUnicode_InternFromString("facts"); s_route = PyUnicode_InternFromString("route");
  s_value = PyUnicode_InternFromString("value"); s_sum = PyUnicode_InternFromString("sum"); s_is_active = PyUnicode_InternFromString("is_active");
  s_wall = PyUnicode_InternFromString("wall_ms"); s_producer = PyUnicode_InternFromString("producer");
  if (PyType_Ready(&type)) return NULL;
  PyObject *made = PyModule_Create(&module);
  if (made) PyModule_AddObjectRef(made, "Core", (PyObject *)&type);
  return made;
}
