/* The floor: the least that a server of this protocol can do for a load of the benchmarks, on one thread.

       floor PORT FOLDER

   It reads frames, checks each batch (checksum, records, times), numbers it, writes what one turn of the loop brought with one call
   for each partition, and responds. It serves Produce v3 and v4, Fetch v4, ListOffsets v1, Metadata v1, ApiVersions v0, CreateTopics
   v2 and DeleteTopics v1, each for one topic of one partition, as the load generator sends them, with one Fetch in flight. It has no settings, limits, metrics,
   groups, access rules or recovery, and believes the frames it receives: what a broker adds to its figures is the broker's own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "../native_core/batch.h" /* the numbers, the checksum and the walk over records */

enum { PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 18, CREATE_TOPICS, DELETE_TOPICS };
enum { INVALID_BATCH = 2, EVENTS = 256, MOST_PIECES = 256, FIRST_ROOM = 65536, MOST_NAME = 250, LARGEST_BATCH = 4 << 20 };

typedef struct { int64_t first, at, size, count, max_timestamp; } Batch;
typedef struct Topic {
  struct Topic *next; char name[MOST_NAME]; int name_size, fd, piece_count, is_dirty;
  int64_t end, size; /* the offset and the place behind what is written or waits */
  int64_t written;
  Batch *batches; int count, room;
  struct iovec pieces[MOST_PIECES]; /* of requests that are still in the buffers of their connections */
} Topic;
typedef struct Conn { int fd, events; uint8_t *in, *out; size_t have, in_room, out_size, out_room, sent; int file; off_t from; size_t left; } Conn;

static Topic *topics, *dirty[EVENTS * 4];
static int dirty_count, port;
static const char *folder;

static void fail(const char *what) { perror(what); exit(1); }
static void *room_for(void *old, size_t bytes) { void *made = realloc(old, bytes); if (!made) fail("memory"); return made; }

/* -- topics */

static Topic *find(const uint8_t *name, int size) {
  for (Topic *one = topics; one; one = one->next)
    if (one->name_size == size && !memcmp(one->name, name, (size_t)size)) return one;
  return NULL;
}

static Topic *create(const uint8_t *name, int size) {
  char path[4096];
  Topic *made = calloc(1, sizeof *made);
  if (!made || size >= MOST_NAME) fail("a topic");
  memcpy(made->name, name, (size_t)size); made->name_size = size;
  snprintf(path, sizeof path, "%s/%s-0", folder, made->name); mkdir(path, 0755);
  snprintf(path, sizeof path, "%s/%s-0/00000000000000000000.log", folder, made->name);
  if ((made->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0) fail(path);
  made->next = topics; topics = made;
  return made;
}

static void delete(const uint8_t *name, int size) {
  char path[4096];
  for (Topic **at = &topics; *at; at = &(*at)->next) {
    Topic *one = *at;
    if (one->name_size != size || memcmp(one->name, name, (size_t)size)) continue;
    *at = one->next;
    snprintf(path, sizeof path, "%s/%s-0/00000000000000000000.log", folder, one->name); unlink(path);
    snprintf(path, sizeof path, "%s/%s-0", folder, one->name); rmdir(path);
    close(one->fd); free(one->batches); free(one);
    return;
  }
}

static void write_out(Topic *t) {
  struct iovec *at = t->pieces;
  while (t->piece_count) {
    ssize_t done = pwritev(t->fd, at, t->piece_count, t->written);
    if (done < 0) fail("write");
    for (t->written += done; t->piece_count && (size_t)done >= at->iov_len; at++, t->piece_count--) done -= (ssize_t)at->iov_len;
    if (t->piece_count) { at->iov_base = (uint8_t *)at->iov_base + done; at->iov_len -= (size_t)done; }
  }
  t->is_dirty = 0;
}

static void write_all(void) { while (dirty_count) write_out(dirty[--dirty_count]); }

static int append(Topic *t, uint8_t *b, int64_t size, int64_t *base) {
  int64_t lowest, highest, count; int null_key;
  if (size < HEADER || b[16] != 2 || g32(b + 8) + 12 != size || crc32c(b + 21, (size_t)size - 21) != g32(b + 17)) return INVALID_BATCH;
  count = (int32_t)g32(b + 57);
  if (count <= 0 || !walk(b + HEADER, b + size, count, &lowest, &highest, &null_key)) return INVALID_BATCH;
  *base = t->end; p64(b, t->end); p32(b + 12, 0);
  if (t->count == t->room) t->batches = room_for(t->batches, (size_t)(t->room = t->room ? t->room * 2 : 64) * sizeof *t->batches);
  t->batches[t->count++] = (Batch){t->end, t->size, size, count, g64(b + 27) + highest};
  if (t->piece_count == MOST_PIECES) write_all();
  if (!t->is_dirty) { t->is_dirty = 1; dirty[dirty_count++] = t; }
  t->pieces[t->piece_count++] = (struct iovec){b, (size_t)size};
  t->end += count; t->size += size;
  return 0;
}

/* The first batch that ends behind the offset. */
static int batch_of(const Topic *t, int64_t offset) {
  int low = 0, high = t->count;
  while (low < high) { int middle = (low + high) / 2; if (t->batches[middle].first + t->batches[middle].count <= offset) low = middle + 1; else high = middle; }
  return low;
}

/* The first record that is not before the time, as the loads write topics: in the order of their times. */
static int64_t look_up(const Topic *t, int64_t time, int64_t *found_time) {
  static uint8_t data[LARGEST_BATCH];
  int low = 0, high = t->count;
  while (low < high) { int middle = (low + high) / 2; if (t->batches[middle].max_timestamp < time) low = middle + 1; else high = middle; }
  *found_time = -1;
  if (low == t->count) return -1;
  const Batch *one = &t->batches[low];
  if (one->size > LARGEST_BATCH || pread(t->fd, data, (size_t)one->size, one->at) != one->size) fail("read");
  const uint8_t *p = data + HEADER, *end = data + one->size;
  for (int64_t index = 0; index < one->count; index++) {
    int64_t size = varint(&p, end, 5) >> 1;
    const uint8_t *stop = p + size;
    p++;
    *found_time = g64(data + 27) + unzigzag(varint(&p, end, 9));
    if (*found_time >= time) return one->first + index;
    p = stop;
  }
  return -1;
}

/* -- requests: each handler gets what follows the header, and adds to the response, which has room */

static uint8_t *text_to(uint8_t *o, const void *text, int size) { o = p16(o, size); memcpy(o, text, (size_t)size); return o + size; }
static uint8_t *past_text(uint8_t *p) { int size = (int16_t)g16(p); return p + 2 + (size > 0 ? size : 0); }

/* The count of topics is one; moves behind its name. */
static Topic *topic_in(uint8_t **p, uint8_t **o) {
  uint8_t *name = *p + 4;
  int size = g16(name);
  *p = past_text(name);
  *o = text_to(p32(*o, 1), name + 2, size);
  return find(name + 2, size);
}

static uint8_t *produced(uint8_t *p, uint8_t *o) {
  p = past_text(p) + 6; /* transactional id, acks, timeout */
  Topic *t = topic_in(&p, &o);
  int64_t base = -1, size = (int32_t)g32(p + 8);
  int error = t ? append(t, p + 12, size, &base) : INVALID_BATCH;
  o = p64(p64(p16(p32(p32(o, 1), g32(p + 4)), error), base), -1);
  return p32(o, 0);
}

static uint8_t *fetched(Conn *c, uint8_t *p, uint8_t *o) {
  p += 17; o = p32(o, 0); /* replica, wait, least and most bytes, isolation; throttle time */
  Topic *t = topic_in(&p, &o);
  if (!t) fail("Fetch of an unknown topic");
  if (t->is_dirty) write_all();
  int64_t offset = g64(p + 8), most = (int32_t)g32(p + 16);
  int at = batch_of(t, offset);
  c->file = t->fd; c->from = at < t->count ? t->batches[at].at : t->size;
  c->left = (size_t)(t->size - c->from < most ? t->size - c->from : most);
  o = p64(p64(p16(p32(p32(o, 1), 0), 0), t->end), t->end);
  return p32(p32(o, UINT32_MAX), (uint32_t)c->left);
}

static uint8_t *offsets_listed(uint8_t *p, uint8_t *o) {
  p += 4;
  Topic *t = topic_in(&p, &o);
  if (!t) fail("ListOffsets of an unknown topic");
  if (t->is_dirty) write_all();
  int64_t time = g64(p + 8), found_time = -1;
  int64_t offset = time == -1 ? t->end : time == -2 ? 0 : look_up(t, time, &found_time);
  return p64(p64(p16(p32(p32(o, 1), 0), 0), found_time), offset);
}

static uint8_t *described(uint8_t *p, uint8_t *o) {
  o = p16(p32(text_to(p32(p32(o, 1), 1), "127.0.0.1", 9), (uint32_t)port), -1);
  o = p32(o, 1);
  uint8_t *count_at = o; uint32_t count = 0;
  o = p32(o, 0);
  for (Topic *one = topics; one; one = one->next, count++) {
    o = text_to(p16(o, 0), one->name, one->name_size); *o++ = 0;
    o = p32(p32(p16(p32(o, 1), 0), 0), 1); /* one partition, which is led by broker 1 */
    o = p32(p32(p32(p32(o, 1), 1), 1), 1);
  }
  (void)p; p32(count_at, count);
  return o;
}

static uint8_t *versions_listed(uint8_t *o) {
  static const int SERVED[][3] = {{PRODUCE, 3, 4}, {FETCH, 4, 4}, {LIST_OFFSETS, 1, 1}, {METADATA, 1, 1}, {API_VERSIONS, 0, 0}, {CREATE_TOPICS, 2, 2}, {DELETE_TOPICS, 1, 1}};
  int count = sizeof SERVED / sizeof *SERVED;
  o = p32(p16(o, 0), (uint32_t)count);
  for (int i = 0; i < count; i++) o = p16(p16(p16(o, SERVED[i][0]), SERVED[i][1]), SERVED[i][2]);
  return o;
}

static uint8_t *created(uint8_t *p, uint8_t *o) {
  uint8_t *name = p + 4;
  o = p32(o, 0); /* throttle time */
  Topic *t = topic_in(&p, &o);
  if (!t) create(name + 2, g16(name));
  return p16(p16(o, 0), -1);
}

static uint8_t *deleted(uint8_t *p, uint8_t *o) {
  uint8_t *name = p + 4;
  write_all();
  o = p32(o, 0); /* throttle time */
  topic_in(&p, &o);
  delete(name + 2, g16(name));
  return p16(o, 0);
}

static int serve(Conn *c, uint8_t *frame) {
  int api = g16(frame);
  if (c->out_room - c->out_size < FIRST_ROOM) c->out = room_for(c->out, c->out_room += 2 * FIRST_ROOM);
  uint8_t *begin = c->out + c->out_size, *p = past_text(frame + 8), *o = p32(begin + 4, g32(frame + 4));
  switch (api) {
    case PRODUCE: o = produced(p, o); break;
    case FETCH: o = fetched(c, p, o); break;
    case LIST_OFFSETS: o = offsets_listed(p, o); break;
    case METADATA: o = described(p, o); break;
    case API_VERSIONS: o = versions_listed(o); break;
    case CREATE_TOPICS: o = created(p, o); break;
    case DELETE_TOPICS: o = deleted(p, o); break;
    default: return 0;
  }
  p32(begin, (uint32_t)(o - begin - 4) + (uint32_t)(api == FETCH ? c->left : 0));
  c->out_size = (size_t)(o - c->out);
  return 1;
}

/* -- connections */

static void watch(int ep, Conn *c, int events) {
  struct epoll_event wanted = {.events = (uint32_t)events, .data.ptr = c};
  if (c->events == events) return;
  if (epoll_ctl(ep, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &wanted)) fail("epoll");
  c->events = events;
}

static void accept_all(int ep, int listener) {
  int fd, on = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    Conn *c = calloc(1, sizeof *c);
    if (!c) fail("a connection");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->fd = fd; c->in = room_for(NULL, c->in_room = FIRST_ROOM);
    watch(ep, c, EPOLLIN);
  }
}

/* One read, and all requests that are whole then; a Fetch waits for its file to be sent. 0: the connection ends. */
static int receive(Conn *c) {
  ssize_t got = read(c->fd, c->in + c->have, c->in_room - c->have);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  c->have += (size_t)got;
  size_t at = 0, need = 4;
  while (c->have - at >= 4 && c->have - at >= (need = 4 + g32(c->in + at))) {
    if (!serve(c, c->in + at + 4)) return 0;
    at += need; need = 4;
  }
  if (at == c->have) { c->have = 0; return 1; }
  if (at || need > c->in_room) write_all(); /* what waits lies where the rest moves to */
  memmove(c->in, c->in + at, c->have -= at);
  if (need > c->in_room) c->in = room_for(c->in, c->in_room = need + FIRST_ROOM);
  return 1;
}

/* 0: the socket is full. */
static int send_out(Conn *c) {
  while (c->sent < c->out_size) {
    ssize_t done = send(c->fd, c->out + c->sent, c->out_size - c->sent, MSG_NOSIGNAL | (c->left ? MSG_MORE : 0));
    if (done < 0) return errno != EAGAIN;
    c->sent += (size_t)done;
  }
  c->sent = c->out_size = 0;
  while (c->left) {
    ssize_t done = sendfile(c->fd, c->file, &c->from, c->left);
    if (done <= 0) return errno != EAGAIN;
    c->left -= (size_t)done;
  }
  return 1;
}

static void end(Conn *c) { close(c->fd); free(c->in); free(c->out); free(c); }

static void serve_for_ever(int ep, int listener) {
  struct epoll_event events[EVENTS];
  for (;;) {
    int count = epoll_wait(ep, events, EVENTS, -1), waiting = 0;
    Conn *answered[EVENTS], *ended[EVENTS];
    int ended_count = 0;
    for (int i = 0; i < count; i++) {
      Conn *c = events[i].data.ptr;
      if (!c) { accept_all(ep, listener); continue; }
      if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !receive(c)) { ended[ended_count++] = c; continue; }
      answered[waiting++] = c;
    }
    write_all();
    for (int i = 0; i < waiting; i++) watch(ep, answered[i], send_out(answered[i]) ? EPOLLIN : EPOLLOUT);
    for (int i = 0; i < ended_count; i++) end(ended[i]);
  }
}

int main(int count, char **values) {
  if (count != 3) { fprintf(stderr, "floor PORT FOLDER\n"); return 2; }
  port = atoi(values[1]); folder = values[2];
  signal(SIGPIPE, SIG_IGN);
  crc_prepare();
  int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 1024)) fail("listen");
  struct epoll_event first = {.events = EPOLLIN, .data.ptr = NULL};
  if (epoll_ctl(ep, EPOLL_CTL_ADD, listener, &first)) fail("epoll");
  serve_for_ever(ep, listener);
}
