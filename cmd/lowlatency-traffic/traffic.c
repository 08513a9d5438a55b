// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

/*
 * lowlatency-traffic sends and answers the messages of measurements over the network. It is C, and linked to the C library dynamically, because
 * network stacks such as Onload take the place of that library's functions. It takes times and prints them; what they mean is said by
 * kubectl-lowlatency, which starts it, and documented in docs/latency.md.
 *
 *   lowlatency-traffic server port=N [address=A] [cpu=N] [buffer=BYTES] [frames=... sockets=FOLDER] [counters=DESCRIPTOR]
 *   lowlatency-traffic client host=A port=N transport=TCP|UDP|Multicast [group=A] [spin=1] [cpu=N] sizes=1,64,... [rates=1000,... ...]
 *                             [frames=... sockets=FOLDER] [timestamps=kernel|nic] [shown=DESCRIPTOR]
 *
 * With sizes, one message is under way at a time. With rates, messages of the last size leave on a schedule whatever comes back.
 * A connection of TCP carries questions as lines; messages have a socket of their own. With frames=INTERFACE:QUEUE:MAC:IPv4:PORT at both ends
 * that is one of AF_XDP, which the device plugin hands over below FOLDER (frames.h); each end then tells the other what its frames carry.
 * With timestamps, the client also prints when messages passed the kernel or the NIC (stamps.h); the server knows nothing of it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"
#include "stamps.h"

#define PROGRAM "lowlatency-traffic 5"

enum {
	LARGEST = 65536,          /* bytes of a message */
	LINE = 4096,              /* bytes of a line */
	EMPTY_LOOKS = 256,        /* looks at a socket between two at the clock */
	LOST_IN_A_ROW = 50,       /* pings that end a measurement */
	MOST_DRAINED = 1024,      /* answers of no bytes that are forgotten at once */
	SENDS_AT_ONCE = 16,       /* messages behind schedule between two looks for answers */
	MOST_VARIABLES = 256,     /* that a server names of its environment */
	TOO_LATE = -2,            /* nothing came in time */
};
static const uint64_t MOST_MESSAGES = 400000000; /* of one stream */
static const int64_t SECOND = 1000000000, MILLISECOND = 1000000;
static const int64_t REST = 200000000; /* nanoseconds after the last answer of a stream */
static const int64_t STAMPS_PATIENCE = 1000000000; /* nanoseconds for the first stamps */
static const int64_t CONTROL_PATIENCE = 5, SESSION_PATIENCE = 30; /* seconds */
static const int64_t COUNTERS_PATIENCE = 3; /* seconds; less than the other end waits for an answer */

/* Options, as name=value. */
static int64_t opt_port, opt_cpu = -1, opt_spin, opt_timeout = 200, opt_warm_pings = 10000, opt_warm_ms = 500, opt_batch = 1000;
static int64_t opt_buffer, opt_stream_ms = 2000, opt_answers = 20000, opt_probes;
static int64_t opt_min_ms = 1000, opt_max_ms = 3000, opt_max_pings = 1000000, opt_shown = -1, opt_counters = -1;
static const char *opt_host = "", *opt_address = "0.0.0.0", *opt_transport = "TCP", *opt_group = "-", *opt_sizes = "", *opt_rates = "";
static const char *opt_frames = "", *opt_sockets = "", *opt_timestamps = "";
static const struct {
	const char *name;
	int64_t *number;
	const char **text;
} options[] = {
	{"port", &opt_port, NULL}, {"cpu", &opt_cpu, NULL}, {"spin", &opt_spin, NULL}, {"timeout-ms", &opt_timeout, NULL},
	{"warm-pings", &opt_warm_pings, NULL}, {"warm-ms", &opt_warm_ms, NULL}, {"batch", &opt_batch, NULL}, {"min-ms", &opt_min_ms, NULL},
	{"max-ms", &opt_max_ms, NULL}, {"max-pings", &opt_max_pings, NULL}, {"host", NULL, &opt_host}, {"address", NULL, &opt_address},
	{"buffer", &opt_buffer, NULL}, {"stream-ms", &opt_stream_ms, NULL}, {"answers", &opt_answers, NULL}, {"probes", &opt_probes, NULL}, {"rates", NULL, &opt_rates},
	{"transport", NULL, &opt_transport}, {"group", NULL, &opt_group}, {"sizes", NULL, &opt_sizes}, {"frames", NULL, &opt_frames}, {"sockets", NULL, &opt_sockets},
	{"shown", &opt_shown, NULL}, {"counters", &opt_counters, NULL}, {"timestamps", NULL, &opt_timestamps},
};

/* One end of a measurement. */
struct end {
	int control, data, timeout_ms;
	bool client, stream, spin;    /* a stream of bytes; ask again and again instead of sleeping */
	struct sockaddr_in peer;      /* of the control connection */
	struct sockaddr_in target;    /* where messages go; at the server, where the last one came from */
	struct in_addr group;         /* multicast; 0 is none */
	char line[LINE];              /* what came on the control connection, and was not read yet */
	size_t held, filled;          /* bytes of line; bytes of a message of a stream that came so far */
	uint64_t messages;            /* sent and received */
	uint64_t asked;               /* pings that the client was to send so far, and so the number of the last of them */
	/* How a datagram is taken into in and given to target, by sockets or as frames. Without wait, EAGAIN and ENOBUFS say that it would take a while. */
	ssize_t (*take_datagram)(struct end *e, int data, bool wait, struct sockaddr_in *from);
	bool (*give_datagram)(struct end *e, int data, bool wait, const void *message, size_t bytes);
	unsigned char in[LARGEST], out[LARGEST];
};

/* finish says how it ended, and ends. */
__attribute__((format(printf, 2, 3), noreturn)) static void finish(const char *word, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	printf("end %s ", word);
	vprintf(format, values);
	printf("\n");
	va_end(values);
	bool written = fflush(stdout) == 0;
	_exit(written && strcmp(word, "Done") == 0 ? 0 : 1);
}

static int64_t clock_of(clockid_t which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

static int64_t now(void) { return clock_of(CLOCK_MONOTONIC); }

/* clock_cost is the least that two readings of the clock are apart. */
static int64_t clock_cost(void)
{
	int64_t least = SECOND;
	for (int i = 0; i < 10000; i++) {
		int64_t start = now(), took = now() - start;
		if (took < least)
			least = took;
	}
	return least;
}

/* say sends a line on the control connection. */
__attribute__((format(printf, 2, 3))) static bool say(struct end *e, const char *format, ...)
{
	char text[LINE];
	va_list values;
	va_start(values, format);
	int n = vsnprintf(text, sizeof text, format, values);
	va_end(values);
	return n > 0 && (size_t)n < sizeof text && send(e->control, text, (size_t)n, MSG_NOSIGNAL) == n;
}

/* hear reads a line without its end from the control connection; false when the peer is gone, silent, or sends no lines. */
static bool hear(struct end *e, char line[LINE], int64_t seconds)
{
	struct timeval patience = {.tv_sec = seconds};
	setsockopt(e->control, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	for (;;) {
		char *newline = memchr(e->line, '\n', e->held);
		if (newline) {
			size_t length = (size_t)(newline - e->line);
			memcpy(line, e->line, length);
			line[length] = 0;
			e->held -= length + 1;
			memmove(e->line, newline + 1, e->held);
			errno = EBADMSG;
			return strlen(line) == length;
		}
		if (e->held == sizeof e->line)
			return errno = EBADMSG, false;
		ssize_t n = recv(e->control, e->line + e->held, sizeof e->line - e->held, 0);
		if (n < 0 && errno == EINTR)
			continue; /* who stops this process and lets it go on says nothing about the peer */
		if (n <= 0) {
			if (n == 0)
				errno = ECONNRESET;
			return false;
		}
		e->held += (size_t)n;
	}
}

static bool control_speaks(struct end *e)
{
	struct pollfd p = {.fd = e->control, .events = POLLIN};
	return e->held > 0 || poll(&p, 1, 0) != 0;
}

/* kernel_counted is how many datagrams, or segments of TCP, the kernel received and sent in this network namespace; -1 when it does
 * not say. */
static int64_t kernel_counted(bool stream)
{
	const char *protocol = stream ? "Tcp: " : "Udp: ", *in = stream ? "InSegs" : "InDatagrams", *out = stream ? "OutSegs" : "OutDatagrams";
	/* datagrams that the kernel took, and dropped before they left, as from a full queue of the interface */
	const char *dropped = stream ? "" : "SndbufErrors";
	char names[1024], values[1024], *name_at = NULL, *value_at = NULL;
	int64_t sum = 0;
	int found = 0;
	FILE *file = fopen("/proc/thread-self/net/snmp", "re");
	if (!file)
		return -1;
	while (fgets(names, sizeof names, file) && fgets(values, sizeof values, file)) {
		if (strncmp(names, protocol, 5) != 0)
			continue;
		char *name = strtok_r(names, " \n", &name_at), *value = strtok_r(values, " \n", &value_at);
		for (; name && value; name = strtok_r(NULL, " \n", &name_at), value = strtok_r(NULL, " \n", &value_at))
			if (strcmp(name, in) == 0 || strcmp(name, out) == 0)
				found++, sum += strtoll(value, NULL, 10);
			else if (strcmp(name, dropped) == 0)
				sum += strtoll(value, NULL, 10);
	}
	fclose(file);
	return found == 2 ? sum : -1;
}

/* numbers are what an end counts of itself, and the kernel of it. */
struct numbers {
	uint64_t messages;
	int64_t kernel;               /* messages that went through the kernel's stack; -1 when it does not say */
	uint64_t preemptions, faults; /* of this thread: its CPU was given to something else; a page was not there */
};

static struct numbers numbers_of(const struct end *e)
{
	struct rusage used = {0};
	getrusage(RUSAGE_THREAD, &used);
	return (struct numbers){.messages = e->messages, .kernel = kernel_counted(e->stream), .preemptions = (uint64_t)used.ru_nivcsw,
	                        .faults = (uint64_t)used.ru_minflt + (uint64_t)used.ru_majflt};
}

static ssize_t take_by_socket(struct end *e, int data, bool wait, struct sockaddr_in *from)
{
	socklen_t length = sizeof *from;
	if (*opt_timestamps)
		return stamps_receive(data, e->in, sizeof e->in, wait ? 0 : MSG_DONTWAIT, from);
	return recvfrom(data, e->in, sizeof e->in, wait ? 0 : MSG_DONTWAIT, (struct sockaddr *)from, &length);
}

static bool give_by_socket(struct end *e, int data, bool wait, const void *message, size_t bytes)
{
	return sendto(data, message, bytes, (wait ? 0 : MSG_DONTWAIT) | MSG_NOSIGNAL, (struct sockaddr *)&e->target, sizeof e->target) == (ssize_t)bytes;
}

/* take_frame takes a datagram of a frame, which is that of the peer or none. */
static ssize_t take_frame(struct end *e, int data, bool wait, struct sockaddr_in *from)
{
	(void)data;
	*from = (struct sockaddr_in){.sin_addr = e->peer.sin_addr, .sin_port = e->target.sin_port};
	return frames_receive(e->in, sizeof e->in, wait ? e->timeout_ms : 0);
}

static bool give_frame(struct end *e, int data, bool wait, const void *message, size_t bytes)
{
	(void)e, (void)data;
	return frames_send(message, bytes, wait ? (int)CONTROL_PATIENCE * 1000 : 0);
}

/* take_bytes takes what has come of a message of a stream. Where as many bytes are there already, as of a larger message, nothing more belongs to it. */
static ssize_t take_bytes(struct end *e, size_t bytes)
{
	int flags = e->spin ? MSG_DONTWAIT : 0;
	if (e->filled >= bytes)
		return errno = EBADMSG, -1;
	if (*opt_timestamps)
		return stamps_receive(e->data, e->in + e->filled, bytes - e->filled, flags, NULL);
	return recv(e->data, e->in + e->filled, bytes - e->filled, flags);
}

/* take receives a message of a stream, of this many bytes, or a datagram, into e->in; the result is its size, -1, or TOO_LATE. */
static int64_t take(struct end *e, size_t bytes, int64_t patience)
{
	int64_t deadline = 0; /* the clock is read when nothing has come for a while */
	for (unsigned looks = 1;; looks++) {
		struct sockaddr_in from = {0};
		ssize_t n = e->stream ? take_bytes(e, bytes) : e->take_datagram(e, e->data, !e->spin, &from);
		if (n == 0 && e->stream)
			return errno = ECONNRESET, -1;
		if (n >= 0 && e->stream) {
			e->filled += (size_t)n;
			if (e->filled < bytes)
				continue;
			e->filled = 0;
			return e->messages++, (int64_t)bytes;
		}
		if (n >= 0 && from.sin_addr.s_addr == e->peer.sin_addr.s_addr && (!e->client || from.sin_port == e->target.sin_port)) {
			e->target.sin_port = from.sin_port;
			return e->messages++, n;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (n < 0 && errno == EAGAIN && !e->spin)
			return TOO_LATE; /* the kernel has waited */
		if (looks % EMPTY_LOOKS != 0)
			continue;
		if (deadline == 0)
			deadline = now() + patience;
		else if (now() > deadline)
			return TOO_LATE;
	}
}

static bool give(struct end *e, const void *message, size_t bytes)
{
	e->messages++;
	if (!e->stream)
		return e->give_datagram(e, e->data, true, message, bytes);
	for (size_t sent = 0; sent < bytes;) {
		ssize_t n = send(e->data, (const char *)message + sent, bytes - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return false;
		sent += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* set_data prepares the socket of messages. A wait in the kernel ends after a while, so that somebody looks at the clock. */
static bool set_data(struct end *e, struct in_addr local, int sleep_ms)
{
	int on = 1;
	struct timeval nap = {.tv_sec = sleep_ms / 1000, .tv_usec = sleep_ms % 1000 * 1000};
	if (setsockopt(e->data, SOL_SOCKET, SO_RCVTIMEO, &nap, sizeof nap) != 0)
		return false;
	if (e->stream)
		return setsockopt(e->data, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
	if (e->group.s_addr == 0)
		return true;
	struct ip_mreq join = {.imr_multiaddr = e->group, .imr_interface = local};
	unsigned char loop = local.s_addr == e->peer.sin_addr.s_addr;
	return setsockopt(e->data, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) == 0 &&
	       setsockopt(e->data, IPPROTO_IP, IP_MULTICAST_IF, &local, sizeof local) == 0 &&
	       setsockopt(e->data, IPPROTO_IP, IP_MULTICAST_LOOP, &loop, sizeof loop) == 0;
}

/* open_socket opens a socket on a local address, and a port of the kernel's choice unless one is given. */
static int open_socket(bool stream, struct in_addr local, int64_t port)
{
	int on = 1, s = socket(AF_INET, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = local, .sin_port = htons((uint16_t)port)};
	if (s < 0)
		return -1;
	if (stream)
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	else if (opt_buffer > 0 && setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &(int){(int)opt_buffer}, sizeof(int)) != 0)
		setsockopt(s, SOL_SOCKET, SO_RCVBUF, &(int){(int)opt_buffer}, sizeof(int));
	if (bind(s, (struct sockaddr *)&address, sizeof address) == 0)
		return s;
	int why = errno;
	close(s);
	return errno = why, -1;
}

static struct sockaddr_in local_of(int s)
{
	struct sockaddr_in address = {0};
	socklen_t length = sizeof address;
	getsockname(s, (struct sockaddr *)&address, &length);
	return address;
}

/* number writes the number of a message into its first bytes, as far as there is room. */
static void number(unsigned char *message, size_t bytes, uint64_t sequence)
{
	for (size_t i = 0; i < bytes && i < 8; i++)
		message[i] = (unsigned char)(sequence >> 8 * i);
}

/* number_of reads it, and sets the bits that there was room for. */
static uint64_t number_of(const unsigned char *message, size_t bytes, uint64_t *mask)
{
	size_t room = bytes < 8 ? bytes : 8;
	uint64_t sequence = 0;
	*mask = room == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * room) - 1;
	for (size_t i = 0; i < room; i++)
		sequence |= (uint64_t)message[i] << 8 * i;
	return sequence;
}

/* is_before tells whether a number is that of an earlier message, or the same. */
static bool is_before(uint64_t sequence, uint64_t other, uint64_t mask) { return ((other - sequence) & mask) <= mask / 2; }

/*
 * steps_after is how far the number of a message is after another one; 0 when it is not. Of a number with few bits the nearer side counts: what is half of all
 * numbers behind or more is taken for a message before.
 */
static uint64_t steps_after(const unsigned char *message, size_t bytes, uint64_t other)
{
	uint64_t mask, sequence = number_of(message, bytes, &mask), steps = (sequence - other) & mask;
	return steps <= mask / 2 ? steps : 0;
}

/*
 * pong answers messages until there were as many, or the control connection has something to say. A client numbers the messages of its session from 1 on,
 * whatever their sizes, so that a datagram that the way has doubled, or that is late of an earlier batch or of another size, is told from one of this batch: it
 * is answered and not counted, since otherwise the last ones would find nobody. Of messages of no bytes nothing tells it: they are answered until the control
 * connection speaks.
 */
static bool pong(struct end *e, size_t bytes, uint64_t count)
{
	int64_t heard = now();
	uint64_t last = e->asked, done = 0;
	e->asked += count;
	while (done < count || bytes == 0) {
		int64_t n = take(e, bytes, e->timeout_ms * MILLISECOND);
		if (n >= 0) {
			if (!give(e, e->in, (size_t)n))
				return false;
			heard = 0;
			uint64_t steps = (size_t)n == bytes ? steps_after(e->in, bytes, last) : 0;
			if (e->stream || (steps > 0 && steps <= e->asked - last))
				done++, last += steps;
			continue;
		}
		if (n != TOO_LATE)
			return false;
		/* Who asks on within a message of a stream is no client of this program, and what has come of it must not begin another one. */
		if (control_speaks(e))
			return e->filled == 0;
		if (heard == 0)
			heard = now();
		else if (now() - heard > SESSION_PATIENCE * SECOND)
			return false;
	}
	return true;
}

/* A message of a stream begins with this. Times are since the begin of the stream, by the client's clock. */
struct header {
	uint64_t sequence;  /* from 0, with the number of the stream, and flags */
	int64_t intended, actual;
};
static const uint64_t WANTS_ANSWER = (uint64_t)1 << 63, IS_PROBE = (uint64_t)1 << 62, STREAM = (uint64_t)1 << 48, NUMBERS = ((uint64_t)1 << 48) - 1;

/* stream_of is the number of a stream, from 1, so that what comes late of another stream, or of a ping, is not taken for one of this. */
static uint64_t stream_of(uint64_t sequence) { return sequence >> 48 & 0xff; }

/* What the server saw of a stream. */
struct tally {
	uint64_t stream, count, received, duplicates, reordered, next, gaps;
	unsigned char *seen; /* a bit for each message */
};
static struct tally tallies[2]; /* load and probes */
static uint64_t foreign;        /* messages of neither */

static bool start_tally(struct tally *t, uint64_t stream, uint64_t count)
{
	free(t->seen);
	*t = (struct tally){.stream = stream, .count = count, .seen = calloc(count / 8 + 1, 1)};
	return t->seen != NULL;
}

/* add counts a message: twice is a duplicate, after a later one it is reordered. It tells whether the message is no duplicate. */
static bool add(struct tally *t, uint64_t sequence)
{
	unsigned char bit = (unsigned char)(1u << sequence % 8);
	if (t->seen[sequence / 8] & bit) {
		t->duplicates++;
		return false;
	}
	t->seen[sequence / 8] |= bit;
	t->received++;
	if (sequence < t->next)
		t->reordered++;
	else
		t->next = sequence + 1;
	return true;
}

/* count_gaps counts runs of messages that never came. */
static void count_gaps(struct tally *t)
{
	bool inside = false;
	t->gaps = 0;
	for (uint64_t i = 0; i < t->count; i++) {
		bool missing = !(t->seen[i / 8] >> i % 8 & 1);
		t->gaps += missing && !inside;
		inside = missing;
	}
}

/* receive takes messages of streams until the control connection has something to say. */
static bool receive(struct end *e)
{
	int64_t heard = now();
	for (;;) {
		struct header h;
		int64_t n = take(e, 0, e->timeout_ms * MILLISECOND);
		if (n == TOO_LATE) {
			if (control_speaks(e))
				return true;
			if (heard == 0)
				heard = now();
			else if (now() - heard > SESSION_PATIENCE * SECOND)
				return false;
			continue;
		}
		if (n < 0)
			return false;
		heard = 0;
		memcpy(&h, e->in, sizeof h);
		struct tally *t = &tallies[(h.sequence & IS_PROBE) != 0];
		uint64_t sequence = h.sequence & NUMBERS;
		if ((size_t)n < sizeof h || sequence >= t->count || stream_of(h.sequence) != t->stream) {
			foreign++;
			continue;
		}
		if (h.sequence & WANTS_ANSWER && !give(e, e->in, (size_t)n) && errno != ENOBUFS)
			return false;
		add(t, sequence);
	}
}

static bool say_tallies(struct end *e)
{
	const struct tally *l = &tallies[0], *p = &tallies[1];
	count_gaps(&tallies[0]);
	count_gaps(&tallies[1]);
	return say(e, "received %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", l->received, l->duplicates,
	           l->reordered, l->gaps, p->received, p->duplicates, p->reordered, p->gaps, foreign);
}

/*
 * The process that started a server counts on its CPU while a client measures. The server says over a socket of packets that it has inherited when the
 * measurement begins and when it has ended, with the number of the measurement, so that an answer that comes late is not taken for that to another.
 */
static uint64_t measurement;

/* hear_counters hears the answer that begins with a word and the number of this measurement; false when none comes in time. */
static bool hear_counters(const char *word, char text[LINE])
{
	char wanted[64], packet[LINE];
	int n = snprintf(wanted, sizeof wanted, "%s %" PRIu64 " ", word, measurement);
	const int64_t deadline = now() + COUNTERS_PATIENCE * SECOND;
	for (int64_t left = deadline - now(); left > 0; left = deadline - now()) {
		struct pollfd p = {.fd = (int)opt_counters, .events = POLLIN};
		if (poll(&p, 1, (int)(left / MILLISECOND) + 1) <= 0)
			continue;
		ssize_t got = recv(p.fd, packet, sizeof packet - 1, MSG_DONTWAIT);
		if (got <= 0)
			return false;
		packet[got] = 0;
		if (strncmp(packet, wanted, (size_t)n) == 0)
			return memcpy(text, packet + n, (size_t)(got - n) + 1), true;
	}
	return false;
}

/* ask_counters tells a word to the process that counts, and hears the word that answers it. */
static bool ask_counters(const char *word, const char *answer, char text[LINE])
{
	char question[64];
	int n = snprintf(question, sizeof question, "%s %" PRIu64, word, measurement);
	return opt_counters >= 0 && send((int)opt_counters, question, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n && hear_counters(answer, text);
}

/* say_counters tells the client what was counted on the CPU of this server, or why nothing was. */
static bool say_counters(struct end *e)
{
	char text[LINE];
	const char *why = opt_counters < 0 ? "nobody counts beside the server" : "the program that counts beside the server has not answered";
	if (ask_counters("end", "counted", text) && strlen(text) < LINE - 16 && !strchr(text, '\n'))
		return say(e, "counters %s\n", text);
	return say(e, "counters {\"cpu\":%" PRId64 ",\"unknown\":\"%s\"}\n", opt_cpu, why);
}

/* answer carries out one question. */
static bool answer(struct end *e, const char *line)
{
	size_t bytes;
	uint64_t count;
	char rest;
	if (sscanf(line, "ping %zu %" SCNu64 "%c", &bytes, &count, &rest) == 2 && bytes <= LARGEST)
		return say(e, "ready\n") && pong(e, bytes, count);
	uint64_t stream, load, probes;
	if (sscanf(line, "stream %" SCNu64 " %" SCNu64 " %" SCNu64 "%c", &stream, &load, &probes, &rest) == 3 && !e->stream && load <= MOST_MESSAGES && probes <= MOST_MESSAGES) {
		foreign = 0;
		if (!start_tally(&tallies[0], stream, load) || !start_tally(&tallies[1], stream, probes))
			return say(e, "error the server has no memory for as many messages\n"), false;
		return say(e, "ready\n") && receive(e);
	}
	if (strcmp(line, "end") == 0 && tallies[0].seen && tallies[1].seen)
		return say_tallies(e);
	if (strcmp(line, "counters") == 0)
		return say_counters(e);
	if (strcmp(line, "counts") == 0) {
		struct numbers n = numbers_of(e);
		return say(e, "counts %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n", n.messages, n.kernel, n.preemptions, n.faults);
	}
	say(e, "error this is no question of " PROGRAM "\n");
	return false;
}

/* The device of frames, where the option names one. */
static struct frames_device device;

/* open_frames opens the socket of frames, if there is to be one. */
static const char *open_frames(void)
{
	if (!*opt_frames)
		return NULL;
	return frames_device_of(opt_frames, &device) ? frames_open(opt_sockets, &device) : "frames= is not INTERFACE:QUEUE:MAC:IPv4:PORT";
}

/* use_frames goes on with frames from and to a peer that was read from a line; false when it is none. */
static bool use_frames(struct end *e, const char *mac, const char *ip, unsigned port, unsigned session)
{
	struct frames_end peer;
	if (!frames_end_of(mac, ip, port, &peer) || session > UINT16_MAX)
		return false;
	e->take_datagram = take_frame;
	e->give_datagram = give_frame;
	e->target.sin_port = peer.port;
	frames_meet(&peer, (uint16_t)session);
	return true;
}

/* meet_frames learns what the frames of the client carry, and tells it those of this end. */
static bool meet_frames(struct end *e)
{
	char line[LINE], own[END_TEXT], mac[32], ip[32], rest;
	unsigned port, session;
	if (!hear(e, line, CONTROL_PATIENCE) || sscanf(line, "frames %31s %31s %5u %5u%c", mac, ip, &port, &session, &rest) != 4 || !use_frames(e, mac, ip, port, session))
		return say(e, "error the client does not say what its frames carry\n"), false;
	frames_words(&device.own, own);
	if (strncmp(own, mac, strlen(mac)) == 0)
		return say(e, "error both ends have the NIC %s: a switch sends no frame back to where it came from\n", mac), false;
	return say(e, "frames %s\nopen\n", own);
}

/* introduce tells the other end about this host. */
static bool introduce(struct end *e, int port)
{
	extern char **environ;
	static const char *const of_stacks[] = {"LD_PRELOAD=", "EF_", "ZF_", "VMA_", "XLIO_", "TP_", "AFXDP_"};
	struct utsname host;
	uname(&host);
	if (!say(e, "ok %d %" PRId64 " %s %s\n", port, opt_cpu, host.nodename, host.release))
		return false;
	for (char **one = environ; *one; one++)
		for (size_t i = 0; i < sizeof of_stacks / sizeof *of_stacks; i++)
			if (strncmp(*one, of_stacks[i], strlen(of_stacks[i])) == 0 && !strchr(*one, '\n') && strlen(*one) < LINE / 2)
				if (!say(e, "environment %s\n", *one))
					return false;
	return say(e, "introduced\n");
}

/* open_data opens the socket of messages as the client wants it, and tells the client its port. */
static bool open_data(struct end *e, const char *transport, const char *waiting, const char *group)
{
	struct in_addr local = local_of(e->control).sin_addr;
	e->stream = strcmp(transport, "TCP") == 0;
	e->spin = strcmp(waiting, "Spin") == 0;
	e->take_datagram = take_by_socket;
	e->give_datagram = give_by_socket;
	if (strcmp(transport, "Frames") == 0 && !*opt_frames)
		return say(e, "error the server has no socket of AF_XDP, and the client has one: both ends need one\n"), false;
	if (strcmp(transport, "Frames") == 0)
		return introduce(e, ntohs(device.own.port)) && meet_frames(e);
	if (strcmp(transport, "Multicast") == 0 && (inet_pton(AF_INET, group, &e->group) != 1 || !IN_MULTICAST(ntohl(e->group.s_addr))))
		return say(e, "error %.100s is no group of multicast\n", group), false;
	/* Of a group, only what is sent to the group comes to the socket: a server in the network of a node listens on no other address of it. */
	int listener = open_socket(e->stream, e->group.s_addr ? e->group : local, 0);
	if (listener < 0 || (e->stream && listen(listener, 1) != 0))
		return say(e, "error the server has no socket: %s\n", strerror(errno)), false;
	e->data = listener;
	e->target = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = e->group.s_addr ? e->group : e->peer.sin_addr};
	if (!introduce(e, ntohs(local_of(listener).sin_port)))
		return false;
	if (e->stream) {
		struct pollfd p = {.fd = listener, .events = POLLIN};
		struct sockaddr_in from = {0};
		socklen_t length = sizeof from;
		e->data = poll(&p, 1, (int)CONTROL_PATIENCE * 1000) == 1 ? accept(listener, (struct sockaddr *)&from, &length) : -1;
		close(listener);
		if (e->data < 0 || from.sin_addr.s_addr != e->peer.sin_addr.s_addr)
			return false;
	}
	return set_data(e, local, e->timeout_ms) ? say(e, "open\n") : (say(e, "error the server's socket: %s\n", strerror(errno)), false);
}

/* serve_one serves one client to its end. */
static void serve_one(struct end *e)
{
	char line[LINE], transport[16], waiting[16], group[64], rest;
	int on = 1;
	setsockopt(e->control, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (!hear(e, line, CONTROL_PATIENCE) || sscanf(line, PROGRAM " %15s %15s %63s%c", transport, waiting, group, &rest) != 3) {
		say(e, "error this is the server of " PROGRAM ", and both ends have to be of one release\n");
		fprintf(stderr, "%s is no client of " PROGRAM "\n", inet_ntoa(e->peer.sin_addr));
		return;
	}
	fprintf(stderr, "%s measures: %s %s\n", inet_ntoa(e->peer.sin_addr), transport, waiting);
	measurement++;
	ask_counters("begin", "begun", line); /* read before any message goes; where nobody does, the client is told at the end */
	if (open_data(e, transport, waiting, group))
		while (hear(e, line, SESSION_PATIENCE) && answer(e, line))
			;
	fprintf(stderr, "%s has ended: %" PRIu64 " messages\n", inet_ntoa(e->peer.sin_addr), e->messages);
}

static int serve(void)
{
	static struct end e;
	struct in_addr local;
	if (inet_pton(AF_INET, opt_address, &local) != 1)
		return fprintf(stderr, "address=%s is no address of IPv4\n", opt_address), 1;
	const char *why = open_frames();
	if (why)
		return fprintf(stderr, "no socket of AF_XDP: %s\n", why), 1;
	int listener = open_socket(true, local, opt_port);
	if (listener < 0 || listen(listener, 16) != 0)
		return fprintf(stderr, "port %" PRId64 " of %s: %s\n", opt_port, opt_address, strerror(errno)), 1;
	printf("port %d\n", ntohs(local_of(listener).sin_port));
	fflush(stdout);
	for (;;) {
		socklen_t length = sizeof e.peer;
		memset(&e, 0, sizeof e);
		e.data = -1;
		e.timeout_ms = 5;
		e.control = accept4(listener, (struct sockaddr *)&e.peer, &length, SOCK_CLOEXEC);
		if (e.control < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			return perror("accept"), 1;
		}
		serve_one(&e);
		close(e.control);
		if (e.data >= 0)
			close(e.data);
	}
}

/* ask sends a question and hears the answer, or ends. */
__attribute__((format(printf, 3, 4))) static void ask(struct end *e, char line[LINE], const char *format, ...)
{
	char question[LINE / 2];
	va_list values;
	va_start(values, format);
	vsnprintf(question, sizeof question, format, values);
	va_end(values);
	if (!say(e, "%s\n", question) || !hear(e, line, CONTROL_PATIENCE))
		finish(errno == EBADMSG ? "Stranger" : "Vanished", "the server does not answer: %s",
		       errno == EAGAIN ? "nothing came in time; it serves one client at a time" : strerror(errno));
	if (strncmp(line, "error ", 6) == 0)
		finish("Refused", "%s", line + 6);
}

/* dial opens the control connection. */
static void dial(struct end *e)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
	struct timeval patience = {.tv_sec = CONTROL_PATIENCE};
	char port[32];
	int on = 1;
	snprintf(port, sizeof port, "%" PRId64, opt_port);
	int failed = getaddrinfo(opt_host, port, &hints, &found);
	if (failed)
		finish("Unreachable", "%s: %s", opt_host, gai_strerror(failed));
	memcpy(&e->peer, found->ai_addr, sizeof e->peer);
	freeaddrinfo(found);
	e->control = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(e->control, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	setsockopt(e->control, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(e->control, (struct sockaddr *)&e->peer, sizeof e->peer) != 0)
		finish("Unreachable", "port %s of %s: %s", port, opt_host, strerror(errno == EINPROGRESS ? ETIMEDOUT : errno));
}

/* offer_frames tells the server what the frames of this end carry, and learns those of the server. */
static void offer_frames(struct end *e, char line[LINE])
{
	char own[END_TEXT], mac[32], ip[32], rest;
	unsigned port, session = (unsigned)(now() >> 10) & UINT16_MAX;
	frames_words(&device.own, own);
	ask(e, line, "frames %s %u", own, session);
	if (sscanf(line, "frames %31s %31s %5u%c", mac, ip, &port, &rest) != 3 || !use_frames(e, mac, ip, port, session))
		finish("Stranger", "the server does not say what its frames carry: %.100s", line);
}

/* meet opens the control connection and the socket of messages. */
static void meet(struct end *e)
{
	char line[LINE], host[256], kernel[256];
	int64_t cpu;
	int port;
	const char *why = open_frames(); /* which may take longer than a server waits for words */
	if (why)
		finish("NoSocket", "no socket of AF_XDP: %s", why);
	dial(e);
	e->client = true;
	e->stream = strcmp(opt_transport, "TCP") == 0;
	e->spin = opt_spin;
	e->timeout_ms = e->stream ? (int)(CONTROL_PATIENCE * 1000) : (int)opt_timeout;
	if (strcmp(opt_transport, "Multicast") == 0 && inet_pton(AF_INET, opt_group, &e->group) != 1)
		finish("Usage", "group=%s is no address of IPv4", opt_group);
	e->take_datagram = take_by_socket;
	e->give_datagram = give_by_socket;
	ask(e, line, PROGRAM " %s %s %s", *opt_frames ? "Frames" : opt_transport, e->spin ? "Spin" : "Block", opt_group);
	if (sscanf(line, "ok %d %" SCNd64 " %255s %255s", &port, &cpu, host, kernel) != 4 || port < 1 || port > 65535)
		finish("Stranger", "what listens on port %" PRId64 " of %s is no server of " PROGRAM, opt_port, opt_host);
	printf("server %" PRId64 " %s %s\n", cpu, host, kernel);
	for (int variables = 0; hear(e, line, CONTROL_PATIENCE) && strncmp(line, "environment ", 12) == 0; variables++) {
		if (variables == MOST_VARIABLES)
			finish("Stranger", "the server names more than %d variables of its environment", MOST_VARIABLES);
		printf("%s\n", line);
	}
	struct in_addr local = local_of(e->control).sin_addr, everywhere = {0};
	e->target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = e->group.s_addr ? e->group : e->peer.sin_addr};
	if (*opt_frames)
		offer_frames(e, line);
	e->data = *opt_frames ? -1 : open_socket(e->stream, e->group.s_addr ? everywhere : local, 0);
	if (!*opt_frames && (e->data < 0 || (e->stream && connect(e->data, (struct sockaddr *)&e->target, sizeof e->target) != 0) || !set_data(e, local, e->timeout_ms)))
		finish("Unreachable", "port %d of %s, for messages: %s", port, opt_host, strerror(errno));
	if (!hear(e, line, CONTROL_PATIENCE) || strcmp(line, "open") != 0)
		finish(strncmp(line, "error ", 6) == 0 ? "Refused" : "Vanished", "the server opens no socket for messages: %s", line);
	if (*opt_timestamps && !stamps_open(e->data, e->stream, opt_timestamps))
		finish("Unstamped", "messages cannot be stamped on this socket (SO_TIMESTAMPING): %s", strerror(errno));
}

/* Counts of messages of one size. */
struct counts {
	uint64_t lost, stray, lost_in_a_row, answered;
	size_t earlier_bytes; /* the size that was measured before */
};

/* is_stray tells an answer to an earlier ping from a wrong one. */
static bool is_stray(const struct end *e, size_t bytes, int64_t got, uint64_t sequence, size_t earlier_bytes)
{
	if ((size_t)got != bytes)
		return (size_t)got == earlier_bytes;
	uint64_t mask, seen = number_of(e->in, bytes, &mask);
	size_t room = bytes < 8 ? bytes : 8;
	return mask != 0 && memcmp(e->in + room, e->out + room, bytes - room) == 0 && is_before(seen, sequence, mask);
}

/* drain forgets what has come since the last answer. A message of no bytes has no number, so that an answer that comes late or twice would be that to the next. */
static void drain(struct end *e, struct counts *c)
{
	struct sockaddr_in from = {0};
	for (int looks = 0; looks < MOST_DRAINED && e->take_datagram(e, e->data, false, &from) >= 0; looks++)
		if (from.sin_addr.s_addr == e->peer.sin_addr.s_addr && from.sin_port == e->target.sin_port)
			e->messages++, c->stray++;
}

/* ping sends one message and waits for it to come back. The result is the time that took, or TOO_LATE. */
static int64_t ping(struct end *e, size_t bytes, uint64_t sequence, struct counts *c)
{
	number(e->out, bytes, sequence);
	if (bytes == 0 && !e->stream)
		drain(e, c);
	int64_t start = now();
	bool given = give(e, e->out, bytes);
	if (*opt_timestamps)
		stamps_gave(bytes);
	for (;;) {
		int64_t got = given ? take(e, bytes, e->timeout_ms * MILLISECOND) : -1, stop = now();
		if (got == TOO_LATE && !e->stream) {
			c->lost++;
			if (++c->lost_in_a_row < LOST_IN_A_ROW && !control_speaks(e))
				return TOO_LATE;
			char hint[LINE] = "";
			if (*opt_frames)
				snprintf(hint, sizeof hint, "; has each NIC a rule by which the datagrams to its port go to its queue, as those to port %u to queue %u of %s here?",
				         (unsigned)ntohs(device.own.port), device.queue, device.interface);
			finish(c->answered ? "Vanished" : "Silent", "%" PRIu64 " messages of %zu bytes one after the other had no answer%s", c->lost_in_a_row, bytes, hint);
		}
		if (got < 0)
			finish("Vanished", "a message of %zu bytes: %s", bytes, got == TOO_LATE ? "no answer came" : strerror(errno));
		if ((size_t)got == bytes && memcmp(e->in, e->out, bytes) == 0) {
			c->lost_in_a_row = 0, c->answered++;
			if (stop < start)
				finish("Clock", "the clock went back by %" PRId64 " ns", start - stop);
			return stop - start;
		}
		if (e->stream || !is_stray(e, bytes, got, sequence, c->earlier_bytes))
			finish("WrongAnswer", "the answer to a message of %zu bytes has %" PRId64 " and is another", bytes, got);
		c->stray++;
	}
}

/* batch pings many times after one ping whose time is not taken, and gives the number of times taken. Without stamps, pairs is NULL. */
static size_t batch(struct end *e, size_t bytes, size_t count, int64_t *times, struct stamps *pairs, struct counts *c)
{
	static uint64_t sequence;
	char line[LINE];
	size_t taken = 0;
	ask(e, line, "ping %zu %zu", bytes, count + 1);
	if (strcmp(line, "ready") != 0)
		finish("Stranger", "the server answers a question with %.100s", line);
	ping(e, bytes, ++sequence, c);
	for (size_t i = 0; i < count; i++) {
		int64_t took = ping(e, bytes, ++sequence, c);
		if (took == TOO_LATE)
			continue;
		if (pairs)
			pairs[taken] = stamps_take();
		times[taken++] = took;
	}
	return taken;
}

/*
 * What the process that started this one reads while it measures, from a file that both map: telling it costs no system call, and no time between a
 * message and its answer. epoch is odd while a part begins. Times are in buckets, of which each of the larger ones is a 32nd of a power of two wide.
 */
enum { SHOWN_BUCKETS = 1152, WARMING_UP = 1, ONE_AT_A_TIME = 2, ON_A_SCHEDULE = 3 };
struct shown {
	uint64_t epoch, phase, bytes, rate, sent, answers, lost, late, longest, buckets[SHOWN_BUCKETS];
};
static struct shown nobody, *shown = &nobody;

static void show(uint64_t *field, uint64_t value) { __atomic_store_n(field, value, __ATOMIC_RELAXED); }

/* show_begin begins a part of a measurement, of which nothing was seen yet. */
static void show_begin(uint64_t phase, size_t bytes, uint64_t rate)
{
	__atomic_add_fetch(&shown->epoch, 1, __ATOMIC_SEQ_CST);
	for (uint64_t *field = &shown->phase; field < (uint64_t *)(shown + 1); field++)
		show(field, 0);
	show(&shown->phase, phase);
	show(&shown->bytes, bytes);
	show(&shown->rate, rate);
	__atomic_add_fetch(&shown->epoch, 1, __ATOMIC_SEQ_CST);
}

static void show_time(int64_t nanoseconds)
{
	uint64_t value = nanoseconds > 0 ? (uint64_t)nanoseconds : 0, index = value;
	if (value >= 64) {
		uint64_t shift = 58 - (uint64_t)__builtin_clzll(value);
		index = 32 + 32 * shift + (value >> shift) - 32;
	}
	if (index >= SHOWN_BUCKETS)
		index = SHOWN_BUCKETS - 1;
	show(&shown->buckets[index], shown->buckets[index] + 1);
	show(&shown->answers, shown->answers + 1);
	if (value > shown->longest)
		show(&shown->longest, value);
}

/* open_shown maps what is read by another, where that was asked for. */
static bool open_shown(void)
{
	if (opt_shown < 0)
		return true;
	void *memory = mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, (int)opt_shown, 0);
	if (memory == MAP_FAILED)
		return false;
	shown = memory;
	return true;
}

/* measure_size pings with one size until there is enough, and prints all times. */
static void measure_size(struct end *e, size_t bytes, size_t earlier_bytes, int64_t *times, struct stamps *pairs)
{
	struct counts c = {.earlier_bytes = earlier_bytes};
	size_t count = (size_t)opt_batch, room = (size_t)opt_max_pings + count, taken = 0, tried = 0;
	int64_t start = now(), passed = 0;
	show_begin(ONE_AT_A_TIME, bytes, 0);
	while ((passed < opt_max_ms * MILLISECOND && tried < (size_t)opt_max_pings) || passed < opt_min_ms * MILLISECOND) {
		if (taken + count > room)
			break;
		size_t before = taken;
		taken += batch(e, bytes, count, times + taken, pairs ? pairs + taken : NULL, &c);
		tried += count;
		for (size_t i = before; i < taken; i++)
			show_time(times[i]);
		show(&shown->sent, tried);
		show(&shown->lost, c.lost);
		passed = now() - start;
	}
	printf("samples %zu %zu %" PRIu64 " %" PRIu64 " %" PRId64 "\n", bytes, taken, c.lost, c.stray, passed);
	fwrite(times, sizeof *times, taken, stdout);
	printf("\n");
	if (pairs) {
		printf("stamps %zu\n", taken);
		fwrite(pairs, sizeof *pairs, taken, stdout);
		printf("\n");
	}
	if (fflush(stdout) != 0)
		finish("Output", "%s", strerror(errno));
}

/* One stream of load at a rate, and one of probes. */
struct streams {
	uint64_t rate[2], count[2], sent[2], every[2]; /* messages a second, in all, sent, and of how many one wants an answer; 0 for none */
	int socket[2];
	uint64_t stream;
	size_t bytes;
	int64_t begin, last, latest;                   /* when it began, and after which time the last message left; the most that one was late */
	uint64_t late, blocked, wanted, answers, room;
	int64_t (*times)[3];                           /* of each answer: intended, actual, back */
	struct tally answered;                         /* of the messages that want an answer */
};

static int64_t due(const struct streams *s, int which, uint64_t sequence) { return (int64_t)(sequence * (uint64_t)SECOND / s->rate[which]); }

/* collect takes an answer, if there is one. */
static bool collect(struct end *e, struct streams *s, int which)
{
	struct sockaddr_in from = {0};
	struct header h;
	ssize_t n = e->take_datagram(e, s->socket[which], false, &from);
	int64_t back = now() - s->begin;
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		finish("Vanished", "answers to a stream: %s", strerror(errno));
	if (n < 0 || from.sin_addr.s_addr != e->peer.sin_addr.s_addr || from.sin_port != e->target.sin_port)
		return false;
	e->messages++;
	memcpy(&h, e->in, sizeof h);
	uint64_t sequence = h.sequence & NUMBERS;
	which = (h.sequence & IS_PROBE) != 0; /* frames of both come through one socket */
	if ((size_t)n == s->bytes && stream_of(h.sequence) != s->stream)
		return true; /* of an earlier one */
	bool is_answer = (size_t)n == s->bytes && h.sequence & WANTS_ANSWER && sequence < s->sent[which] && s->every[which] && sequence % s->every[which] == 0;
	if (is_answer && h.intended == due(s, which, sequence) && s->answers < s->room) {
		if (!add(&s->answered, sequence / s->every[which]))
			return true; /* the way has made two of it, which would stand for one that is lost */
		int64_t record[3] = {h.intended, h.actual, back};
		memcpy(s->times[s->answers++], record, sizeof record);
		show_time(back - h.intended);
	} else if ((size_t)n != s->bytes || sequence >= s->sent[which])
		finish("WrongAnswer", "the answer to a message of %zu bytes has %zd and is another", s->bytes, n);
	return true;
}

/* leave sends the next message of a stream, and notes how late it is. */
static void leave(struct end *e, struct streams *s, int which)
{
	uint64_t sequence = s->sent[which];
	bool wants = s->every[which] && sequence % s->every[which] == 0;
	struct header h = {.sequence = sequence | s->stream * STREAM | (wants ? WANTS_ANSWER : 0) | (which ? IS_PROBE : 0), .intended = due(s, which, sequence)};
	for (;;) {
		h.actual = now() - s->begin;
		memcpy(e->out, &h, sizeof h);
		if (e->give_datagram(e, s->socket[which], false, e->out, s->bytes))
			break;
		if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
			finish("Vanished", "a message of a stream: %s", strerror(errno));
		s->blocked++;
	}
	int64_t lateness = h.actual - h.intended;
	s->late += which == 0 && lateness > SECOND / (int64_t)s->rate[0];
	s->latest = lateness > s->latest ? lateness : s->latest;
	s->last = h.actual;
	s->sent[which]++;
	s->wanted += wants;
	show(&shown->sent, s->sent[0]);
	show(&shown->late, s->late);
	e->messages++;
}

/* send_all keeps the schedule, and then waits for the answers that are still under way. */
static void send_all(struct end *e, struct streams *s)
{
	unsigned behind = 0;
	s->begin = now() + MILLISECOND;
	while (s->sent[0] < s->count[0] || s->sent[1] < s->count[1]) {
		int64_t next[2] = {INT64_MAX, INT64_MAX};
		for (int i = 0; i < 2; i++)
			if (s->sent[i] < s->count[i])
				next[i] = due(s, i, s->sent[i]);
		int which = next[1] < next[0], other = !which;
		bool is_due = now() - s->begin >= next[which];
		if (is_due)
			leave(e, s, which), behind++;
		if (!is_due || behind % SENDS_AT_ONCE == 0)
			collect(e, s, s->every[1] ? 1 : s->every[0] ? 0 : other);
	}
	/* When every answer is here, what is still under way is a duplicate, or has no answer. */
	const int64_t patience = opt_timeout * MILLISECOND, rest = patience < REST ? patience : REST;
	for (int64_t heard = now(); now() - heard < (s->answers < s->wanted ? patience : rest);)
		for (int i = 0; i < 2; i++)
			if (collect(e, s, i))
				heard = now();
}

/* measure_stream sends at one rate, and prints all times. False when the rate was not reached by far: higher ones need not be tried. */
static bool measure_stream(struct end *e, int probe, uint64_t rate, size_t bytes)
{
	static uint64_t stream;
	char line[LINE];
	struct streams s = {.stream = ++stream & 0xff, .rate = {rate, (uint64_t)opt_probes}, .socket = {e->data, probe}, .bytes = bytes};
	for (int i = 0; i < 2; i++)
		s.count[i] = s.rate[i] * (uint64_t)opt_stream_ms / 1000;
	s.every[1] = opt_probes > 0;
	if (opt_probes == 0 && opt_answers > 0)
		s.every[0] = s.count[0] > (uint64_t)opt_answers ? s.count[0] / (uint64_t)opt_answers : 1;
	s.room = s.count[1] + (s.every[0] ? s.count[0] / s.every[0] + 1 : 0) + 1;
	s.times = mmap(NULL, s.room * sizeof *s.times, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s.times == MAP_FAILED || !start_tally(&s.answered, s.stream, s.room))
		finish("Usage", "no memory for %" PRIu64 " answers", s.room);
	show_begin(ON_A_SCHEDULE, bytes, rate);
	ask(e, line, "stream %" PRIu64 " %" PRIu64 " %" PRIu64, s.stream, s.count[0], s.count[1]);
	if (strcmp(line, "ready") != 0)
		finish("Stranger", "the server answers a question with %.100s", line);
	send_all(e, &s);
	ask(e, line, "end");
	if (strncmp(line, "received ", 9) != 0)
		finish("Stranger", "the server answers a question with %.100s", line);
	printf("stream %" PRIu64 " %zu %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", rate, bytes, s.count[0], s.count[1],
	       s.last, s.late, s.latest, s.blocked, s.wanted, s.answers, line + 9);
	fwrite(s.times, sizeof *s.times, s.answers, stdout);
	printf("\n");
	if (fflush(stdout) != 0)
		finish("Output", "%s", strerror(errno));
	munmap(s.times, s.room * sizeof *s.times);
	free(s.answered.seen);
	return s.last * 9 / 10 <= opt_stream_ms * MILLISECOND;
}

static struct numbers numbers_of_server(struct end *e)
{
	char line[LINE];
	struct numbers n;
	ask(e, line, "counts");
	if (sscanf(line, "counts %" SCNu64 " %" SCNd64 " %" SCNu64 " %" SCNu64, &n.messages, &n.kernel, &n.preemptions, &n.faults) != 4)
		finish("Stranger", "the server answers a question with %.100s", line);
	return n;
}

static void print_counted(const char *word, const struct numbers *before, const struct numbers *after)
{
	int64_t kernel = before->kernel < 0 || after->kernel < before->kernel ? -1 : after->kernel - before->kernel;
	printf("%s %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n", word, after->messages - before->messages, kernel,
	       after->preemptions - before->preemptions, after->faults - before->faults);
}

/* both_ends are what is counted until now. */
struct both_ends {
	struct numbers client, server;
};

static struct both_ends count_both(struct end *e)
{
	struct numbers client = numbers_of(e);
	return (struct both_ends){client, numbers_of_server(e)};
}

/* count_part prints what was counted since the last part: messages of one size, or of one rate, may go another way than others. */
static void count_part(struct end *e, struct both_ends *last)
{
	struct both_ends here = count_both(e);
	print_counted("part client", &last->client, &here.client);
	print_counted("part server", &last->server, &here.server);
	*last = here;
}

/* measure_streams sends at one rate after the other. Probes have a socket of their own, so that the network may treat them as another flow. */
static void measure_streams(struct end *e, size_t bytes, struct both_ends *last)
{
	struct in_addr local = local_of(e->control).sin_addr, everywhere = {0};
	char *at;
	int data = e->data, probe = *opt_rates && !*opt_frames ? open_socket(false, e->group.s_addr ? everywhere : local, 0) : -1;
	if (!*opt_rates)
		return;
	e->data = probe;
	if (e->stream || bytes < sizeof(struct header) || (!*opt_frames && (probe < 0 || !set_data(e, local, e->timeout_ms))))
		finish("Usage", "a stream needs datagrams of at least %zu bytes, and a socket for probes", sizeof(struct header));
	e->data = data;
	for (const char *rates = opt_rates; *rates; rates = *at ? at + 1 : at) {
		unsigned long rate = strtoul(rates, &at, 10);
		if (at == rates || (*at && *at != ',') || rate < 1 || rate > 100000000 || rate * (uint64_t)opt_stream_ms / 1000 > MOST_MESSAGES)
			finish("Usage", "rates=%s: no rate", rates);
		bool reached = measure_stream(e, probe, rate, bytes);
		count_part(e, last);
		if (!reached)
			break;
	}
	if (probe >= 0)
		close(probe);
}

/* print_counters prints what was counted on the CPU of the server, which the process that started this one reads and judges. */
static void print_counters(struct end *e)
{
	char line[LINE];
	ask(e, line, "counters");
	if (strncmp(line, "counters ", 9) != 0)
		finish("Stranger", "the server answers a question with %.100s", line);
	printf("%s\n", line);
}

/* memory_for gives memory that is there before anything is measured. */
static void *memory_for(size_t entry)
{
	void *memory = mmap(NULL, (size_t)(opt_max_pings + opt_batch) * entry, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		finish("Usage", "no memory for %" PRId64 " times", opt_max_pings);
	return memory;
}

/* check_timestamps ends where nobody can stamp. */
static void check_timestamps(void)
{
	if (*opt_timestamps && !stamps_known(opt_timestamps))
		finish("Usage", "timestamps=%s: there are kernel and nic", opt_timestamps);
	if (*opt_timestamps && (*opt_frames || *opt_rates))
		finish("Usage", "timestamps=%s: frames of AF_XDP pass by who stamps, and of messages on a schedule many are under way", opt_timestamps);
}

/* warm_up pings before anything is measured. The kernel begins to stamp what comes a moment after it was asked to (net_enable_timestamp). */
static void warm_up(struct end *e, int64_t *times, struct stamps *pairs)
{
	struct counts ignored = {0};
	bool stamped = !pairs;
	int64_t begin = now();
	show_begin(WARMING_UP, 1, 0);
	for (int64_t done = 0; done < opt_warm_pings || now() - begin < opt_warm_ms * MILLISECOND || (!stamped && now() - begin < STAMPS_PATIENCE); done += opt_batch) {
		size_t taken = batch(e, 1, (size_t)opt_batch, times, pairs, &ignored);
		stamped = !pairs || (taken > 0 && pairs[taken - 1].sent != 0 && pairs[taken - 1].received != 0);
	}
}

/* measure is the client: warm up, then one size after the other. */
static int measure(void)
{
	static struct end e;
	printf(PROGRAM "\nclock %" PRId64 "\n", clock_cost());
	check_timestamps();
	int64_t *times = memory_for(sizeof *times);
	struct stamps *pairs = *opt_timestamps ? memory_for(sizeof *pairs) : NULL;
	meet(&e);
	struct both_ends first = count_both(&e);
	int64_t steady = now(), raw = clock_of(CLOCK_MONOTONIC_RAW), wall = clock_of(CLOCK_REALTIME);
	warm_up(&e, times, pairs);
	size_t earlier = 1;
	char *at;
	struct both_ends last = count_both(&e);
	for (const char *sizes = opt_sizes; *sizes; sizes = *at ? at + 1 : at) {
		unsigned long bytes = strtoul(sizes, &at, 10);
		if (at == sizes || (*at && *at != ',') || bytes > (*opt_frames ? LARGEST_IN_FRAME : LARGEST) || (e.stream && bytes == 0))
			finish("Usage", "sizes=%s: no size", sizes);
		measure_size(&e, bytes, earlier, times, pairs);
		count_part(&e, &last);
		earlier = bytes;
	}
	measure_streams(&e, earlier, &last);
	printf("clocks %" PRId64 " %" PRId64 " %" PRId64 "\n", now() - steady, clock_of(CLOCK_MONOTONIC_RAW) - raw, clock_of(CLOCK_REALTIME) - wall);
	last = count_both(&e);
	print_counted("counted client", &first.client, &last.client);
	print_counted("counted server", &first.server, &last.server);
	print_counters(&e);
	finish("Done", "measured");
}

/* parse reads an option. */
static bool parse(const char *argument)
{
	const char *value = strchr(argument, '=');
	for (size_t i = 0; value && i < sizeof options / sizeof *options; i++) {
		if (strlen(options[i].name) != (size_t)(value - argument) || strncmp(options[i].name, argument, (size_t)(value - argument)) != 0)
			continue;
		if (options[i].text)
			return *options[i].text = value + 1, true;
		char *rest;
		errno = 0;
		*options[i].number = strtoll(value + 1, &rest, 10);
		return value[1] && !*rest && errno == 0;
	}
	return false;
}

static bool keep_to_cpu(void)
{
	cpu_set_t set;
	if (opt_cpu < 0)
		return true;
	if (opt_cpu >= CPU_SETSIZE)
		return errno = EINVAL, false;
	CPU_ZERO(&set);
	CPU_SET((size_t)opt_cpu, &set);
	return sched_setaffinity(0, sizeof set, &set) == 0;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	for (int i = 2; i < argc; i++)
		if (!parse(argv[i]))
			return fprintf(stderr, "%s is no option, or no number\n", argv[i]), 2;
	if (opt_batch < 1 || opt_batch > 1000000 || opt_max_pings < 1 || opt_max_pings > 100000000 || opt_timeout < 1 || opt_timeout > 60000 ||
	    opt_stream_ms < 1 || opt_stream_ms > 86400000 || opt_answers < 0 || opt_answers > 10000000 || opt_probes < 0 || opt_probes > 100000 ||
	    opt_buffer < 0 || opt_buffer > 1 << 30)
		return fprintf(stderr, "an option is out of range\n"), 2;
	if (!open_shown())
		return fprintf(stderr, "shown=%" PRId64 ": %s\n", opt_shown, strerror(errno)), 1;
	if (!keep_to_cpu())
		return fprintf(stderr, "cpu=%" PRId64 ": %s\n", opt_cpu, strerror(errno)), 1;
	if (argc > 1 && strcmp(argv[1], "server") == 0)
		return serve();
	if (argc > 1 && strcmp(argv[1], "client") == 0)
		return measure();
	return fprintf(stderr, "usage: lowlatency-traffic server|client name=value...\n"), 2;
}
