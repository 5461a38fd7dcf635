/* A streaming completions server whose timing is known: first token T ms after a request was read, then one every I ms,
 * each in a write of its own, and a log of when each write had returned.
 *
 *   truth_server TTFT_MS ITL_MS [LOG]
 *
 * One thread on epoll. It prints its port on standard output, ends on SIGTERM and writes the log then, so that nothing
 * is written to disk while streams run. All times are CLOCK_MONOTONIC ns. The event shapes are those of vLLM.
 */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS = 1024, BATCH = 16, READ_BYTES = 65536, ID_BYTES = 160, LAST_BYTES = 1536 };
enum status { OPEN, OK, BLOCKED, ABORTED };
static const char *const STATUS_NAMES[] = { "unfinished", "ok", "blocked", "aborted" };

/* One request: its row of the log, and the bytes of its events. */
struct stream {
  char id[ID_BYTES];
  int64_t kernel_ns, received_ns, first_due_ns;
  int tokens, sent;
  int64_t *sends_ns;
  enum status status;
  /* A token event in its chunk; the two places that hold the token's four digits. */
  char *event;
  size_t event_bytes, text_at, id_at;
  /* Token ids of the prompt as they came: the first event repeats them. */
  char *prompt;
  size_t prompt_bytes;
  int prompt_tokens;
};

struct connection {
  int fd;
  char *in;
  size_t in_bytes, in_room;
  /* What the kernel had no room for. */
  char *out;
  size_t out_bytes, out_room;
  struct stream *stream;
  int64_t due_ns;
  size_t heap_at;
};

static int64_t ttft_ns, itl_ns;
static int epoll_fd, keep_log;

/* ---- streams by when their next token is due: a binary heap ---- */

static struct connection **heap;
static size_t heap_size, heap_room;

static void heap_put(size_t at, struct connection *one) {
  heap[at] = one;
  one->heap_at = at;
}

static void heap_up(size_t at) {
  struct connection *one = heap[at];
  for (; at > 0 && one->due_ns < heap[(at - 1) / 2]->due_ns; at = (at - 1) / 2) heap_put(at, heap[(at - 1) / 2]);
  heap_put(at, one);
}

static void heap_down(size_t at) {
  struct connection *one = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap_size) break;
    if (child + 1 < heap_size && heap[child + 1]->due_ns < heap[child]->due_ns) child++;
    if (heap[child]->due_ns >= one->due_ns) break;
    heap_put(at, heap[child]);
    at = child;
  }
  heap_put(at, one);
}

static void heap_add(struct connection *one) {
  if (heap_size == heap_room) {
    heap_room = heap_room ? 2 * heap_room : 1024;
    heap = grown(heap, heap_room * sizeof *heap);
  }
  heap[heap_size++] = one;
  heap_up(heap_size - 1);
}

static void heap_remove(struct connection *one) {
  size_t at = one->heap_at;
  struct connection *last = heap[--heap_size];
  if (last == one) return;
  heap[at] = last;
  heap_up(at);
  heap_down(last->heap_at);
}

/* ---- the log ---- */

static struct stream **rows;
static size_t row_count, row_room;

static void keep_row(struct stream *stream) {
  free(stream->event);
  free(stream->prompt);
  stream->event = stream->prompt = NULL;
  if (!keep_log) {
    free(stream->sends_ns);
    free(stream);
    return;
  }
  if (row_count == row_room) {
    row_room = row_room ? 2 * row_room : 1024;
    rows = grown(rows, row_room * sizeof *rows);
  }
  rows[row_count++] = stream;
}

static void write_log(const char *path) {
  FILE *file = fopen(path, "w");
  if (file == NULL) die(path);
  fputs("x_request_id,t_kernel_rx_ns,t_request_complete_ns,t_first_due_ns,n_tokens,status,sends_ns\n", file);
  for (size_t row = 0; row < row_count; row++) {
    struct stream *stream = rows[row];
    fprintf(file, "%s,", stream->id);
    if (stream->kernel_ns > 0) fprintf(file, "%lld", (long long)stream->kernel_ns);
    fprintf(file, ",%lld,%lld,%d,%s,", (long long)stream->received_ns, (long long)stream->first_due_ns, stream->sent,
            STATUS_NAMES[stream->status]);
    for (int i = 0; i < stream->sent; i++) fprintf(file, i ? ";%lld" : "%lld", (long long)stream->sends_ns[i]);
    fputc('\n', file);
  }
  if (fclose(file) != 0) die(path);
}

/* ---- connections ---- */

static void watch(struct connection *one, int operation, uint32_t events) {
  struct epoll_event event = { .events = events, .data.ptr = one };
  if (epoll_ctl(epoll_fd, operation, one->fd, &event) != 0) die("epoll_ctl");
}

static void finish(struct connection *one, enum status status) {
  struct stream *stream = one->stream;
  if (stream == NULL) return;
  if (stream->status == OPEN) stream->status = status;
  one->stream = NULL;
  keep_row(stream);
}

static void drop(struct connection *one) {
  if (one->stream != NULL) heap_remove(one);
  finish(one, ABORTED);
  close(one->fd);
  free(one->in);
  free(one->out);
  free(one);
}

/* Keeps the order of bytes: behind held ones everything is held. */
static void hold(struct connection *one, const char *bytes, size_t length) {
  if (one->out_bytes == 0) watch(one, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  if (one->out_bytes + length > one->out_room) {
    one->out_room = 2 * (one->out_bytes + length);
    one->out = grown(one->out, one->out_room);
  }
  memcpy(one->out + one->out_bytes, bytes, length);
  one->out_bytes += length;
  if (one->stream != NULL) one->stream->status = BLOCKED;
}

/* A peer that is gone shows when its socket is read next. */
static void put(struct connection *one, const char *bytes, size_t length) {
  ssize_t taken = one->out_bytes > 0 ? 0 : send(one->fd, bytes, length, MSG_NOSIGNAL);
  if (taken < 0 && errno != EAGAIN && errno != EINTR) return;
  if (taken < 0) taken = 0;
  if ((size_t)taken < length) hold(one, bytes + taken, length - (size_t)taken);
}

static void flush_held(struct connection *one) {
  ssize_t taken = send(one->fd, one->out, one->out_bytes, MSG_NOSIGNAL);
  if (taken <= 0) return;
  one->out_bytes -= (size_t)taken;
  memmove(one->out, one->out + taken, one->out_bytes);
  if (one->out_bytes == 0) watch(one, EPOLL_CTL_MOD, EPOLLIN);
}

/* ---- events ---- */

static int token_at(int index) { return 1000 + index % 24; }

static size_t chunk(char *to, const char *text, size_t length) {
  size_t at = (size_t)sprintf(to, "%zx\r\n", length);
  memcpy(to + at, text, length);
  memcpy(to + at + length, "\r\n", 2);
  return at + length + 2;
}

static size_t token_event(char *to, struct stream *stream, int index, const char *finish, const char *prompt) {
  return (size_t)sprintf(to,
    "data: {\"id\":\"cmpl-%s\",\"object\":\"text_completion\",\"created\":1764547200,\"model\":\"bench\",\"choices\":"
    "[{\"index\":0,\"text\":\" t%d\",\"logprobs\":null,\"finish_reason\":%s,\"stop_reason\":null,"
    "\"prompt_token_ids\":%s,\"token_ids\":[%d]}]}\n\n", stream->id, token_at(index), finish, prompt, token_at(index));
}

static size_t last_chunks(char *to, struct stream *stream) {
  char text[LAST_BYTES];
  size_t at = chunk(to, text, token_event(text, stream, stream->tokens - 1, "\"length\"", "null"));
  int usage = sprintf(text,
    "data: {\"id\":\"cmpl-%s\",\"object\":\"text_completion\",\"created\":1764547200,\"model\":\"bench\",\"choices\":[],"
    "\"usage\":{\"prompt_tokens\":%d,\"total_tokens\":%d,\"completion_tokens\":%d}}\n\n", stream->id,
    stream->prompt_tokens, stream->prompt_tokens + stream->tokens, stream->tokens);
  at += chunk(to + at, text, (size_t)usage);
  at += chunk(to + at, "data: [DONE]\n\n", 14);
  memcpy(to + at, "0\r\n\r\n", 5);
  return at + 5;
}

static void make_event(struct stream *stream) {
  char text[LAST_BYTES];
  stream->event = allocate(LAST_BYTES);
  stream->event_bytes = chunk(stream->event, text, token_event(text, stream, 0, "null", "null"));
  stream->text_at = (size_t)(strstr(stream->event, "\" t") + 3 - stream->event);
  stream->id_at = (size_t)(strstr(stream->event, "\"token_ids\":[") + 13 - stream->event);
}

static void put_first(struct connection *one) {
  struct stream *stream = one->stream;
  char *prompt = allocate(stream->prompt_bytes + 3);
  sprintf(prompt, "[%s]", stream->prompt);
  char *text = allocate(stream->prompt_bytes + LAST_BYTES), *bytes = allocate(stream->prompt_bytes + 2 * LAST_BYTES);
  put(one, bytes, chunk(bytes, text, token_event(text, stream, 0, "null", prompt)));
  free(prompt);
  free(text);
  free(bytes);
}

/* The last token takes usage, end marker and end of the body along. */
static void put_token(struct connection *one) {
  struct stream *stream = one->stream;
  if (stream->sent == stream->tokens - 1) {
    char bytes[3 * LAST_BYTES];
    put(one, bytes, last_chunks(bytes, stream));
  } else if (stream->sent == 0) put_first(one);
  else {
    char digits[8];
    sprintf(digits, "%d", token_at(stream->sent));
    memcpy(stream->event + stream->text_at, digits, 4);
    memcpy(stream->event + stream->id_at, digits, 4);
    put(one, stream->event, stream->event_bytes);
  }
  int64_t sent_ns = now_ns();
  if (stream->sends_ns != NULL) stream->sends_ns[stream->sent] = sent_ns;
  stream->sent++;
}

/* Sends what is due, but not more than a few tokens before new requests are looked for. Returns 1 if more is due. */
static int send_due(void) {
  for (int count = 0; count < BATCH; count++) {
    if (heap_size == 0 || heap[0]->due_ns > now_ns()) return 0;
    struct connection *one = heap[0];
    put_token(one);
    if (one->stream->sent == one->stream->tokens) {
      heap_remove(one);
      finish(one, OK);
    } else {
      one->due_ns += itl_ns;
      heap_down(0);
    }
  }
  return heap_size > 0 && heap[0]->due_ns <= now_ns();
}

/* ---- requests ---- */

static const char *header(const char *head, const char *name) {
  const char *at = strcasestr(head, name);
  return at == NULL ? NULL : at + strlen(name) + strspn(at + strlen(name), " ");
}

static const char STREAM_HEAD[] =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
static const char NO_SUCH_PAGE[] = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

static void start_stream(struct connection *one, const char *head, const char *body, int64_t kernel_ns, int64_t at_ns) {
  struct stream *stream = allocate(sizeof *stream);
  const char *id = header(head, "\r\nx-request-id:");
  if (id != NULL) snprintf(stream->id, ID_BYTES, "%.*s", (int)strcspn(id, "\r,;\""), id);
  const char *tokens = strstr(body, "\"max_tokens\":"), *prompt = strstr(body, "\"prompt\":[");
  stream->tokens = tokens == NULL ? 16 : atoi(tokens + 13);
  if (stream->tokens < 1) stream->tokens = 1;
  const char *ids = prompt == NULL ? "" : prompt + 10;
  stream->prompt_bytes = strcspn(ids, "]");
  stream->prompt = allocate(stream->prompt_bytes + 1);
  memcpy(stream->prompt, ids, stream->prompt_bytes);
  stream->prompt_tokens = stream->prompt_bytes > 0;
  for (size_t i = 0; i < stream->prompt_bytes; i++) stream->prompt_tokens += stream->prompt[i] == ',';
  if (keep_log) stream->sends_ns = allocate((size_t)stream->tokens * sizeof *stream->sends_ns);
  make_event(stream);
  stream->kernel_ns = kernel_ns;
  stream->received_ns = at_ns;
  stream->first_due_ns = one->due_ns = at_ns + ttft_ns;
  one->stream = stream;
  put(one, STREAM_HEAD, sizeof STREAM_HEAD - 1);
  heap_add(one);
}

/* Answers the request at the front of the buffer once it is whole and the one before is over. */
static void take_request(struct connection *one, int64_t kernel_ns, int64_t at_ns) {
  if (one->stream != NULL || one->in_bytes == 0) return;
  char *head_end = strstr(one->in, "\r\n\r\n");
  if (head_end == NULL) return;
  size_t head_bytes = (size_t)(head_end - one->in) + 4;
  head_end[2] = '\0';
  const char *length = header(one->in, "\r\ncontent-length:");
  size_t body_bytes = length == NULL ? 0 : strtoul(length, NULL, 10);
  if (one->in_bytes < head_bytes + body_bytes) {
    head_end[2] = '\r';
    return;
  }
  char *body = one->in + head_bytes, held = body[body_bytes];
  body[body_bytes] = '\0';
  if (strncmp(one->in, "POST /v1/completions ", 21) == 0) start_stream(one, one->in, body, kernel_ns, at_ns);
  else put(one, NO_SUCH_PAGE, sizeof NO_SUCH_PAGE - 1);
  body[body_bytes] = held;
  one->in_bytes -= head_bytes + body_bytes;
  memmove(one->in, body + body_bytes, one->in_bytes + 1);
}

/* When the kernel had the newest of the bytes just read; 0 where it does not say. */
static int64_t kernel_stamp(struct msghdr *message, int64_t at_ns) {
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    struct timespec stamp;
    memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
    int64_t wall_ns = stamp.tv_sec * NS_PER_S + stamp.tv_nsec;
    int64_t ago_ns = clock_ns(CLOCK_REALTIME) - wall_ns;
    return ago_ns < 0 ? 0 : at_ns - ago_ns;
  }
  return 0;
}

static void read_from(struct connection *one) {
  if (one->in_room < one->in_bytes + READ_BYTES + 1) {
    one->in_room = one->in_bytes + READ_BYTES + 1;
    one->in = grown(one->in, one->in_room);
  }
  char control[CMSG_SPACE(sizeof(struct timespec))];
  struct iovec part = { .iov_base = one->in + one->in_bytes, .iov_len = READ_BYTES };
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
  ssize_t got = recvmsg(one->fd, &message, 0);
  int64_t at_ns = now_ns();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    drop(one);
    return;
  }
  one->in_bytes += (size_t)got;
  one->in[one->in_bytes] = '\0';
  take_request(one, kernel_stamp(&message, at_ns), at_ns);
  if (one->in_bytes == 0) {
    free(one->in);
    one->in = NULL;
    one->in_room = 0;
  }
}

static void accept_all(int listener) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    struct connection *one = allocate(sizeof *one);
    one->fd = fd;
    watch(one, EPOLL_CTL_ADD, EPOLLIN);
  }
}

/* ---- the loop ---- */

/* Marks of the descriptors that are no connections. */
static char LISTENER, TIMER, SIGNALS;

static void watch_mark(int fd, void *mark) {
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = mark };
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
}

static int open_listener(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof address;
  int on = 1;
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 4096) != 0) die("listen");
  /* From here on the kernel stamps what arrives, also before a connection is accepted. */
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) die("getsockname");
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return fd;
}

static int open_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC);
}

static void arm(int timer) {
  static int64_t armed_ns;
  int64_t due_ns = heap_size > 0 ? heap[0]->due_ns : 0;
  if (due_ns == armed_ns) return;
  armed_ns = due_ns;
  struct itimerspec at = { .it_value = { .tv_sec = due_ns / NS_PER_S, .tv_nsec = due_ns % NS_PER_S } };
  if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) != 0) die("timerfd_settime");
}

static int serve(int listener, int timer) {
  struct epoll_event events[EVENTS];
  for (;;) {
    int more = send_due();
    if (!more) arm(timer);
    int count = epoll_wait(epoll_fd, events, EVENTS, more ? 0 : -1);
    for (int i = 0; i < count; i++) {
      void *mark = events[i].data.ptr;
      uint64_t expired;
      if (mark == &SIGNALS) return 0;
      if (mark == &LISTENER) accept_all(listener);
      else if (mark == &TIMER) (void)!read(timer, &expired, sizeof expired);
      else {
        struct connection *one = mark;
        if (events[i].events & EPOLLOUT) flush_held(one);
        if (events[i].events & ~(uint32_t)EPOLLOUT) read_from(one);
      }
    }
  }
}

int main(int count, char **words) {
  if (count < 3) {
    fprintf(stderr, "usage: truth_server TTFT_MS ITL_MS [LOG]\n");
    return 2;
  }
  ttft_ns = (int64_t)(atof(words[1]) * 1e6);
  itl_ns = (int64_t)(atof(words[2]) * 1e6);
  keep_log = count > 3;
  prctl(PR_SET_TIMERSLACK, 1UL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  int signals = open_signals();
  if (epoll_fd < 0 || timer < 0 || signals < 0) die("start");
  watch_mark(signals, &SIGNALS);
  watch_mark(timer, &TIMER);
  int listener = open_listener();
  watch_mark(listener, &LISTENER);
  serve(listener, timer);
  while (heap_size > 0) {
    struct connection *one = heap[0];
    heap_remove(one);
    finish(one, OPEN);
  }
  if (keep_log) write_log(words[3]);
  return 0;
}
