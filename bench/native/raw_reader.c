/* A client that parses nothing: sends requests that were built beforehand when they are due, counts the blank lines that
 * end events and notes when the read that brought each had returned. What it costs, no client here can do without.
 *
 *   raw_reader PORT PLAN SOCKETS STAMPS
 *
 * PLAN holds for each request, in the order of its due time: int64 due time (ns after the start), int32 length of the
 * request, int32 events to note, the request. STAMPS gets for each request: int64 absolute time before the write, int64 1
 * when the end of the answer came, int64 n, n times int64 the end of the read that brought the event. All in this
 * machine's byte order. Standard output gets one line of JSON.
 * One thread on epoll; sockets are opened before the start and handed out newest first, like those of our own client.
 */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS = 1024, READ_BYTES = 65536, END_BYTES = 5 };
static const char END[] = "0\r\n\r\n";
static const int64_t START_DELAY_NS = NS_PER_S / 10, IDLE_LIMIT_MS = 10000;

struct request {
  int64_t due_ns, sent_ns, ended;
  char *bytes;
  int32_t length, room;
  int64_t count, *stamps;
};

struct connection {
  int fd;
  struct request *request;
  /* The last bytes of the answer so far. */
  char tail[END_BYTES];
};

static struct request *requests;
static size_t request_count;
static struct connection **idle;
static size_t idle_count;
static int epoll_fd;
static int64_t reads;

static void load_plan(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) die(path);
  size_t room = 0;
  struct { int64_t due_ns; int32_t length, room; } head;
  while (fread(&head, sizeof head, 1, file) == 1) {
    if (request_count == room) requests = grown(requests, (room = room ? 2 * room : 1024) * sizeof *requests);
    struct request *one = &requests[request_count++];
    *one = (struct request){ .due_ns = head.due_ns, .length = head.length, .room = head.room };
    one->bytes = allocate((size_t)head.length);
    one->stamps = allocate((size_t)head.room * sizeof *one->stamps);
    if (fread(one->bytes, (size_t)head.length, 1, file) != 1) die("the plan is cut short");
  }
  fclose(file);
}

static void open_socket(int port) {
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  struct connection *one = allocate(sizeof *one);
  one->fd = fd;
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = one };
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
  idle[idle_count++] = one;
}

/* 0: no socket is free. */
static int send_request(struct request *request) {
  if (idle_count == 0) return 0;
  struct connection *one = idle[--idle_count];
  one->request = request;
  memset(one->tail, 0, END_BYTES);
  request->sent_ns = now_ns();
  if (send(one->fd, request->bytes, (size_t)request->length, MSG_NOSIGNAL) != request->length) die("send");
  return 1;
}

static void note_events(struct connection *one, const char *bytes, size_t length, int64_t at_ns) {
  struct request *request = one->request;
  const char *at = bytes, *end = bytes + length;
  int ends = one->tail[END_BYTES - 1] == '\n' && bytes[0] == '\n';
  while ((at = memmem(at, (size_t)(end - at), "\n\n", 2)) != NULL) {
    ends++;
    at += 2;
  }
  for (; ends > 0 && request->count < request->room; ends--) request->stamps[request->count++] = at_ns;
}

static int ends_here(struct connection *one, const char *bytes, size_t length) {
  size_t taken = length < END_BYTES ? length : END_BYTES;
  memmove(one->tail, one->tail + taken, END_BYTES - taken);
  memcpy(one->tail + END_BYTES - taken, bytes + length - taken, taken);
  return memcmp(one->tail, END, END_BYTES) == 0;
}

/* Returns 1 when the answer is over. */
static int read_from(struct connection *one) {
  static char bytes[READ_BYTES];
  ssize_t got = recv(one->fd, bytes, sizeof bytes, 0);
  int64_t at_ns = now_ns();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  struct request *request = one->request;
  if (got <= 0) {
    close(one->fd);
    one->request = NULL;
    return request != NULL;
  }
  if (request == NULL) return 0;
  reads++;
  note_events(one, bytes, (size_t)got, at_ns);
  if (!ends_here(one, bytes, (size_t)got)) return 0;
  request->ended = 1;
  one->request = NULL;
  idle[idle_count++] = one;
  return 1;
}

static void play(int timer, int64_t start_ns) {
  struct epoll_event events[EVENTS];
  size_t next = 0, over = 0;
  int64_t armed_ns = 0;
  while (over < request_count) {
    while (next < request_count && start_ns + requests[next].due_ns <= now_ns() && send_request(&requests[next])) next++;
    int64_t due_ns = next < request_count ? start_ns + requests[next].due_ns : 0;
    if (due_ns != armed_ns) {
      struct itimerspec at = { .it_value = { .tv_sec = due_ns / NS_PER_S, .tv_nsec = due_ns % NS_PER_S } };
      if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) != 0) die("timerfd_settime");
      armed_ns = due_ns;
    }
    int count = epoll_wait(epoll_fd, events, EVENTS, (int)IDLE_LIMIT_MS);
    if (count == 0) return;
    for (int i = 0; i < count; i++) {
      struct connection *one = events[i].data.ptr;
      uint64_t expired;
      if (one == NULL) (void)!read(timer, &expired, sizeof expired);
      else over += (size_t)read_from(one);
    }
  }
}

static void write_stamps(const char *path) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) die(path);
  for (size_t i = 0; i < request_count; i++) {
    struct request *one = &requests[i];
    int64_t head[] = { one->sent_ns, one->ended, one->count };
    fwrite(head, sizeof head, 1, file);
    fwrite(one->stamps, sizeof *one->stamps, (size_t)one->count, file);
  }
  if (fclose(file) != 0) die(path);
}

int main(int count, char **words) {
  if (count != 5) {
    fprintf(stderr, "usage: raw_reader PORT PLAN SOCKETS STAMPS\n");
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1UL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
  if (epoll_fd < 0 || timer < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer, &event) != 0) die("start");
  load_plan(words[2]);
  int sockets = atoi(words[3]);
  idle = allocate((size_t)sockets * sizeof *idle);
  for (int i = 0; i < sockets; i++) open_socket(atoi(words[1]));
  int64_t start_ns = now_ns() + START_DELAY_NS;
  int64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  play(timer, start_ns);
  int64_t after_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), end_ns = now_ns();
  write_stamps(words[4]);
  printf("{\"startNs\":\"%lld\",\"cpuUs\":%.1f,\"playCpuUs\":%.1f,\"playS\":%.6f,\"reads\":%lld}\n", (long long)start_ns,
         (double)after_ns / 1e3, (double)(after_ns - before_ns) / 1e3, (double)(end_ns - start_ns) / NS_PER_S,
         (long long)reads);
  return 0;
}
