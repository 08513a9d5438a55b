#!/bin/sh
# Turns the cgroup of the data plane into a partition of its own, whose CPUs the scheduler does not balance.
#
# usage: lowlatency-dataplane-partition CGROUP
# LOWLATENCY_SYSFS is where sysfs is mounted.
set -eu

partition=${LOWLATENCY_SYSFS:-/sys}/fs/cgroup/$1/cpuset.cpus.partition
if [ ! -w "$partition" ]; then
	echo "$partition: no such file; cgroup v2 with the cpuset controller is needed" >&2
	exit 1
fi
echo isolated >"$partition" || true
state=$(cat "$partition")
if [ "$state" != isolated ]; then
	echo "$partition: the kernel says $state" >&2
	exit 1
fi
