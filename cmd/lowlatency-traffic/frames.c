// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

#define _GNU_SOURCE
#include "frames.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SOL_XDP
#define SOL_XDP 283
#endif

enum {
	CHUNK = 4096,       /* bytes of memory for a frame */
	ENTRIES = 2048,     /* of each ring, and chunks to receive into and to send from */
	AREA = 2 * ENTRIES * CHUNK,
	ETHERNET = 14, IP = 20, UDP = 8, HEADERS = ETHERNET + IP + UDP,
	SHORTEST = 60,      /* bytes of a frame of Ethernet, without its checksum */
	TYPE_IPV4 = 0x0800, WITHOUT_OPTIONS = 0x45, NOT_FRAGMENTED = 0x4000, FRAGMENT = 0x3fff, HOPS = 64,
	PLUGIN_PATIENCE = 10, /* seconds */
};

/* A ring that the kernel and this program share (Documentation/networking/af_xdp.rst). */
struct ring {
	uint32_t *producer, *consumer, *flags;
	void *entries;
	uint32_t at; /* how many entries this program has written or read */
};

static struct {
	int plugin, memory, socket;
	unsigned char *area;
	struct ring fill, complete, in, out;
	uint64_t unused[ENTRIES]; /* chunks to send from */
	uint32_t unused_count;
	bool left; /* the kernel has not taken all that is to be sent */
	struct frames_end own, peer;
	uint16_t session;
} xsk;

static char reason[512];

__attribute__((format(printf, 1, 2))) static const char *because(const char *format, ...)
{
	va_list values;
	va_start(values, format);
	vsnprintf(reason, sizeof reason, format, values);
	va_end(values);
	return reason;
}

bool frames_end_of(const char *mac, const char *ip, unsigned port, struct frames_end *end)
{
	unsigned char *m = end->mac;
	int read = 0;
	if (strlen(mac) != 17 || sscanf(mac, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", m, m + 1, m + 2, m + 3, m + 4, m + 5, &read) != 6 || read != 17)
		return false;
	if (inet_pton(AF_INET, ip, &end->ip) != 1 || port < 1 || port > UINT16_MAX)
		return false;
	end->port = htons((uint16_t)port);
	bool is_group = m[0] & 1, is_nobody = !(m[0] | m[1] | m[2] | m[3] | m[4] | m[5]);
	return !is_group && !is_nobody && end->ip.s_addr != 0 && !IN_MULTICAST(ntohl(end->ip.s_addr)) && end->ip.s_addr != INADDR_BROADCAST;
}

bool frames_device_of(const char *text, struct frames_device *device)
{
	char mac[18], ip[16], rest;
	unsigned port;
	return sscanf(text, "%15[^:/]:%5u:%17[0-9a-fA-F:]:%15[0-9.]:%5u%c", device->interface, &device->queue, mac, ip, &port, &rest) == 5 &&
	       device->queue <= UINT16_MAX && frames_end_of(mac, ip, port, &device->own);
}

void frames_words(const struct frames_end *end, char text[END_TEXT])
{
	const unsigned char *m = end->mac;
	char ip[INET_ADDRSTRLEN];
	inet_ntop(AF_INET, &end->ip, ip, sizeof ip);
	snprintf(text, END_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x %s %u", m[0], m[1], m[2], m[3], m[4], m[5], ip, (unsigned)ntohs(end->port));
}

/* ask_plugin sends a request, with a file unless that is negative, and wants an answer. The result is the file that came with it, -1 for none,
 * or -2 for another answer. */
static int ask_plugin(const char *question, int file, const char *want)
{
	char answer[128] = {0};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} rights = {0};
	struct iovec text = {.iov_base = (void *)(uintptr_t)question, .iov_len = strlen(question)};
	struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
	if (file >= 0) {
		message.msg_control = rights.bytes;
		message.msg_controllen = sizeof rights.bytes;
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		*header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(header), &file, sizeof file);
	}
	if (sendmsg(xsk.plugin, &message, MSG_NOSIGNAL) < 0)
		return -2;
	text = (struct iovec){.iov_base = answer, .iov_len = sizeof answer - 1};
	message = (struct msghdr){.msg_iov = &text, .msg_iovlen = 1, .msg_control = rights.bytes, .msg_controllen = sizeof rights.bytes};
	if (recvmsg(xsk.plugin, &message, MSG_CMSG_CLOEXEC) <= 0 || strcmp(answer, want) != 0)
		return -2;
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int got = -1;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(&got, CMSG_DATA(header), sizeof got);
	return got;
}

/* dial_plugin connects to the device plugin. */
static const char *dial_plugin(const char *folder, const struct frames_device *device)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PLUGIN_PATIENCE};
	if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s/%s/afxdp.sock", folder, device->interface) >= sizeof address.sun_path)
		return because("the path below %s is too long", folder);
	xsk.plugin = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	setsockopt(xsk.plugin, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (connect(xsk.plugin, (struct sockaddr *)&address, sizeof address) != 0)
		return because("%s: %s", address.sun_path, strerror(errno));
	return NULL;
}

/* map maps a ring of the socket. */
static bool map(struct ring *ring, const struct xdp_ring_offset *at, size_t entry, off_t page)
{
	unsigned char *mapped = mmap(NULL, at->desc + ENTRIES * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, xsk.socket, page);
	if (mapped == MAP_FAILED)
		return false;
	*ring = (struct ring){.producer = (uint32_t *)(void *)(mapped + at->producer), .consumer = (uint32_t *)(void *)(mapped + at->consumer),
	                      .flags = (uint32_t *)(void *)(mapped + at->flags), .entries = mapped + at->desc};
	return true;
}

const char *frames_open(const char *folder, const struct frames_device *device)
{
	char question[128];
	const char *why = dial_plugin(folder, device);
	if (why)
		return why;
	xsk.memory = memfd_create("frames", MFD_CLOEXEC);
	if (xsk.memory < 0 || ftruncate(xsk.memory, AREA) != 0)
		return because("memory for frames: %s", strerror(errno));
	xsk.area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, xsk.memory, 0);
	if (xsk.area == MAP_FAILED)
		return because("memory for frames: %s", strerror(errno));
	memset(xsk.area, 0, AREA); /* the plugin takes memory that is all there */
	snprintf(question, sizeof question, "/xsk_socket,%s,%u,%d,%d", device->interface, device->queue, CHUNK, ENTRIES);
	if (ask_plugin("/connect,lowlatency-traffic", -1, "/host_ok") == -2)
		return because("what listens below %s/%s is no device plugin of AF_XDP", folder, device->interface);
	xsk.socket = ask_plugin(question, xsk.memory, "/fd_ack");
	if (xsk.socket < 0)
		return because("the device plugin gives no socket on queue %u of %s: its log says why", device->queue, device->interface);
	close(xsk.plugin);
	struct xdp_mmap_offsets offsets;
	socklen_t length = sizeof offsets;
	if (getsockopt(xsk.socket, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0 || length != sizeof offsets)
		return because("the rings of the socket: %s", strerror(errno));
	if (!map(&xsk.fill, &offsets.fr, sizeof(uint64_t), (off_t)XDP_UMEM_PGOFF_FILL_RING) || !map(&xsk.in, &offsets.rx, sizeof(struct xdp_desc), (off_t)XDP_PGOFF_RX_RING) ||
	    !map(&xsk.complete, &offsets.cr, sizeof(uint64_t), (off_t)XDP_UMEM_PGOFF_COMPLETION_RING) || !map(&xsk.out, &offsets.tx, sizeof(struct xdp_desc), (off_t)XDP_PGOFF_TX_RING))
		return because("the rings of the socket: %s", strerror(errno));
	for (uint64_t i = 0; i < ENTRIES; i++) {
		((uint64_t *)xsk.fill.entries)[i] = i * CHUNK;
		xsk.unused[i] = (ENTRIES + i) * CHUNK;
	}
	xsk.fill.at = xsk.unused_count = ENTRIES;
	__atomic_store_n(xsk.fill.producer, xsk.fill.at, __ATOMIC_RELEASE);
	xsk.own = device->own;
	return NULL;
}

static uint16_t number_at(const unsigned char *from)
{
	return (uint16_t)(from[0] << 8 | from[1]);
}

static void put_number(unsigned char *to, size_t number)
{
	to[0] = (unsigned char)(number >> 8);
	to[1] = (unsigned char)number;
}

/* sum adds up for the checksum of the Internet (RFC 1071). */
static uint32_t sum(uint32_t before, const unsigned char *from, size_t bytes)
{
	for (; bytes > 1; bytes -= 2, from += 2)
		before += number_at(from);
	return bytes ? before + (uint32_t)(from[0] << 8) : before;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* is_sound reports whether a datagram of UDP is as it was sent; one without a checksum is, which those of this program are. */
static bool is_sound(const unsigned char *ip, const unsigned char *udp, size_t bytes)
{
	return number_at(udp + 6) == 0 || folded(sum(sum((uint32_t)IPPROTO_UDP + (uint32_t)bytes, ip + 12, 8), udp, bytes)) == 0xffff;
}

/* unwrap copies the message of a frame; -1 when the frame is not from the peer of this session, or not whole. */
static ssize_t unwrap(const unsigned char *frame, size_t bytes, void *into, size_t room)
{
	const unsigned char *ip = frame + ETHERNET, *udp = ip + IP;
	if (bytes < HEADERS || memcmp(frame, xsk.own.mac, 6) != 0 || memcmp(frame + 6, xsk.peer.mac, 6) != 0 || number_at(frame + 12) != TYPE_IPV4)
		return -1;
	size_t total = number_at(ip + 2), length = number_at(udp + 4);
	if (ip[0] != WITHOUT_OPTIONS || total > bytes - ETHERNET || length < UDP || length != total - IP || length - UDP > room)
		return -1;
	if (number_at(ip + 4) != xsk.session || number_at(ip + 6) & FRAGMENT || ip[9] != IPPROTO_UDP || folded(sum(0, ip, IP)) != 0xffff)
		return -1;
	if (memcmp(ip + 12, &xsk.peer.ip, 4) != 0 || memcmp(ip + 16, &xsk.own.ip, 4) != 0 || memcmp(udp, &xsk.peer.port, 2) != 0 || memcmp(udp + 2, &xsk.own.port, 2) != 0)
		return -1;
	if (!is_sound(ip, udp, length))
		return -1;
	memcpy(into, udp + UDP, length - UDP);
	return (ssize_t)(length - UDP);
}

/* wrap writes a frame, and gives its length. The number of a datagram that is never fragmented means nothing (RFC 6864), and tells sessions
 * apart here. */
static size_t wrap(unsigned char *frame, const void *message, size_t bytes)
{
	unsigned char *ip = frame + ETHERNET, *udp = ip + IP;
	memcpy(frame, xsk.peer.mac, 6);
	memcpy(frame + 6, xsk.own.mac, 6);
	put_number(frame + 12, TYPE_IPV4);
	memset(ip, 0, IP + UDP);
	ip[0] = WITHOUT_OPTIONS;
	put_number(ip + 2, IP + UDP + bytes);
	put_number(ip + 4, xsk.session);
	put_number(ip + 6, NOT_FRAGMENTED);
	ip[8] = HOPS;
	ip[9] = IPPROTO_UDP;
	memcpy(ip + 12, &xsk.own.ip, 4);
	memcpy(ip + 16, &xsk.peer.ip, 4);
	put_number(ip + 10, (uint16_t)~folded(sum(0, ip, IP)));
	memcpy(udp, &xsk.own.port, 2);
	memcpy(udp + 2, &xsk.peer.port, 2);
	put_number(udp + 4, UDP + bytes);
	memcpy(udp + UDP, message, bytes);
	if (HEADERS + bytes < SHORTEST)
		memset(udp + UDP + bytes, 0, SHORTEST - HEADERS - bytes);
	return HEADERS + bytes < SHORTEST ? SHORTEST : HEADERS + bytes;
}

/* next is a frame that came; NULL for none. */
static const struct xdp_desc *next(void)
{
	if (__atomic_load_n(xsk.in.producer, __ATOMIC_ACQUIRE) == xsk.in.at)
		return NULL;
	return (const struct xdp_desc *)xsk.in.entries + xsk.in.at % ENTRIES;
}

/* give_back lets the kernel receive into the memory of a frame again. */
static void give_back(const struct xdp_desc *frame)
{
	((uint64_t *)xsk.fill.entries)[xsk.fill.at++ % ENTRIES] = frame->addr / CHUNK * CHUNK;
	__atomic_store_n(xsk.fill.producer, xsk.fill.at, __ATOMIC_RELEASE);
	__atomic_store_n(xsk.in.consumer, ++xsk.in.at, __ATOMIC_RELEASE);
}

void frames_meet(const struct frames_end *peer, uint16_t session)
{
	xsk.peer = *peer;
	xsk.session = session;
	const struct xdp_desc *frame;
	while ((frame = next()) != NULL)
		give_back(frame);
}

static bool wants_call(const struct ring *ring)
{
	return __atomic_load_n(ring->flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP;
}

/* is_passing tells what the kernel says when it has too much to do from an error. */
static bool is_passing(int error)
{
	return error == EAGAIN || error == EBUSY || error == ENOBUFS || error == EINTR;
}

/* push makes the kernel send what is in the ring, if it wants to be called for that. */
static bool push(void)
{
	bool pushed = !wants_call(&xsk.out) || sendto(xsk.socket, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0;
	xsk.left = !pushed;
	return pushed;
}

ssize_t frames_receive(void *into, size_t room, int wait_ms)
{
	const struct xdp_desc *frame = next();
	if (!frame) {
		struct pollfd p = {.fd = xsk.socket, .events = POLLIN};
		if (xsk.left && !push() && !is_passing(errno))
			return -1;
		if (wait_ms > 0 && poll(&p, 1, wait_ms) < 0)
			return -1;
		if (wait_ms == 0 && wants_call(&xsk.fill))
			recvfrom(xsk.socket, NULL, 0, MSG_DONTWAIT, NULL, NULL);
		frame = next();
	}
	if (!frame)
		return errno = EAGAIN, -1;
	ssize_t bytes = frame->addr + frame->len <= AREA ? unwrap(xsk.area + frame->addr, frame->len, into, room) : -1;
	give_back(frame);
	if (bytes < 0)
		errno = EINTR;
	return bytes;
}

/* reclaim takes back the memory of frames that were sent. */
static void reclaim(void)
{
	uint32_t sent = __atomic_load_n(xsk.complete.producer, __ATOMIC_ACQUIRE);
	if (sent == xsk.complete.at)
		return;
	while (xsk.complete.at != sent && xsk.unused_count < ENTRIES)
		xsk.unused[xsk.unused_count++] = ((const uint64_t *)xsk.complete.entries)[xsk.complete.at++ % ENTRIES];
	__atomic_store_n(xsk.complete.consumer, xsk.complete.at, __ATOMIC_RELEASE);
}

/* has_room waits for memory to send from. */
static bool has_room(int wait_ms)
{
	for (;; wait_ms--) {
		reclaim();
		if (xsk.unused_count > 0)
			return true;
		if (!push() && !is_passing(errno))
			return false;
		if (wait_ms <= 0)
			return errno = ENOBUFS, false;
		poll(NULL, 0, 1); /* the kernel tells of room in the ring, and not in memory */
	}
}

bool frames_send(const void *message, size_t bytes, int wait_ms)
{
	if (bytes > LARGEST_IN_FRAME)
		return errno = EMSGSIZE, false;
	for (;; wait_ms--) {
		if (!has_room(wait_ms))
			return false;
		uint64_t chunk = xsk.unused[--xsk.unused_count];
		struct xdp_desc *frame = (struct xdp_desc *)xsk.out.entries + xsk.out.at % ENTRIES;
		*frame = (struct xdp_desc){.addr = chunk, .len = (uint32_t)wrap(xsk.area + chunk, message, bytes)};
		__atomic_store_n(xsk.out.producer, ++xsk.out.at, __ATOMIC_RELEASE);
		if (push())
			return true;
		if (!is_passing(errno))
			return false;
		/* EBUSY with an empty ring: the queue of the interface was full, and the frame is gone (xsk_generic_xmit of net/xdp/xsk.c). */
		if (errno != EBUSY || __atomic_load_n(xsk.out.consumer, __ATOMIC_ACQUIRE) != xsk.out.at)
			return true;
		xsk.left = false;
		if (wait_ms <= 0)
			return errno = ENOBUFS, false;
		poll(NULL, 0, 1);
	}
}
