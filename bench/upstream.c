/* A provider that costs next to nothing, for bench.proxy: chat completions, whole or streamed.
 *
 *   upstream PORT
 *
 * The request says what it wants: "stream":true makes server-sent events, "max_tokens" so many of them (200), "seed" the
 * milliseconds between two (0). Each event carries T=<CLOCK_MONOTONIC>, so that who reads it on this machine
 * knows how long it was on its way. One thread, epoll, HTTP/1.1 with kept-alive connections. Linux only. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096 /* connections */

typedef struct {
    char *in, *out;
    size_t got, room, kept, sent, held; /* in: bytes, capacity; out: bytes, of them sent, capacity */
    long left, total, pace, due;        /* of a running stream; left is -1 when none runs */
} Connection;

static Connection connections[MOST];
static int poll_fd, highest;
static char whole[4096];

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void put(Connection *c, const char *data, size_t size) {
    if (c->kept + size > c->held)
        c->out = realloc(c->out, c->held = (c->kept + size) * 2);
    memcpy(c->out + c->kept, data, size);
    c->kept += size;
}

static void watch(int fd, int operation, int writing) {
    struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.fd = fd};
    epoll_ctl(poll_fd, operation, fd, &event);
}

static void drop(int fd) {
    close(fd);
    connections[fd].left = -1;
    connections[fd].got = connections[fd].kept = connections[fd].sent = 0;
}

/* Sends what it can; what is left goes when the socket takes more. */
static int flush(int fd) {
    Connection *c = &connections[fd];
    size_t before = c->sent;
    while (c->sent < c->kept) {
        ssize_t n = send(fd, c->out + c->sent, c->kept - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            watch(fd, EPOLL_CTL_MOD, 1);
            return 0;
        }
        if (n < 0)
            return -1;
        c->sent += n;
    }
    if (before)
        watch(fd, EPOLL_CTL_MOD, 0);
    c->kept = c->sent = 0;
    return 0;
}

static int next_event(int fd) {
    Connection *c = &connections[fd];
    char event[512], frame[640];
    const char *delta = "{\"content\":\"T=%010ld.%09ld t%05ld\"},\"finish_reason\":null}]}\n\n";
    long at = now();
    int n = snprintf(event, sizeof event, "data: {\"id\":\"chatcmpl-C4nTbZqY7mW2sJ8kR5vX1pLd3hFg\",\"object\":\"chat.completion.chunk\","
                     "\"created\":1,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":");
    if (c->left)
        n += snprintf(event + n, sizeof event - n, delta, at / 1000000000L, at % 1000000000L, c->total - c->left);
    else
        n += snprintf(event + n, sizeof event - n, "{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,"
                      "\"completion_tokens\":%ld,\"total_tokens\":%ld}}\n\ndata: [DONE]\n\n", c->total, c->total + 10);
    put(c, frame, sprintf(frame, "%x\r\n%s\r\n%s", n, event, c->left ? "" : "0\r\n\r\n"));
    c->left--;
    c->due += c->pace;
    return flush(fd);
}

static long number(const char *body, size_t size, const char *name, long otherwise) {
    const char *at = memmem(body, size, name, strlen(name));
    return at ? atol(at + strlen(name)) : otherwise;
}

static void answer(Connection *c, const char *body, size_t size) {
    char head[256];
    if (!memmem(body, size, "\"stream\":true", 13) && !memmem(body, size, "\"stream\": true", 14)) {
        size_t length = strlen(whole);
        put(c, head, sprintf(head, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                             "content-length: %zu\r\n\r\n", length));
        put(c, whole, length);
        return;
    }
    c->left = c->total = number(body, size, "\"max_tokens\":", 200);
    c->pace = number(body, size, "\"seed\":", 0) * 1000000L;
    c->due = now();
    put(c, head, sprintf(head, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
                         "transfer-encoding: chunked\r\n\r\n"));
}

/* The body's bytes put together at its beginning; where the request ends, or 0 while it does not. */
static size_t unchunk(char *body, size_t got, size_t *size) {
    char *at = body, *end = body + got, *line;
    *size = 0;
    while ((line = memmem(at, end - at, "\r\n", 2))) {
        size_t n = strtoul(at, NULL, 16);
        if (line + 2 + n + 2 > end)
            return 0;
        if (!n)
            return line + 4 - body;
        memmove(body + *size, line + 2, n);
        *size += n;
        at = line + 2 + n + 2;
    }
    return 0;
}

/* Answers what has come in whole. */
static int serve(int fd) {
    Connection *c = &connections[fd];
    while (c->got && c->left < 0) {
        char *end = memmem(c->in, c->got, "\r\n\r\n", 4);
        if (!end)
            return 0;
        *end = 0;
        char *told = strcasestr(c->in, "\r\ncontent-length:");
        int chunked = strcasestr(c->in, "\r\ntransfer-encoding: chunked") != NULL;
        *end = '\r';
        size_t head = end + 4 - c->in, size = told ? strtoul(told + 17, NULL, 10) : 0, used = size;
        if (chunked) {
            if (c->got < head + 5 || memcmp(c->in + c->got - 5, "0\r\n\r\n", 5))
                return 0;
            used = unchunk(end + 4, c->got - head, &size);
            if (!used)
                return 0;
        } else if (c->got < head + size)
            return 0;
        answer(c, end + 4, size);
        c->got -= head + used;
        memmove(c->in, c->in + head + used, c->got);
        if (flush(fd) < 0)
            return -1;
    }
    return 0;
}

static int receive(int fd) {
    Connection *c = &connections[fd];
    for (;;) {
        if (c->room - c->got < 65536)
            c->in = realloc(c->in, c->room = c->room * 2 + 131072);
        ssize_t n = recv(fd, c->in + c->got, c->room - c->got, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return -1;
        if (n < 0)
            return serve(fd);
        c->got += n;
    }
}

static void admit(int listener) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= MOST) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connections[fd].left = -1;
        if (fd > highest)
            highest = fd;
        watch(fd, EPOLL_CTL_ADD, 0);
    }
}

/* Sends the events that are due; nanoseconds until the next one, -1 for none. */
static long stream(void) {
    long soonest = -1;
    for (int fd = 0; fd <= highest; fd++) {
        Connection *c = &connections[fd];
        if (c->left < 0 || c->kept)
            continue;
        if (c->due <= now() && (next_event(fd) < 0 || (c->left < 0 && serve(fd) < 0))) {
            drop(fd);
            continue;
        }
        long wait = c->due - now();
        if (c->left >= 0 && !c->kept && (soonest < 0 || wait < soonest))
            soonest = wait > 0 ? wait : 0;
    }
    return soonest;
}

int main(int count, char **values) {
    signal(SIGPIPE, SIG_IGN);
    strcpy(whole, "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"bench\",\"choices\":[{"
                  "\"index\":0,\"finish_reason\":\"stop\",\"logprobs\":null,\"message\":{\"role\":\"assistant\",\"content\":\"");
    for (int n = 0; n < 200; n++)
        sprintf(whole + strlen(whole), "word%d ", n);
    strcat(whole, "\"}}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":300,\"total_tokens\":310}}");
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(count > 1 ? atoi(values[1]) : 0),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&place, sizeof place) || listen(listener, 1024)) {
        perror("upstream");
        return 1;
    }
    for (int fd = 0; fd < MOST; fd++)
        connections[fd].left = -1;
    poll_fd = epoll_create1(0);
    watch(listener, EPOLL_CTL_ADD, 0);
    for (struct epoll_event events[256];;) {
        long wait = stream();
        struct timespec limit = {wait / 1000000000L, wait % 1000000000L};
        int ready = epoll_pwait2(poll_fd, events, 256, wait < 0 ? NULL : &limit, NULL);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                admit(listener);
            else if (((events[i].events & EPOLLOUT) && flush(fd) < 0)
                     || ((events[i].events & ~EPOLLOUT) && receive(fd) < 0))
                drop(fd);
        }
    }
}
