#!/bin/sh
# Moves threads of the kernel that may run elsewhere off the CPUs that are not housekeeping CPUs. Whatever the command
# line says, Linux 6.1 lets those of NUMA nodes, kswapd and kcompactd, use all CPUs of their node, and starts each on any
# of them. A thread keeps to its NUMA node where that has housekeeping CPUs. Threads that handle an interrupt follow it
# and are left alone. It can run any number of times.
#
# usage: lowlatency-kernel-threads HOUSEKEEPING_CPUS
# HOUSEKEEPING_CPUS is a list such as 0-1,8-9. LOWLATENCY_PROCFS is where procfs is mounted.
set -eu

if [ "$#" -ne 1 ]; then
	echo "usage: $0 HOUSEKEEPING_CPUS" >&2
	exit 2
fi
procfs=${LOWLATENCY_PROCFS:-/proc}
# PF_KTHREAD and PF_NO_SETAFFINITY, include/linux/sched.h.
kernel_thread=$((0x00200000))
not_movable=$((0x04000000))

# numbers prints the CPUs of a list, in a line and between spaces.
numbers() {
	printf ' '
	for range in $(echo "$1" | tr ',' ' '); do
		cpu=${range%-*}
		while [ "$cpu" -le "${range#*-}" ]; do
			printf '%d ' "$cpu"
			cpu=$((cpu + 1))
		done
	done
}

housekeeping=$(numbers "$1")

# keep prints which of the thread's CPUs are housekeeping CPUs, all housekeeping CPUs where none is, and nothing when
# all are.
keep() {
	kept=
	all=1
	for cpu in $(numbers "$1"); do
		case $housekeeping in
		*" $cpu "*) kept=$kept,$cpu ;;
		*) all=0 ;;
		esac
	done
	if [ "$all" = 0 ]; then
		echo "${kept:-,$2}" | cut -c2-
	fi
}

# is_movable reports whether a line of /proc/PID/stat is that of a kernel thread that may be moved. Its name may hold
# spaces and parentheses.
is_movable() {
	case $1 in
	*"(irq/"*) return 1 ;;
	esac
	# The fields are words on purpose.
	# shellcheck disable=SC2086
	set -- ${1##*) }
	[ $(($7 & kernel_thread)) -ne 0 ] && [ $(($7 & not_movable)) -eq 0 ]
}

moved=0
for folder in "$procfs"/[0-9]*; do
	# A thread may end at any time.
	if ! read -r line 2>/dev/null <"$folder/stat" || ! is_movable "$line"; then
		continue
	fi
	allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$folder/status" 2>/dev/null) || continue
	wanted=$(keep "$allowed" "$1")
	if [ -z "$wanted" ]; then
		continue
	fi
	if taskset -pc "$wanted" "${folder##*/}" >/dev/null; then
		moved=$((moved + 1))
	elif [ -e "$folder/stat" ]; then
		echo "kernel thread ${folder##*/} stays on CPUs $allowed" >&2
	fi
done
echo "$moved threads of the kernel moved to housekeeping CPUs"
