/* wallclock: a library to preload (LD_PRELOAD) that moves the wall clock of a process. The offset
 * is in the file that WALLCLOCK names: a signed number of nanoseconds, eight bytes in the byte
 * order of the machine. The file is mapped, so a write to it takes effect at once. The monotonic
 * clock does not change, as in a real step of the wall clock.
 *
 * Without the file, or without WALLCLOCK in the environment, the clock does not change. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t second = 1000000000;
static int64_t none;
static volatile int64_t *offset = &none;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("WALLCLOCK");
  real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0)
    return;
  void *page = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED)
    offset = page;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  if (!real_clock_gettime) /* called before the constructor */
    start();
  int failed = real_clock_gettime(clock, at);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    int64_t ns = at->tv_sec * second + at->tv_nsec + *offset;
    at->tv_sec = ns / second;
    at->tv_nsec = ns % second;
  }
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  if (!failed) {
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
  }
  return failed;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at)
    *at = now.tv_sec;
  return now.tv_sec;
}
