#!/bin/sh
# Takes CPUs offline before the kubelet counts them. It fails when one stays online.
#
# usage: lowlatency-offline-cpus CPU...
# LOWLATENCY_SYSFS is where sysfs is mounted.
set -eu

cpus=${LOWLATENCY_SYSFS:-/sys}/devices/system/cpu
failed=0
for cpu in "$@"; do
	switch=$cpus/cpu$cpu/online
	if [ ! -w "$switch" ]; then
		echo "$switch: CPU $cpu cannot be taken offline" >&2
		failed=1
		continue
	fi
	echo 0 >"$switch" || true
	if [ "$(cat "$switch")" != 0 ]; then
		echo "$switch: CPU $cpu stays online" >&2
		failed=1
	fi
done
exit "$failed"
