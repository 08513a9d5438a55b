// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

/*
 * Stamps that the kernel or the NIC puts on messages as they leave and come (SO_TIMESTAMPING, Documentation/networking/timestamping.rst of Linux).
 * One socket of a program has them, and one message is under way at a time.
 */
#ifndef LOWLATENCY_STAMPS_H
#define LOWLATENCY_STAMPS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The stamps of a message and of its answer in nanoseconds, of a clock that both have in common; 0 where one is missing. */
struct stamps {
	int64_t sent, received;
};

/* stamps_known says whether somebody stamps who has this name: kernel or nic. */
bool stamps_known(const char *by);

/* stamps_open has messages of a socket stamped from now on, of which none is under way. False with errno when that cannot be had. */
bool stamps_open(int socket, bool stream, const char *by);

/* stamps_receive is recvfrom, and keeps the stamp of what it has received last. Of a stream, from is NULL. */
ssize_t stamps_receive(int socket, void *into, size_t room, int flags, struct sockaddr_in *from);

/* stamps_gave is to be called after each message that was sent. */
void stamps_gave(size_t bytes);

/* stamps_take gives the stamps of the last message, and of what was received last. It waits a moment for that of sending, which may come after the
 * answer: no longer while none has come for many messages. */
struct stamps stamps_take(void);

#endif
