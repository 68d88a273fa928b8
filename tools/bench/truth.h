// What the reference server did and when: counts, and the values of each metric, told as JSON. Part of reference.c.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "common.h"

typedef struct { const char *name; int64_t *ns; size_t n, room; } Series;
enum { TTFT, ITL, TPOT, E2E, LATENESS, INTERARRIVAL, SERIES };
static Series series[SERIES] = {
    { .name = "ttft" }, { .name = "itl" }, { .name = "tpot" }, { .name = "e2e" }, { .name = "lateness" }, { .name = "interarrival" },
};
static struct {
    long long requests, completed, aborted, refused, in_flight, max_in_flight, connections, open, max_open, content_events,
        events, tokens, bytes, short_sends, first_request_ns, last_arrival_ns, last_done_ns;
} did;
static struct rusage usage_before;
static FILE *dump;

static void keep(int which, int64_t value) {
    Series *s = &series[which];
    // A block this large is moved by remapping its pages, so that growth does not hold up sends.
    if (s->n == s->room) s->ns = grown(s->ns, (s->room = s->room ? s->room * 2 : 1 << 17) * sizeof *s->ns);
    s->ns[s->n++] = value;
}
static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
static double rank_us(const Series *s, double share) {
    size_t at = (size_t)(share * (double)s->n);
    if ((double)at < share * (double)s->n) at++;
    return (double)s->ns[at ? at - 1 : 0] / 1e3;
}
static void tell_series(FILE *to, Series *s) {
    if (!s->n) { fprintf(to, ",\n  \"%s\": null", s->name); return; }
    qsort(s->ns, s->n, sizeof *s->ns, by_value);
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) sum += (double)s->ns[i];
    fprintf(to, ",\n  \"%s\": {\"n\": %zu, \"mean\": %.3f, \"min\": %.3f, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, \"p999\": %.3f, \"max\": %.3f}",
        s->name, s->n, sum / (double)s->n / 1e3, rank_us(s, 0), rank_us(s, .5), rank_us(s, .9), rank_us(s, .99), rank_us(s, .999), rank_us(s, 1));
}
static double used_us(struct timeval now, struct timeval before) {
    return (double)(now.tv_sec - before.tv_sec) * 1e6 + (double)(now.tv_usec - before.tv_usec);
}
// The truth as JSON, times in us except where the name says ns; to be freed.
static char *truth(size_t *bytes) {
    char *text;
    FILE *to = open_memstream(&text, bytes);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(to, "{\n  \"unit\": \"us\"");
#define TELL(field) fprintf(to, ",\n  \"" #field "\": %lld", did.field)
    TELL(requests); TELL(completed); TELL(aborted); TELL(refused); TELL(in_flight); TELL(max_in_flight); TELL(connections); TELL(max_open);
    TELL(content_events); TELL(events); TELL(tokens); TELL(bytes); TELL(short_sends); TELL(first_request_ns);
    fprintf(to, ",\n  \"span_us\": %.1f,\n  \"cpu_user_us\": %.0f,\n  \"cpu_sys_us\": %.0f", (double)(did.last_done_ns - did.first_request_ns) / 1e3,
        used_us(usage.ru_utime, usage_before.ru_utime), used_us(usage.ru_stime, usage_before.ru_stime));
    for (int i = 0; i < SERIES; i++) tell_series(to, &series[i]);
    fprintf(to, "\n}\n");
    fclose(to);
    return text;
}
static void forget(void) {
    long long in_flight = did.in_flight, open = did.open;
    memset(&did, 0, sizeof did);
    did.in_flight = did.max_in_flight = in_flight;
    did.open = did.max_open = open;
    for (int i = 0; i < SERIES; i++) series[i].n = 0;
    getrusage(RUSAGE_SELF, &usage_before);
}
