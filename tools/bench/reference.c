// A neutral server to hold load generators against: it answers OpenAI's completions at times that are set, and keeps
// when it did. One thread, one epoll, one `send` per event, Nagle's algorithm off; all text is made before it is due.
//
// Of each request the truth is: `ttft` from having read the request to just before the send of the first content event,
// `itl` between two such moments, `tpot` their mean over a request, `lateness` of a send from the moment it was set for.
// Moments are set ahead, t0 + TTFT + k ITL, so that being late once moves nothing else. Percentiles are nearest ranks of
// all values. GET /truth tells, GET /truth?reset tells and forgets, and so does SIGTERM, on standard output.
//
// What it is not: it speaks no TLS and takes no request body without a length. usage() has the options.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/timerfd.h>

#include "truth.h"
#include "conn.h"

enum { PATTERN_MAX = 4096, WRITE_MAX = 65536, BODY_MAX = 16 << 20, FIRES_PER_TURN = 256, WORD = 6 };
enum role { ROLE_NONE, ROLE_FIRST, ROLE_EARLY };

static int port = 8100, addresses = 1, default_tokens = 128, batch = WRITE_MAX;
static bool busy_poll, firehose, plain, spread, late_headers;
static enum role role = ROLE_FIRST;
static int64_t ttft_ns[PATTERN_MAX] = { 200000000 }, itl_ns[PATTERN_MAX] = { 20000000 };
static int ttfts = 1, itls = 1;
static const char *model = "ref-model", *dump_path;

// ---- texts ----------------------------------------------------------------------------------------------------------
static const char WORDS[] = " alpha bravo delta gamma omega sigma kappa theta";
static long long created;
static const char *word(long long number) { return WORDS + number % 8 * WORD; }

static size_t chunked(char *to, const char *text, size_t n) {
    size_t head = (size_t)sprintf(to, "%zx\r\n", n);
    memcpy(to + head, text, n);
    memcpy(to + head + n, "\r\n", 2);
    return head + n + 2;
}
static size_t began(const Conn *c, char *to) {
    return (size_t)sprintf(to, "data: {\"id\":\"%s-%032llx\",\"object\":\"%s\",\"created\":%lld,\"model\":\"%s\",\"choices\":[",
        c->chat ? "chatcmpl" : "cmpl", c->number, c->chat ? "chat.completion.chunk" : "text_completion", created, model);
}
// An event of one word, or the role's; `*word_at` is where the word stands in it.
static size_t event(const Conn *c, char *to, bool is_role, bool is_last, size_t *word_at) {
    char text[FRAME_MAX];
    size_t n = began(c, text);
    n += (size_t)sprintf(text + n, "{\"index\":0,%s", is_role ? "\"delta\":{\"role\":\"assistant\",\"content\":\"" : c->chat ? "\"delta\":{\"content\":\"" : "\"text\":\"");
    size_t at = n;
    if (!is_role) n += (size_t)sprintf(text + n, "%.*s", WORD, word(c->sent));
    n += (size_t)sprintf(text + n, "\"%s,\"logprobs\":null,\"finish_reason\":%s,\"token_ids\":null}]}\n\n", c->chat ? "}" : "", is_last ? "\"length\"" : "null");
    size_t all = chunked(to, text, n);
    *word_at = all - 2 - n + at;
    return all;
}
static void reply(Conn *c, const char *status, const char *body, size_t n) {
    char head[256];
    size_t head_bytes = (size_t)sprintf(head, "HTTP/1.1 %s\r\nserver: reference\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n", status, n);
    char *all = grown(NULL, head_bytes + n);
    memcpy(all, head, head_bytes);
    memcpy(all + head_bytes, body, n);
    put(c, all, head_bytes + n);
    free(all);
}
static void reply_whole(Conn *c) {
    static char *text;
    static int n;
    if (plain && text) { reply(c, "200 OK", text, (size_t)n); return; }
    text = grown(text, (size_t)c->tokens * WORD + FRAME_MAX);
    n = sprintf(text, "{\"id\":\"%s-%032llx\",\"object\":\"%s\",\"created\":%lld,\"model\":\"%s\",\"choices\":[{\"index\":0,%s", c->chat ? "chatcmpl" : "cmpl", c->number,
        c->chat ? "chat.completion" : "text_completion", created, model, c->chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"" : "\"text\":\"");
    for (int i = 0; i < c->tokens; i++) n += sprintf(text + n, "%.*s", WORD, word(i));
    n += sprintf(text + n, "\"%s,\"logprobs\":null,\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}", c->chat ? "}" : "",
        c->prompt_tokens, c->tokens, c->prompt_tokens + c->tokens);
    reply(c, "200 OK", text, (size_t)n);
}
static const char STREAM_HEAD[] = "HTTP/1.1 200 OK\r\nserver: reference\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

// ---- answers --------------------------------------------------------------------------------------------------------
static void finished(Conn *c) {
    c->active = false;
    c->life++;
    did.completed++;
    did.in_flight--;
    did.last_done_ns = now_ns();
    keep(E2E, c->last_ns - c->read_ns);
    if (c->stream && c->tokens > 1) keep(TPOT, (c->last_ns - c->first_ns) / (c->tokens - 1));
    if (dump) fprintf(dump, "%lld,%d,%lld,%lld,%lld,%d,%d\n", c->number, c->fd, (long long)c->read_ns, (long long)c->first_ns, (long long)c->last_ns, c->stream ? c->tokens : 0, c->tokens);
}
static void finish_stream(Conn *c) {
    char text[FRAME_MAX], all[2 * FRAME_MAX];
    size_t n = 0;
    if (c->with_usage) {
        size_t bytes = began(c, text);
        bytes += (size_t)sprintf(text + bytes, "],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n", c->prompt_tokens, c->tokens, c->prompt_tokens + c->tokens);
        n += chunked(all, text, bytes);
    }
    n += chunked(all + n, "data: [DONE]\n\n", 14);
    memcpy(all + n, "0\r\n\r\n", 5);
    did.events += 1 + c->with_usage;
    put(c, all, n + 5);
    finished(c);
}
static void count_event(Conn *c) {
    c->sent++;
    did.events++;
    did.content_events++;
    did.tokens++;
}
// The event that is due, or the whole answer of a request that wants no stream.
static void fire(Conn *c) {
    if (!c->stream) {
        c->first_ns = c->last_ns = now_ns();
        keep(LATENESS, c->last_ns - c->due_ns);
        did.tokens += c->tokens;
        reply_whole(c);
        finished(c);
        return;
    }
    char made[4 * FRAME_MAX], *bytes = c->frame;
    size_t n = c->frame_bytes, unused;
    bool is_last = c->sent + 1 == c->tokens;
    if (!c->sent || is_last) {
        bytes = made;
        n = 0;
        if (!c->sent && late_headers) { memcpy(made, STREAM_HEAD, n = sizeof STREAM_HEAD - 1); }
        if (!c->sent && role == ROLE_FIRST && c->chat) { n += event(c, made + n, true, false, &unused); did.events++; }
        n += event(c, made + n, false, is_last, &unused);
    } else {
        memcpy(c->frame + c->word_at, word(c->sent), WORD);
    }
    int64_t now = now_ns();
    put(c, bytes, n);
    keep(LATENESS, now - c->due_ns);
    if (c->sent) keep(ITL, now - c->last_ns);
    else keep(TTFT, (c->first_ns = now) - c->read_ns);
    c->last_ns = now;
    count_event(c);
    if (is_last) { finish_stream(c); return; }
    c->due_ns += itl_ns[(c->sent - 1) % itls];
    await(c, c->due_ns);
}
static char *block;                              // many copies of one event
static size_t block_frame;
// Firehose: one write of many events; the epoll comes back when there is room for more.
static void flow(Conn *c) {
    size_t frames = (size_t)batch / c->frame_bytes ? (size_t)batch / c->frame_bytes : 1;
    if (block_frame != c->frame_bytes) {         // chat and plain completions have frames of two lengths
        block = grown(block, frames * c->frame_bytes);
        for (size_t i = 0; i < frames; i++) memcpy(block + i * c->frame_bytes, c->frame, c->frame_bytes);
        block_frame = c->frame_bytes;
    }
    size_t all = (size_t)(c->tokens - 1) * c->frame_bytes, into = c->flowed % c->frame_bytes;
    if (c->flowed < all) {
        size_t n = frames * c->frame_bytes - into, left = all - c->flowed;
        size_t taken = offered(c, block + into, n < left ? n : left);
        did.bytes += (long long)taken;
        if (taken < (n < left ? n : left)) did.short_sends++;
        for (c->flowed += taken; (size_t)c->sent < c->flowed / c->frame_bytes;) count_event(c);
        if (c->flowed < all) { want_room(c, true); return; }
    }
    want_room(c, false);
    c->last_ns = now_ns();
    size_t unused, bytes = event(c, c->frame, false, true, &unused);
    put(c, c->frame, bytes);
    count_event(c);
    finish_stream(c);
}

// ---- requests -------------------------------------------------------------------------------------------------------
// The few fields that matter, by a walk over the JSON text: keys of the body, and `include_usage` of an object in it.
static void read_fields(Conn *c, const char *s, const char *end) {
    int depth = 0;
    while (s < end) {
        char byte = *s++;
        if (byte == '{' || byte == '[') depth++;
        if (byte == '}' || byte == ']') depth--;
        if (byte != '"') continue;
        const char *key = s;
        while (s < end && *s != '"') s += *s == '\\' ? 2 : 1;
        size_t n = (size_t)(s - key);
        for (s++; s < end && strchr(" \t\r\n", *s); s++) {}
        if (s >= end || *s != ':') continue;
        for (s++; s < end && strchr(" \t\r\n", *s); s++) {}
        if (s >= end) return;
#define KEY(name) (n == sizeof name - 1 && !memcmp(key, name, sizeof name - 1))
        if (depth == 1 && KEY("stream")) c->stream = *s == 't';
        else if (depth == 1 && (KEY("max_tokens") || KEY("max_completion_tokens"))) c->tokens = atoi(s);
        else if (depth == 2 && KEY("include_usage")) c->with_usage = *s == 't';
    }
}
static int64_t next_slot(int64_t ns, long long number) {
    // Multiples of the golden ratio fill a gap evenly, whichever requests are under way.
    double place = (double)number * 0.6180339887498949;
    int64_t slot = (int64_t)((place - (double)(long long)place) * (double)itl_ns[0]), past = (ns - slot) % itl_ns[0];
    return past ? ns + itl_ns[0] - past : ns;
}
static void generate(Conn *c, const char *body, size_t bytes, bool chat) {
    c->read_ns = now_ns();
    if (!did.first_request_ns) did.first_request_ns = c->read_ns;
    if (did.last_arrival_ns) keep(INTERARRIVAL, c->read_ns - did.last_arrival_ns);
    did.last_arrival_ns = c->read_ns;
    c->number = did.requests++;
    if (++did.in_flight > did.max_in_flight) did.max_in_flight = did.in_flight;
    c->chat = chat;
    c->stream = c->with_usage = false;
    c->tokens = c->sent = 0;
    c->flowed = 0;
    c->prompt_tokens = (int)(bytes / 4);
    c->active = true;
    if (!plain) read_fields(c, body, body + bytes);
    if (c->tokens <= 0) c->tokens = plain ? 1 : default_tokens;
    int64_t wait = plain || firehose ? 0 : ttft_ns[c->number % ttfts];
    if (!c->stream) {
        for (int i = 0; wait && i + 1 < c->tokens; i++) wait += itl_ns[i % itls];
        c->due_ns = c->read_ns + wait;
        if (wait) await(c, c->due_ns); else fire(c);
        return;
    }
    size_t unused;
    c->frame_bytes = event(c, c->frame, false, false, &c->word_at);
    char made[2 * FRAME_MAX];
    size_t n = 0;
    if (!late_headers || firehose) memcpy(made, STREAM_HEAD, n = sizeof STREAM_HEAD - 1);
    if (chat && (role == ROLE_EARLY || (firehose && role == ROLE_FIRST))) { n += event(c, made + n, true, false, &unused); did.events++; }
    if (n) put(c, made, n);
    if (firehose) { keep(TTFT, (c->first_ns = now_ns()) - c->read_ns); flow(c); return; }
    c->due_ns = c->read_ns + wait;
    if (spread) c->due_ns = next_slot(c->due_ns, c->number);
    await(c, c->due_ns);
}
static void refuse(Conn *c, const char *status) {
    static const char BODY[] = "{\"error\":{\"message\":\"not served by the reference server\"}}";
    did.refused++;
    reply(c, status, BODY, sizeof BODY - 1);
}
static bool asks(const char *head, const char *line) {
    size_t n = strlen(line);
    return !strncmp(head, line, n) && strchr(" ?", head[n]);
}
static void answer(Conn *c, const char *head, const char *body, size_t bytes) {
    if (asks(head, "POST /v1/chat/completions")) generate(c, body, bytes, true);
    else if (asks(head, "POST /v1/completions")) generate(c, body, bytes, false);
    else if (asks(head, "GET /truth")) {
        size_t n;
        char *text = truth(&n);
        reply(c, "200 OK", text, n);
        free(text);
        if (!strncmp(head, "GET /truth?reset", 16)) forget();
    } else if (asks(head, "GET /v1/models")) {
        char text[FRAME_MAX];
        int n = sprintf(text, "{\"object\":\"list\",\"data\":[{\"id\":\"%s\",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"reference\",\"root\":\"%s\",\"max_model_len\":1048576}]}", model, created, model);
        reply(c, "200 OK", text, (size_t)n);
    } else if (asks(head, "GET /health") || asks(head, "GET /")) reply(c, "200 OK", "{}", 2);
    else refuse(c, "404 Not Found");
}
// Answers what has come whole. One request at a time: what a client sends ahead waits.
static void take_requests(Conn *c) {
    while (!c->active && !c->closing && c->in_bytes) {
        char *end = memmem(c->in, c->in_bytes, "\r\n\r\n", 4);
        if (!end) { c->closing = c->in_bytes > WRITE_MAX; return; }
        size_t head_bytes = (size_t)(end - c->in) + 4, body_bytes = 0;
        *end = 0;
        char *length = strcasestr(c->in, "\r\ncontent-length:");
        if (length) body_bytes = strtoul(length + 17, NULL, 10);
        if (body_bytes > BODY_MAX || strcasestr(c->in, "\r\ntransfer-encoding:")) { refuse(c, "411 Length Required"); c->closing = true; return; }
        if (c->in_bytes == head_bytes && body_bytes && strcasestr(c->in, "\r\nexpect: 100")) put(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        if (c->in_bytes < head_bytes + body_bytes) { *end = '\r'; return; }
        answer(c, c->in, c->in + head_bytes, body_bytes);
        c->in_bytes -= head_bytes + body_bytes;
        memmove(c->in, c->in + head_bytes + body_bytes, c->in_bytes);
    }
}
static void on_readable(Conn *c) {
    for (;;) {
        if (c->in_room - c->in_bytes < 4096) c->in = grown(c->in, c->in_room = c->in_room ? 2 * c->in_room : 8192);
        size_t room = c->in_room - c->in_bytes;
        ssize_t n = recv(c->fd, c->in + c->in_bytes, room, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
        if (n <= 0) { c->closing = true; return; }
        c->in_bytes += (size_t)n;
        if ((size_t)n < room) break;
    }
    take_requests(c);
}
static void on_room(Conn *c) {
    if (c->out_bytes) {
        c->out_at += offered(c, c->out + c->out_at, c->out_bytes - c->out_at);
        if (c->out_at < c->out_bytes) return;
        c->out_bytes = c->out_at = 0;
    }
    if (firehose && c->active && c->stream) flow(c);
    else want_room(c, false);
}
static void accept_all(int listener) {
    for (int fd, one = 1; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        Conn *c = conns[fd];
        if (!c && !(c = conns[fd] = calloc(1, sizeof *c))) fail("calloc");
        c->fd = fd;
        c->open = true;
        c->active = c->closing = c->wants_room = false;
        c->in_bytes = c->out_bytes = c->out_at = 0;
        did.connections++;
        if (++did.open > did.max_open) did.max_open = did.open;
        struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
    }
}
static void close_conn(Conn *c) {
    if (c->active) { did.aborted++; did.in_flight--; }
    c->active = c->open = false;
    c->life++;
    did.open--;
    close(c->fd);
}

// ---- the loop -------------------------------------------------------------------------------------------------------
static volatile sig_atomic_t stopped;
static void on_signal(int number) { (void)number; stopped = 1; }

static void settle(Conn *c) {                    // after anything that may have ended an answer or the connection
    if (!c->active && !c->closing && c->in_bytes) take_requests(c);
    if (c->closing) close_conn(c);
}
// Sends what is due; true if there was more of it than one turn takes.
static bool fire_due(void) {
    for (int fired = 0; due_count && heap[0].ns <= now_ns(); fired++) {
        if (fired == FIRES_PER_TURN) return true;  // requests are read meanwhile, even when late
        Due due = take_due();
        Conn *c = conns[due.fd];
        if (!c->open || !c->active || c->life != due.life) continue;
        fire(c);
        settle(c);
    }
    return false;
}
static int listen_on(int address) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(0x7f000000u + (uint32_t)address) };
    if (fd < 0 || bind(fd, (void *)&at, sizeof at) || listen(fd, 32768)) fail("listen");
    return fd;
}
static void serve(void) {
    static struct epoll_event events[1024];
    int first = -1, last = -1, timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = timer };
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer, &event);
    for (int address = 1; address <= addresses; address++) {
        event.data.fd = last = listen_on(address);
        if (first < 0) first = last;
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, last, &event);
    }
    for (int64_t armed = 0; !stopped;) {
        bool more = fire_due();
        if (!busy_poll && !more && due_count && armed != heap[0].ns) {
            armed = heap[0].ns;
            struct itimerspec when = { .it_value = { armed / 1000000000, armed % 1000000000 } };
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
        }
        int n = epoll_wait(epoll_fd, events, 1024, busy_poll || more ? 0 : -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            uint64_t expirations;
            if (fd == timer) { armed = read(timer, &expirations, sizeof expirations) > 0 ? 0 : armed; continue; }
            if (fd >= first && fd <= last) { accept_all(fd); continue; }
            Conn *c = conns[fd];
            if (!c->open) continue;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c);
            if (!c->closing && events[i].events & EPOLLOUT) on_room(c);
            settle(c);
        }
    }
}

// ---- options --------------------------------------------------------------------------------------------------------
static void usage(void) {
    fputs("usage: reference [--port N] [--addrs N] [--ttft US[,US..]] [--itl US[,USxTIMES..]] [--spread] [--tokens N]\n"
          "  [--role none|first|early] [--late-headers] [--timer fd|busy] [--firehose [--batch BYTES]] [--plain] [--model NAME] [--dump FILE]\n"
          "--addrs: listen on 127.0.0.1 to 127.0.0.N. Lists are taken in turn, TTFT by request and ITL by event. --spread: first events\n"
          "wait for a place of their own within the gap, so that events of many streams never come in step. --role: with the first\n"
          "content event, at once, or never. --firehose: events in writes of up to 64 KiB, as fast as they are taken. --plain: a fixed\n"
          "body at once, whatever is asked. --dump: a line for each finished request, times of CLOCK_MONOTONIC.\n", stderr);
    exit(2);
}
static int pattern(char *text, int64_t *ns) {
    int n = 0;
    char *rest;
    for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        char *end;
        double us = strtod(part, &end);
        int times = *end == 'x' ? atoi(end + 1) : 1;
        if (end == part || us < 0 || (*end && *end != 'x') || times < 1) usage();
        while (times-- && n < PATTERN_MAX) ns[n++] = (int64_t)(us * 1000);
    }
    if (!n) usage();
    return n;
}
static void read_options(int count, char **words) {
    for (int i = 1; i < count; i++) {
        char *name = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
#define IS(option) !strcmp(name, option)
        if (IS("--firehose")) { firehose = true; continue; }
        if (IS("--plain")) { plain = true; continue; }
        if (IS("--spread")) { spread = true; continue; }
        if (IS("--late-headers")) { late_headers = true; continue; }
        if (!value) usage();
        i++;
        if (IS("--port")) port = atoi(value);
        else if (IS("--addrs")) addresses = atoi(value);
        else if (IS("--ttft")) ttfts = pattern(value, ttft_ns);
        else if (IS("--itl")) itls = pattern(value, itl_ns);
        else if (IS("--tokens")) default_tokens = atoi(value);
        else if (IS("--batch")) batch = atoi(value);
        else if (IS("--model")) model = value;
        else if (IS("--dump")) dump_path = value;
        else if (IS("--timer") && (!strcmp(value, "fd") || !strcmp(value, "busy"))) busy_poll = *value == 'b';
        else if (IS("--role") && strchr("nfe", *value)) role = *value == 'n' ? ROLE_NONE : *value == 'f' ? ROLE_FIRST : ROLE_EARLY;
        else usage();
    }
    if (port < 1 || port > 65535 || addresses < 1 || addresses > 254 || default_tokens < 1 || batch < 1 || batch > WRITE_MAX || strlen(model) > 200) usage();
    if (spread && !itl_ns[0]) usage();
}
int main(int count, char **words) {
    read_options(count, words);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (!(conns = calloc(limit.rlim_cur, sizeof *conns))) fail("calloc");
    if (dump_path) {
        if (!(dump = fopen(dump_path, "w"))) fail(dump_path);
        setvbuf(dump, NULL, _IOFBF, 1 << 20);
        fputs("seq,conn,t_req_ns,t_first_ns,t_last_ns,events,tokens\n", dump);
    }
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    created = time(NULL);
    getrusage(RUSAGE_SELF, &usage_before);
    serve();
    if (dump && fclose(dump)) fail(dump_path);
    size_t bytes;
    char *text = truth(&bytes);
    fwrite(text, 1, bytes, stdout);
    return fflush(stdout) != 0;
}
