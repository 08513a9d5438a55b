#!/bin/sh
# Gives threads of the kernel that belong to a CPU, such as ksoftirqd/3, a priority of the policy SCHED_FIFO. It can run any
# number of times.
#
# usage: lowlatency-thread-priorities NAME=PRIORITY...
# NAME is that of the threads without the number of their CPU. LOWLATENCY_PROCFS is where procfs is mounted.
set -eu

if [ "$#" -lt 1 ]; then
	echo "usage: $0 NAME=PRIORITY..." >&2
	exit 2
fi
procfs=${LOWLATENCY_PROCFS:-/proc}
# PF_KTHREAD, include/linux/sched.h: a program can give itself any name.
kernel_thread=$((0x00200000))

is_kernel_thread() {
	# The fields are words on purpose.
	# shellcheck disable=SC2086
	set -- ${1##*) }
	[ $(($7 & kernel_thread)) -ne 0 ]
}

changed=0
for folder in "$procfs"/[0-9]*; do
	# A thread may end at any time.
	if ! read -r name 2>/dev/null <"$folder/comm" || ! read -r line 2>/dev/null <"$folder/stat" || ! is_kernel_thread "$line"; then
		continue
	fi
	for pair in "$@"; do
		if [ "${name%/*}" != "${pair%=*}" ] || [ "${name%/*}" = "$name" ]; then
			continue
		fi
		if chrt --fifo --pid "${pair#*=}" "${folder##*/}"; then
			changed=$((changed + 1))
		elif [ -e "$folder/stat" ]; then
			echo "thread $name keeps its priority" >&2
		fi
	done
done
echo "$changed threads of the kernel have their priority"
