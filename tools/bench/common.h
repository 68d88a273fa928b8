// What the client and the server both need: the clock, and ends for what cannot go on.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECOND 1000000000LL

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}
static void fail(const char *what) {
    perror(what);
    exit(1);
}
static void *grown(void *old, size_t bytes) {
    void *new = realloc(old, bytes);
    if (!new) fail("realloc");
    return new;
}
