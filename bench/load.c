/* A closed-loop load generator for bench.proxy; prints one JSON line.
 *
 *   load PORT PATH CONNECTIONS REQUESTS WARM BODY-FILE [HEADER]...
 *
 * Each connection sends its next request when the last answer is over. WARM requests come first and are not counted.
 * Sixteen bytes @@NONCE00000000@ in the body are replaced by another value for each request. Events that carry
 * T=<CLOCK_MONOTONIC> (upstream.c) give the time each was on its way. Times are in microseconds. Linux only. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NONCE "@@NONCE00000000@"
#define LIMIT 60000000000L /* one run's most, in ns */

typedef struct {
    int fd, counted, chunked, closing, done;
    char *request, *in;
    size_t sent, got, room, head, scanned;
    long length, begun, first;
} Connection;

typedef struct {
    double *values;
    size_t count, room;
} Times;

static int poll_fd, port, status;
static long wanted, warm, issued, finished, errors, window;
static char *template_;
static size_t request_size, nonce_at;
static Times whole, first, event;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void add(Times *times, long nanoseconds) {
    if (times->count == times->room)
        times->values = realloc(times->values, (times->room = times->room * 2 + 4096) * sizeof(double));
    times->values[times->count++] = nanoseconds / 1e3;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(Times *times, double share) {
    if (!times->count)
        return 0;
    qsort(times->values, times->count, sizeof(double), ascending);
    return times->values[(size_t)(share * (times->count - 1))];
}

static void watch(Connection *c, int operation, int writing) {
    struct epoll_event what = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(poll_fd, operation, c->fd, &what);
}

static void open_(Connection *c) {
    int one = 1;
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (void *)&place, sizeof place)) {
        perror("load");
        exit(1);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    watch(c, EPOLL_CTL_ADD, 0);
}

static void write_(Connection *c) {
    int waited = c->sent > 0;
    while (c->sent < request_size) {
        ssize_t n = send(c->fd, c->request + c->sent, request_size - c->sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EAGAIN)
                watch(c, EPOLL_CTL_MOD, 1);
            return;
        }
        c->sent += n;
    }
    if (waited)
        watch(c, EPOLL_CTL_MOD, 0);
}

static void begin(Connection *c) {
    if (issued == wanted + warm) {
        c->done = 1;
        return;
    }
    if (issued++ == warm)
        window = now();
    if (nonce_at) {
        char nonce[17];
        snprintf(nonce, sizeof nonce, "%08x%08lx", getpid(), issued);
        memcpy(c->request + nonce_at, nonce, 16);
    }
    c->counted = issued > warm;
    c->sent = c->got = c->head = c->scanned = 0;
    c->length = -1;
    c->chunked = c->closing = 0;
    c->first = 0;
    c->begun = now();
    write_(c);
}

static void end(Connection *c, int good) {
    long at = now();
    finished++;
    errors += !good;
    if (good && c->counted) {
        add(&whole, at - c->begun);
        add(&first, (c->first ? c->first : at) - c->begun);
    }
    if (c->closing || !good) {
        close(c->fd);
        if (issued < wanted + warm)
            open_(c);
    }
    begin(c);
}

static void read_head(Connection *c) {
    char *stop = memmem(c->in, c->got, "\r\n\r\n", 4);
    if (!stop)
        return;
    *stop = 0;
    char *length = strcasestr(c->in, "\r\ncontent-length:");
    c->length = length ? atol(length + 17) : -1;
    c->chunked = strcasestr(c->in, "\r\ntransfer-encoding: chunked") != NULL;
    c->closing = strcasestr(c->in, "\r\nconnection: close") != NULL;
    *stop = '\r';
    c->head = c->scanned = stop + 4 - c->in;
    if (atoi(c->in + 9) != 200 && !status) {
        status = atoi(c->in + 9);
        fprintf(stderr, "%.*s\n", (int)(c->got < 600 ? c->got : 600), c->in);
    }
}

/* The stamps in what came; the first one is the answer's first byte. */
static void read_events(Connection *c, long at) {
    char *found;
    while (c->scanned + 22 <= c->got && (found = memmem(c->in + c->scanned, c->got - c->scanned - 20, "T=", 2))) {
        if (!c->first)
            c->first = at;
        if (c->counted)
            add(&event, at - atol(found + 2) * 1000000000L - strtol(found + 13, NULL, 10));
        c->scanned = found + 22 - c->in;
    }
}

static void read_(Connection *c) {
    if (c->room - c->got < 65536)
        c->in = realloc(c->in, (c->room = c->room * 2 + 131072) + 1);
    ssize_t n = recv(c->fd, c->in + c->got, c->room - c->got, 0);
    long at = now();
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        int over = n == 0 && c->head && c->length < 0 && !c->chunked;
        c->closing = 1;
        end(c, over);
        return;
    }
    c->got += n;
    if (!c->head)
        read_head(c);
    if (!c->head)
        return;
    read_events(c, at);
    if (c->length >= 0 ? c->got >= c->head + c->length
                       : c->chunked && c->got >= c->head + 5 && !memcmp(c->in + c->got - 5, "0\r\n\r\n", 5))
        end(c, 1);
}

static void make_request(char **values, int count) {
    struct stat about;
    int fd = open(values[6], O_RDONLY);
    if (fd < 0 || fstat(fd, &about)) {
        perror(values[6]);
        exit(1);
    }
    template_ = malloc(about.st_size + 8192);
    size_t head = sprintf(template_, "POST %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nuser-agent: bench\r\naccept: */*\r\n"
                          "content-type: application/json\r\ncontent-length: %ld\r\n", values[2], port, about.st_size);
    for (int i = 7; i < count; i++)
        head += sprintf(template_ + head, "%s\r\n", values[i]);
    head += sprintf(template_ + head, "\r\n");
    request_size = head + read(fd, template_ + head, about.st_size);
    char *nonce = memmem(template_ + head, about.st_size, NONCE, 16);
    nonce_at = nonce ? nonce - template_ : 0;
}

int main(int count, char **values) {
    if (count < 7)
        return 2;
    int many = atoi(values[3]), ready;
    port = atoi(values[1]), wanted = atol(values[4]), warm = atol(values[5]);
    make_request(values, count);
    poll_fd = epoll_create1(0);
    Connection *connections = calloc(many, sizeof *connections);
    for (int i = 0; i < many; i++) {
        connections[i].request = memcpy(malloc(request_size), template_, request_size);
        open_(&connections[i]);
        begin(&connections[i]);
    }
    struct epoll_event events[256];
    long begun = now();
    while (finished < wanted + warm && now() - begun < LIMIT) {
        ready = epoll_wait(poll_fd, events, 256, 1000);
        for (int i = 0; i < ready; i++) {
            Connection *c = events[i].data.ptr;
            if (c->done)
                epoll_ctl(poll_fd, EPOLL_CTL_DEL, c->fd, NULL);
            else {
                if (events[i].events & EPOLLOUT)
                    write_(c);
                if (events[i].events & ~EPOLLOUT)
                    read_(c);
            }
        }
    }
    printf("{\"status\":%d,\"errors\":%ld,\"rps\":%.1f,\"p50\":%.1f,\"p99\":%.1f,\"first\":%.1f,\"chunk\":%.1f,"
           "\"chunk_p99\":%.1f}\n", status, errors + wanted + warm - finished, whole.count / ((now() - window) / 1e9),
           percentile(&whole, .5), percentile(&whole, .99), percentile(&first, .5), percentile(&event, .5),
           percentile(&event, .99));
    return 0;
}
