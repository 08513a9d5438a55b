#!/bin/sh
# Keeps the interrupts of NICs, and of their virtual functions, on certain CPUs. A driver that resets its NIC, or
# takes its interface down and up, makes new vectors or places the old ones by its own rule, and the kernel
# announces neither; so this looks again and again, and writes only what is wrong.
#
# usage: lowlatency-nic-interrupts SECONDS PCI_ADDRESS=CPUS...
# SECONDS is the time between two looks; 0 looks once.
# LOWLATENCY_SYSFS and LOWLATENCY_PROCFS are where sysfs and procfs are mounted.
set -eu

if [ "$#" -lt 2 ]; then
	echo "usage: $0 SECONDS PCI_ADDRESS=CPUS..." >&2
	exit 2
fi
seconds=$1
shift
sysfs=${LOWLATENCY_SYSFS:-/sys}
procfs=${LOWLATENCY_PROCFS:-/proc}
refused=" "

# expand sets list to the CPUs of a list such as 0-1,40, each between spaces.
expand() {
	list=" "
	rest=$1,
	while [ -n "$rest" ]; do
		range=${rest%%,*}
		rest=${rest#*,}
		cpu=${range%-*}
		while [ -n "$range" ] && [ "$cpu" -le "${range#*-}" ]; do
			list="$list$cpu "
			cpu=$((cpu + 1))
		done
	done
}

# is_within reports whether all CPUs of a list are wanted. irqbalance may choose among them.
is_within() {
	expand "$1"
	for cpu in $list; do
		case $wanted in
		*" $cpu "*) ;;
		*) return 1 ;;
		esac
	done
}

place() {
	file=$procfs/irq/$1/smp_affinity_list
	# A vector may vanish at any time.
	{ read -r have <"$file"; } 2>/dev/null || return 0
	if [ "$have" = "$cpus" ] || is_within "$have"; then
		return 0
	fi
	case $refused in
	*" $1 "*) return 0 ;;
	esac
	if { echo "$cpus" >"$file"; } 2>/dev/null; then
		echo "NIC $nic: moved IRQ $1 from CPUs $have to $cpus"
		return 0
	fi
	refused="$refused$1 "
	echo "NIC $nic: the kernel does not let IRQ $1 be moved from CPUs $have to $cpus" >&2
}

while :; do
	for pair in "$@"; do
		nic=${pair%=*}
		cpus=${pair#*=}
		expand "$cpus"
		wanted=$list
		for vector in "$sysfs/bus/pci/devices/$nic"/msi_irqs/* "$sysfs/bus/pci/devices/$nic"/virtfn*/msi_irqs/*; do
			if [ -e "$vector" ]; then
				place "${vector##*/}"
			fi
		done
	done
	if [ "$seconds" -eq 0 ]; then
		exit 0
	fi
	sleep "$seconds"
done
