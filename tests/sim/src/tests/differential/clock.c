// The clock of a redis-server under test: a file that the test writes, with two numbers of 8 bytes, the microseconds of Unix
// time and those of a clock that only runs forward. The library is preloaded, so that a real server can be asked at exactly
// the same time as the simulated one.
//
// Valkey adds up the time since it last asked for it, by the processor's counter. With LOCK_SIM_CLOCK_STEPS it finds no rate of
// that counter, neither in /proc/cpuinfo nor by a measurement, and its forward clock is that of the file, too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile int64_t *micros;
static int steps;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("LOCK_SIM_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) {
        void *page = mmap(NULL, 2 * sizeof *micros, PROT_READ, MAP_SHARED, file, 0);
        if (page != MAP_FAILED) micros = page;
    }
    if (!micros) abort();
    steps = getenv("LOCK_SIM_CLOCK_STEPS") != NULL;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    int64_t at = micros[0];
    now->tv_sec = at / 1000000;
    now->tv_usec = at % 1000000;
    return 0;
}

time_t time(time_t *seconds) {
    time_t at = micros[0] / 1000000;
    if (seconds) *seconds = at;
    return at;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (steps && clock == CLOCK_MONOTONIC) {
        int64_t at = micros[1];
        now->tv_sec = at / 1000000;
        now->tv_nsec = at % 1000000 * 1000;
        return 0;
    }
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real(clock, now);
}

FILE *fopen(const char *path, const char *mode) {
    static FILE *(*real)(const char *, const char *);
    if (steps && strcmp(path, "/proc/cpuinfo") == 0) return NULL;
    if (!real) real = (FILE * (*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen");
    return real(path, mode);
}
