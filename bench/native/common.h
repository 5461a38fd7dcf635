/* What both programs of the bench share: one clock, and no way on after a failed call. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000LL

static inline int64_t clock_ns(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return at.tv_sec * NS_PER_S + at.tv_nsec;
}

/* CLOCK_MONOTONIC: the clock of process.hrtime too. */
static inline int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static inline void die(const char *what) {
  perror(what);
  exit(1);
}

static inline void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (memory == NULL) die("calloc");
  return memory;
}

static inline void *grown(void *memory, size_t bytes) {
  memory = realloc(memory, bytes);
  if (memory == NULL) die("realloc");
  return memory;
}
