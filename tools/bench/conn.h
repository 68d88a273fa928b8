// Connections of the reference server, what is due on them, and bytes that a socket would not take. Part of reference.c.
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_MAX = 1024 };

typedef struct {
    int fd;
    uint32_t life;                               // counts requests and connections on this descriptor
    bool open, active, closing, wants_room;
    char *in, *out;                              // received and not used; not yet taken by the socket
    size_t in_bytes, in_room, out_bytes, out_room, out_at;
    bool chat, stream, with_usage;
    int tokens, sent, prompt_tokens;
    long long number;
    int64_t read_ns, first_ns, last_ns, due_ns;
    char frame[FRAME_MAX];                       // one event as an HTTP chunk
    size_t frame_bytes, word_at;
    size_t flowed;                               // firehose: bytes of content events that the socket has taken
} Conn;
typedef struct { int64_t ns; int fd; uint32_t life; } Due;
static Conn **conns;
static Due *heap;
static size_t due_count, due_room;
static int epoll_fd;

static void await(Conn *c, int64_t ns) {
    if (due_count == due_room) heap = grown(heap, (due_room = due_room ? due_room * 2 : 4096) * sizeof *heap);
    size_t at = due_count++;
    for (; at && heap[(at - 1) / 2].ns > ns; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = (Due) { ns, c->fd, c->life };
}
static Due take_due(void) {
    Due first = heap[0], last = heap[--due_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < due_count; at = child) {
        if (child + 1 < due_count && heap[child + 1].ns < heap[child].ns) child++;
        if (heap[child].ns >= last.ns) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}
static void want_room(Conn *c, bool wanted) {
    if (c->wants_room == wanted) return;
    c->wants_room = wanted;
    struct epoll_event event = { .events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.fd = c->fd };
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}
// Bytes that the socket takes of these; none if it is full.
static size_t offered(Conn *c, const char *bytes, size_t n) {
    ssize_t taken = send(c->fd, bytes, n, MSG_NOSIGNAL);
    if (taken < 0 && errno != EAGAIN && errno != EINTR) c->closing = true;
    return taken > 0 ? (size_t)taken : 0;
}
static void put(Conn *c, const char *bytes, size_t n) {
    did.bytes += (long long)n;
    size_t taken = c->out_bytes ? 0 : offered(c, bytes, n);
    if (taken == n || c->closing) return;
    did.short_sends++;
    if (c->out_bytes + n - taken > c->out_room) c->out = grown(c->out, c->out_room = (c->out_bytes + n) * 2);
    memcpy(c->out + c->out_bytes, bytes + taken, n - taken);
    c->out_bytes += n - taken;
    want_room(c, true);
}
