// The least that a load generator can do, to hold load generators against. One thread, one epoll, one `recv` into one
// buffer per readable socket; it looks for the end of an answer in its last five bytes and at nothing else.
//
// Closed loop (the default): each connection sends its next request when its answer has ended. Nothing is parsed and no
// clock is read for an event. --stamp 1 reads the clock once after each `recv` and counts the content events in it: what
// a client without any work of its own would report; leave it off where CPU is measured. --plain 1 asks for answers
// without streaming, which are all of one length. --rate R sends Poisson arrivals instead, by one timerfd in the same
// epoll, and --sends FILE has the planned and real time of each send (CLOCK_MONOTONIC): what this machine allows without
// further effort.
//
// Prints counts and its own CPU time from the first request on as JSON. usage() has the options.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { BATCH = 512, BUFFER = 65536, END = 5 };
static const uint32_t TIMER = UINT32_MAX;
static const int64_t DRAIN_NS = 15 * SECOND;
static const char CONTENT[] = "\"content\":\" ";    // a role's event has an empty one

static int port = 8100, addresses = 1, tokens = 64, per_second = 20000;
static long requests, seed = 1;
static double duration, rate;
static bool stamp, plain;
static size_t buffer_bytes = BUFFER;
static const char *sends_path;

typedef struct {
    int fd;
    bool busy;
    char tail[END];
    size_t got;                                   // plain: bytes of this answer
    int events;
    int64_t sent_ns, first_ns, last_ns;
} Conn;
typedef struct { int64_t *ns; size_t n, room; } Series;

static Conn *conns;
static int conn_count, conn_room, busy_count, *idle, idle_count, epoll_fd, timer_fd = -1;
static char request[1024], *buffer;
static size_t request_bytes, answer_bytes;
static long started, finished, failed, recvs, wakeups;
static long long received;
static int64_t began_ns;
static Series ttft, late_ttft, itl, tpot;

// ---- stamps ---------------------------------------------------------------------------------------------------------
static void keep(Series *s, int64_t ns) {
    if (s->n == s->room) s->ns = grown(s->ns, (s->room = s->room ? 2 * s->room : 1 << 17) * sizeof *s->ns);
    s->ns[s->n++] = ns;
}
static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
static double rank_ms(const Series *s, double share) {
    size_t at = (size_t)ceil(share * (double)s->n);
    return (double)s->ns[at ? at - 1 : 0] / 1e6;
}
static void tell(const char *name, Series *s) {
    if (!s->n) return;
    qsort(s->ns, s->n, sizeof *s->ns, by_value);
    printf(", \"%s_n\": %zu, \"%s_p50\": %.4f, \"%s_p99\": %.4f", name, s->n, name, rank_ms(s, .5), name, rank_ms(s, .99));
}
// An event that lies across two reads is not seen: rare, since each is sent by itself.
static void stamp_events(Conn *c, const char *bytes, size_t n, int64_t now) {
    const char *end = bytes + n;
    for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), CONTENT, sizeof CONTENT - 1)); at += sizeof CONTENT - 1) {
        if (c->events++) keep(&itl, now - c->last_ns);
        else c->first_ns = now;
        c->last_ns = now;
    }
}
static void stamp_end(const Conn *c) {
    if (!c->events) return;
    keep(&ttft, c->first_ns - c->sent_ns);
    if (c->sent_ns - began_ns >= SECOND) keep(&late_ttft, c->first_ns - c->sent_ns);
    if (c->events > 1) keep(&tpot, (c->last_ns - c->first_ns) / (c->events - 1));
}

// ---- connections ----------------------------------------------------------------------------------------------------
static void open_conn(void) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(conn_count % addresses)) };
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to)) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)conn_count };
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
    if (conn_count == conn_room) {
        conn_room = conn_room ? 2 * conn_room : 1024;
        conns = grown(conns, (size_t)conn_room * sizeof *conns);
        idle = grown(idle, (size_t)conn_room * sizeof *idle);
    }
    conns[conn_count] = (Conn) { .fd = fd };
    idle[idle_count++] = conn_count++;
}
// Sends on a connection; returns when, just before, if anyone wants to know.
static int64_t send_request(Conn *c) {
    memset(c->tail, 0, END);
    c->got = 0;
    c->events = 0;
    c->busy = true;
    busy_count++;
    started++;
    int64_t now = stamp || rate > 0 ? now_ns() : 0;
    c->sent_ns = now;
    if (send(c->fd, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes) fail("send");
    return now;
}
// True when these bytes end the answer.
static bool ends(Conn *c, const char *bytes, size_t n) {
    if (plain) {
        if (!answer_bytes) {                      // the first answer tells how long all are
            const char *body = memmem(bytes, n, "\r\n\r\n", 4), *length = memmem(bytes, n, "content-length: ", 16);
            if (!body || !length) { fputs("an answer without a length, or its head in pieces\n", stderr); exit(1); }
            answer_bytes = (size_t)(body - bytes) + 4 + strtoul(length + 16, NULL, 10);
        }
        return (c->got += n) >= answer_bytes;
    }
    if (n >= END) memcpy(c->tail, bytes + n - END, END);
    else { memmove(c->tail, c->tail + n, END - n); memcpy(c->tail + END - n, bytes, n); }
    return !memcmp(c->tail, "0\r\n\r\n", END);
}
// Takes what has come; true when the answer has ended.
static bool receive(Conn *c) {
    ssize_t n = recv(c->fd, buffer, buffer_bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) {
        failed += c->busy;
        busy_count -= c->busy;
        c->busy = false;
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
        return false;
    }
    recvs++;
    received += n;
    if (stamp) stamp_events(c, buffer, (size_t)n, now_ns());
    if (!ends(c, buffer, (size_t)n)) return false;
    if (stamp) stamp_end(c);
    finished++;
    busy_count--;
    c->busy = false;
    return true;
}

// ---- loads ----------------------------------------------------------------------------------------------------------
static bool over(void) { return requests ? started >= requests : (double)(now_ns() - began_ns) / 1e9 >= duration; }

static void closed_loop(void) {
    struct epoll_event events[BATCH];
    for (int launched = 0;;) {
        // First requests come one after another, as those of a client that does something for each.
        while (launched < conn_count && !over() && (double)launched <= (double)(now_ns() - began_ns) / 1e9 * per_second) send_request(&conns[launched++]);
        if (over()) launched = conn_count;
        if (!busy_count && launched == conn_count) return;
        int n = epoll_wait(epoll_fd, events, BATCH, launched < conn_count ? 1 : 1000);
        wakeups += n > 0;
        for (int i = 0; i < n; i++) {
            Conn *c = &conns[events[i].data.u32];
            if (receive(c) && !over()) send_request(c);
        }
    }
}
static void arm(int64_t at) {
    struct itimerspec when = { .it_value = { at / SECOND, at % SECOND } };
    if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL)) fail("timerfd_settime");
}
static void open_loop(void) {
    struct epoll_event events[BATCH], event = { .events = EPOLLIN, .data.u32 = TIMER };
    int64_t *plan = grown(NULL, (size_t)requests * sizeof *plan), *sent = grown(NULL, (size_t)requests * sizeof *sent);
    double at = (double)now_ns() + 100e6;
    srand48(seed);
    for (long i = 0; i < requests; i++, at += -log(1 - drand48()) / rate * 1e9) plan[i] = (int64_t)at;
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &event)) fail("timerfd");
    arm(plan[0]);
    while ((started < requests || busy_count) && now_ns() < plan[requests - 1] + DRAIN_NS) {
        int n = epoll_wait(epoll_fd, events, BATCH, 1000);
        wakeups += n > 0;
        for (int i = 0; i < n; i++) {
            if (events[i].data.u32 != TIMER) {
                if (receive(&conns[events[i].data.u32])) idle[idle_count++] = (int)events[i].data.u32;
                continue;
            }
            uint64_t expirations;
            if (read(timer_fd, &expirations, sizeof expirations) < 0 && errno != EAGAIN) fail("read");
            while (started < requests && plan[started] <= now_ns()) {
                if (!idle_count) open_conn();
                long number = started;
                sent[number] = send_request(&conns[idle[--idle_count]]);
            }
            if (started < requests) arm(plan[started]);
        }
    }
    FILE *to = sends_path ? fopen(sends_path, "w") : NULL;
    if (sends_path && !to) fail(sends_path);
    if (to) fputs("planned_ns,sent_ns\n", to);
    for (long i = 0; to && i < started; i++) fprintf(to, "%lld,%lld\n", (long long)plan[i], (long long)sent[i]);
    if (to && fclose(to)) fail(sends_path);
}

// ---- options --------------------------------------------------------------------------------------------------------
static void usage(void) {
    fputs("usage: drain --port N [--addrs N] -c CONNECTIONS [--max-tokens N] (--requests N | --duration S) [--rate R [--seed N] [--sends FILE]]\n"
          "  [--ramp CONNECTIONS_PER_S] [--buf BYTES] [--stamp 0|1] [--plain 0|1]\n", stderr);
    exit(2);
}
static double seconds(struct timeval now, struct timeval before) { return (double)(now.tv_sec - before.tv_sec) + (double)(now.tv_usec - before.tv_usec) * 1e-6; }

int main(int count, char **words) {
    int asked = 0;
    for (int i = 1; i + 1 < count; i += 2) {
        const char *name = words[i], *value = words[i + 1];
#define IS(option) !strcmp(name, option)
        if (IS("--port")) port = atoi(value);
        else if (IS("--addrs")) addresses = atoi(value);
        else if (IS("-c")) asked = atoi(value);
        else if (IS("--max-tokens")) tokens = atoi(value);
        else if (IS("--requests")) requests = atol(value);
        else if (IS("--duration")) duration = atof(value);
        else if (IS("--rate")) rate = atof(value);
        else if (IS("--seed")) seed = atol(value);
        else if (IS("--sends")) sends_path = value;
        else if (IS("--ramp")) per_second = atoi(value);
        else if (IS("--buf")) buffer_bytes = strtoul(value, NULL, 10);
        else if (IS("--stamp")) stamp = atoi(value);
        else if (IS("--plain")) plain = atoi(value);
        else usage();
    }
    if (!(count & 1) || asked < 1 || addresses < 1 || tokens < 1 || per_second < 1 || buffer_bytes < END || (requests < 1 && duration <= 0) || (rate > 0 && requests < 1)) usage();

    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    prctl(PR_SET_TIMERSLACK, 1);
    char body[256];
    int body_bytes = sprintf(body, "{\"model\":\"ref-model\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],\"stream\":%s,\"max_tokens\":%d%s}", plain ? "false" : "true", tokens,
        plain ? "" : ",\"stream_options\":{\"include_usage\":true}");
    request_bytes = (size_t)sprintf(request, "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", body_bytes, body);
    buffer = grown(NULL, buffer_bytes);
    if ((epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0) fail("epoll");
    while (conn_count < asked) open_conn();

    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    began_ns = now_ns();
    if (rate > 0) open_loop();
    else closed_loop();
    double took = (double)(now_ns() - began_ns) / 1e9;
    getrusage(RUSAGE_SELF, &after);
    printf("{\"conns\": %d, \"started\": %ld, \"finished\": %ld, \"failed\": %ld, \"seconds\": %.6f, \"bytes\": %lld, \"recvs\": %ld, \"wakeups\": %ld, \"cpu_user_s\": %.6f, \"cpu_sys_s\": %.6f", conn_count,
        started, finished, failed, took, received, recvs, wakeups, seconds(after.ru_utime, before.ru_utime), seconds(after.ru_stime, before.ru_stime));
    tell("ttft", &ttft);
    tell("ttft_late", &late_ttft);
    tell("itl", &itl);
    tell("tpot", &tpot);
    printf("}\n");
    return failed != 0;
}
