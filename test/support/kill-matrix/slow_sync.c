/* Preloaded into a runner and its watchdog: an fsync of anything under SLOW_SYNC_UNDER takes SLOW_SYNC_MS longer, so
 * that a kill can be aimed into the middle of writing the guard's journal. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fsync(int fd) {
  const char *under = getenv("SLOW_SYNC_UNDER"), *ms = getenv("SLOW_SYNC_MS");
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = under == NULL || ms == NULL ? -1 : readlink(link, path, sizeof path - 1);
  if (length > 0) {
    path[length] = '\0';
    if (strncmp(path, under, strlen(under)) == 0) usleep((useconds_t)atoi(ms) * 1000);
  }
  return (int)syscall(SYS_fsync, fd);
}
