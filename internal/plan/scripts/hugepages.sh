#!/bin/sh
# Reserves hugepages of one size on one NUMA node before the kubelet starts. It fails when the kernel
# cannot give them all, so that no pod is promised memory that is not there.
#
# usage: lowlatency-hugepages SIZE_IN_KIB NUMA_NODE COUNT
# LOWLATENCY_SYSFS is where sysfs is mounted, LOWLATENCY_ATTEMPTS how often to try, LOWLATENCY_PAUSE how
# many seconds to wait in between.
set -eu

if [ "$#" -ne 3 ]; then
	echo "usage: $0 SIZE_IN_KIB NUMA_NODE COUNT" >&2
	exit 2
fi
wanted=$3
node=${LOWLATENCY_SYSFS:-/sys}/devices/system/node/node$2
pool=$node/hugepages/hugepages-${1}kB/nr_hugepages
attempts=${LOWLATENCY_ATTEMPTS:-30}
pause=${LOWLATENCY_PAUSE:-1}

if [ ! -w "$pool" ]; then
	echo "$pool: no such pool of hugepages; does the kernel offer this size on this NUMA node?" >&2
	exit 1
fi

attempt=1
while :; do
	# The kernel gives what it finds and says so when it is read; a short write is no error.
	echo "$wanted" >"$pool" || true
	reserved=$(cat "$pool")
	if [ "${reserved:-0}" -ge "$wanted" ]; then
		echo "$pool: $reserved hugepages reserved"
		exit 0
	fi
	if [ "$attempt" -ge "$attempts" ]; then
		break
	fi
	attempt=$((attempt + 1))
	# Moves pages together, so that the next attempt finds larger free areas.
	if [ -w "$node/compact" ]; then
		echo 1 >"$node/compact" || true
	fi
	sleep "$pause"
done
echo "$pool: only ${reserved:-0} of $wanted hugepages could be reserved in $attempts attempts" >&2
exit 1
