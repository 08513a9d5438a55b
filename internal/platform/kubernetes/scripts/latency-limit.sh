#!/bin/sh
# Holds /dev/cpu_dma_latency with the latency of an idle state, so that no CPU goes into a deeper one
# (Documentation/power/pm_qos_interface.rst of Linux). The limit ends with this program.
#
# usage: lowlatency-latency-limit STATE
# STATE is the number of the idle state; where the kernel lists none, the limit is 3 microseconds.
# LOWLATENCY_SYSFS and LOWLATENCY_DEVICES are where sysfs is mounted and devices are.
set -eu

if [ "$#" -ne 1 ]; then
	echo "usage: $0 STATE" >&2
	exit 2
fi
limit=3
file=${LOWLATENCY_SYSFS:-/sys}/devices/system/cpu/cpu0/cpuidle/state$1/latency
if [ -r "$file" ]; then
	read -r limit <"$file"
fi
exec 3>"${LOWLATENCY_DEVICES:-/dev}/cpu_dma_latency"
# The kernel takes what is not four bytes long for a hexadecimal text.
printf '0x%08x' "$limit" >&3
echo "no CPU goes into an idle state with a latency above $limit microseconds"
exec sleep infinity
