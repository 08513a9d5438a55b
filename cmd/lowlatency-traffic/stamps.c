// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

#define _GNU_SOURCE
#include "stamps.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
	PATIENCE = 10,          /* milliseconds for the stamp of sending; drivers read it from a register when they come to it */
	MISSED_IN_A_ROW = 50,   /* messages without that stamp, after which none is waited for */
	OTHERS_AT_ONCE = 8,     /* stamps of other messages that are read while waiting for one */
	SOFTWARE = 0, RAW = 2,  /* places in struct scm_timestamping */
};

/* Who stamps, by name: what is asked for, and where the stamp then stands. Raw stamps are of the NIC's own clock. */
static const struct stamper {
	const char *name;
	unsigned flags;
	int place;
} stampers[] = {
	{"kernel", SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE, SOFTWARE},
	{"nic", SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE, RAW},
};

static struct {
	const struct stamper *by;
	int socket;
	bool stream;
	uint32_t next, last;    /* the number of the next message and of the last one: datagrams, or bytes of a stream, from 0 */
	int64_t received;       /* the stamp of what came last; 0 for none */
	unsigned missed;        /* messages in a row without the stamp of sending */
} state;

static const struct stamper *stamper_of(const char *name)
{
	for (size_t i = 0; i < sizeof stampers / sizeof *stampers; i++)
		if (strcmp(stampers[i].name, name) == 0)
			return &stampers[i];
	return NULL;
}

bool stamps_known(const char *by) { return stamper_of(by) != NULL; }

bool stamps_open(int socket, bool stream, const char *by)
{
	state.by = stamper_of(by);
	state.socket = socket;
	state.stream = stream;
	if (!state.by)
		return errno = EINVAL, false;
	/* Stamps of sending come with the number of their message, and without its bytes, which not everybody may read (net.core.tstamp_allow_data). */
	int flags = (int)(state.by->flags | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY);
	return setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;
}

/* Room for the control messages of a datagram with stamp and error. */
union control {
	struct cmsghdr alignment;
	char room[512];
};

/* stamp_in is the stamp that came with a message; 0 for none. */
static int64_t stamp_in(struct msghdr *m)
{
	struct scm_timestamping stamps;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING || c->cmsg_len < CMSG_LEN(sizeof stamps))
			continue;
		memcpy(&stamps, CMSG_DATA(c), sizeof stamps);
		return (int64_t)stamps.ts[state.by->place].tv_sec * 1000000000 + stamps.ts[state.by->place].tv_nsec;
	}
	return 0;
}

/* is_of_last says whether what came from the queue of errors is the stamp of when the last message was sent. */
static bool is_of_last(struct msghdr *m)
{
	struct sock_extended_err error;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR || c->cmsg_len < CMSG_LEN(sizeof error))
			continue;
		memcpy(&error, CMSG_DATA(c), sizeof error);
		return error.ee_errno == ENOMSG && error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING && error.ee_info == SCM_TSTAMP_SND && error.ee_data == state.last;
	}
	return false;
}

/* look reads the queue of errors until it has the stamp of the last message; 0 when it is not there. Others are of messages that were given up, or of a
 * segment that was sent once more. */
static int64_t look(void)
{
	for (;;) {
		union control control;
		struct msghdr m = {.msg_control = &control, .msg_controllen = sizeof control};
		if (recvmsg(state.socket, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return 0;
		int64_t stamp = is_of_last(&m) ? stamp_in(&m) : 0;
		if (stamp != 0)
			return stamp;
	}
}

ssize_t stamps_receive(int socket, void *into, size_t room, int flags, struct sockaddr_in *from)
{
	union control control;
	struct iovec part = {.iov_base = into, .iov_len = room};
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control, .msg_name = from, .msg_namelen = from ? sizeof *from : 0,
	};
	ssize_t n = recvmsg(socket, &m, flags);
	if (n >= 0)
		state.received = stamp_in(&m);
	return n;
}

void stamps_gave(size_t bytes)
{
	/* A stream counts bytes, and the stamp is that of the last one of a message. */
	state.next += state.stream ? (uint32_t)bytes : 1;
	state.last = state.next - 1;
}

struct stamps stamps_take(void)
{
	struct pollfd p = {.fd = state.socket}; /* errors are told without being asked for */
	int64_t sent = look();
	for (int others = 0; sent == 0 && state.missed < MISSED_IN_A_ROW && others < OTHERS_AT_ONCE && poll(&p, 1, PATIENCE) > 0; others++)
		sent = look();
	state.missed = sent == 0 ? state.missed + 1 : 0;
	return (struct stamps){.sent = sent, .received = state.received};
}
