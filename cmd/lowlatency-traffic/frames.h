// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

/*
 * Messages as frames of Ethernet with a datagram of UDP over IPv4 in each, through a socket of AF_XDP that the device plugin of a
 * BypassNICPool hands over. There is one such socket in a program.
 */
#ifndef LOWLATENCY_FRAMES_H
#define LOWLATENCY_FRAMES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	LARGEST_IN_FRAME = 1472, /* bytes of a message that fills a frame of 1500 bytes, less the headers of IP and UDP */
	END_TEXT = 64,           /* bytes of an end in words */
};

/* An end on the wire; numbers are in the order of the network. */
struct frames_end {
	unsigned char mac[6];
	struct in_addr ip;
	in_port_t port;
};

/* Where this end's frames come from and go to. */
struct frames_device {
	char interface[16];
	unsigned queue;
	struct frames_end own;
};

/* frames_device_of reads INTERFACE:QUEUE:MAC:IPv4:PORT. */
bool frames_device_of(const char *text, struct frames_device *device);

/* frames_end_of reads an end from words; false for what no frame can go to. */
bool frames_end_of(const char *mac, const char *ip, unsigned port, struct frames_end *end);

/* frames_words writes an end as words: MAC IPv4 PORT. */
void frames_words(const struct frames_end *end, char text[END_TEXT]);

/* frames_open gets the socket from the folder that the device plugin has put into the container. The result says why there is none; NULL
 * when there is. */
const char *frames_open(const char *folder, const struct frames_device *device);

/* frames_meet says who the peer is, and of which session, so that frames of anybody else or of an earlier session are not taken. */
void frames_meet(const struct frames_end *peer, uint16_t session);

/* frames_receive takes a message; -1 with EAGAIN when none came, and with EINTR when what came is not from the peer. It waits so many
 * milliseconds, and not at all for 0. */
ssize_t frames_receive(void *into, size_t room, int wait_ms);

/* frames_send sends a message; false with ENOBUFS when there is no room for it. It waits so many milliseconds for room. */
bool frames_send(const void *message, size_t bytes, int wait_ms);

#endif
