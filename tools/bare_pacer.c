// The plainest client that sends on a schedule: one thread, one epoll, one timerfd armed for the next planned send.
// tools/pace.py runs it in turns with tokload: how late its sends are is what this machine and kernel allow without
// further effort. It receives and drains the answers, looks for their end, and measures nothing else.
// Usage: bare_pacer PORT RATE SECONDS TOKENS CONNECTIONS
// Sends are Poisson arrivals; one that is due while all connections are busy opens another.
// Prints, as JSON, the lateness of each send (ns, from its planned time to just before `send`).
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

enum { CONNECTIONS_MAX = 16384, BATCH = 256, BUFFER = 65536 };
// Time after the last planned send in which answers may still end.
static const int64_t DRAIN_NS = 15000000000;

typedef struct {
    int fd;
    char tail[5];
} Connection;

static Connection connections[CONNECTIONS_MAX];
static int opened, idle[CONNECTIONS_MAX], idle_count;
static int epoll_fd, timer_fd, port, busy_count;
static char request[1024];
static size_t request_bytes;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void open_connection(void) {
    if (opened == CONNECTIONS_MAX) { fputs("too many connections\n", stderr); exit(1); }
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to)) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)opened };
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
    connections[opened].fd = fd;
    idle[idle_count++] = opened++;
}

static void arm(int64_t at) {
    struct itimerspec when = { .it_value = { at / 1000000000, at % 1000000000 } };
    if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL)) fail("timerfd_settime");
}

// Sends on any idle connection; returns when, just before.
static int64_t send_request(void) {
    if (!idle_count) open_connection();
    Connection *c = &connections[idle[--idle_count]];
    memset(c->tail, 0, sizeof c->tail);
    busy_count++;
    int64_t at = now_ns();
    if (send(c->fd, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes) fail("send");
    return at;
}

// Takes what has come; an answer ends with the closing chunk.
static void drain(int number) {
    static char buffer[BUFFER];
    Connection *c = &connections[number];
    ssize_t n = recv(c->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) { fputs("the server closed a connection\n", stderr); exit(1); }
    size_t kept = sizeof c->tail;
    if ((size_t)n >= kept) memcpy(c->tail, buffer + n - kept, kept);
    else { memmove(c->tail, c->tail + n, kept - (size_t)n); memcpy(c->tail + kept - n, buffer, (size_t)n); }
    if (memcmp(c->tail, "0\r\n\r\n", kept)) return;
    busy_count--;
    idle[idle_count++] = number;
}

int main(int argc, char **argv) {
    if (argc != 6) { fputs("usage: bare_pacer PORT RATE SECONDS TOKENS CONNECTIONS\n", stderr); return 2; }
    port = atoi(argv[1]);
    double rate = atof(argv[2]), seconds = atof(argv[3]);
    int tokens = atoi(argv[4]), ready = atoi(argv[5]);

    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    prctl(PR_SET_TIMERSLACK, 1);
    char body[256];
    int body_bytes = sprintf(body, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],\"stream\":true,\"max_tokens\":%d}", tokens);
    request_bytes = (size_t)sprintf(request, "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", body_bytes, body);

    size_t planned = (size_t)(rate * seconds), sent = 0;
    int64_t *plan = malloc(planned * sizeof *plan), *late = malloc(planned * sizeof *late);
    if (!plan || !late) fail("malloc");
    srand48(1);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event timer = { .events = EPOLLIN, .data.u32 = UINT32_MAX }, events[BATCH];
    if (epoll_fd < 0 || timer_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &timer)) fail("epoll");
    while (opened < ready) open_connection();

    double at = (double)now_ns() + 100e6;
    for (size_t i = 0; i < planned; i++, at += -log(1 - drand48()) / rate * 1e9) plan[i] = (int64_t)at;
    int64_t give_up = plan[planned - 1] + DRAIN_NS;
    arm(plan[0]);
    while ((sent < planned || busy_count) && now_ns() < give_up) {
        int n = epoll_wait(epoll_fd, events, BATCH, 1000);
        for (int i = 0; i < n; i++) {
            if (events[i].data.u32 != UINT32_MAX) { drain((int)events[i].data.u32); continue; }
            uint64_t expirations;
            if (read(timer_fd, &expirations, sizeof expirations) < 0 && errno != EAGAIN) fail("read");
            for (; sent < planned && plan[sent] <= now_ns(); sent++) late[sent] = send_request() - plan[sent];
            if (sent < planned) arm(plan[sent]);
        }
    }

    printf("[");
    for (size_t i = 0; i < sent; i++) printf("%s%lld", i ? "," : "", (long long)late[i]);
    printf("]\n");
    return 0;
}
