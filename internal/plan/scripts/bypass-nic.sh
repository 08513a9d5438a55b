#!/bin/sh
# Creates the virtual functions of one NIC, and binds them, or the NIC itself, to a driver, before the kubelet
# starts. It can run any number of times. It removes no virtual function, takes no device that the host or a pod
# uses, touches no other device, and gives a device that it could not bind back to its own driver.
#
# usage: lowlatency-bypass-nic PCI_ADDRESS VIRTUAL_FUNCTIONS DRIVER ISOLATION
# VIRTUAL_FUNCTIONS 0 binds the NIC itself. DRIVER is that of user space, or kept. ISOLATION is IOMMU, NoIOMMU or
# none.
# LOWLATENCY_SYSFS and LOWLATENCY_PROCFS are where sysfs and procfs are mounted, LOWLATENCY_ATTEMPTS how often to
# look for a driver, LOWLATENCY_PAUSE how many seconds to wait in between.
set -eu

if [ "$#" -ne 4 ]; then
	echo "usage: $0 PCI_ADDRESS VIRTUAL_FUNCTIONS DRIVER ISOLATION" >&2
	exit 2
fi
nic=$1
count=$2
driver=$3
isolation=$4
sysfs=${LOWLATENCY_SYSFS:-/sys}
procfs=${LOWLATENCY_PROCFS:-/proc}
attempts=${LOWLATENCY_ATTEMPTS:-30}
pause=${LOWLATENCY_PAUSE:-1}
pci=$sysfs/bus/pci

fail() {
	echo "NIC $nic: $*" >&2
	exit 1
}

# retry runs a command until it succeeds.
retry() {
	attempt=1
	until "$@"; do
		if [ "$attempt" -ge "$attempts" ]; then
			return 1
		fi
		attempt=$((attempt + 1))
		sleep "$pause"
	done
}

# driver_of prints the name of a device's driver, or nothing.
driver_of() {
	link=$(readlink "$pci/devices/$1/driver" || true)
	echo "${link##*/}"
}

has_driver() { [ -n "$(driver_of "$1")" ]; }

is_bound() { [ "$(driver_of "$1")" = "$driver" ]; }

# has_default_route looks for an interface in the routes of the kernel, as net/ipv4/fib_trie.c and
# net/ipv6/route.c write them.
has_default_route() {
	if [ -r "$procfs/net/route" ]; then
		while read -r name destination _; do
			if [ "$name" = "$1" ] && [ "$destination" = 00000000 ]; then
				return 0
			fi
		done <"$procfs/net/route"
	fi
	if [ -r "$procfs/net/ipv6_route" ]; then
		while read -r _ length _ _ _ _ _ _ _ name; do
			if [ "$name" = "$1" ] && [ "$length" = 00 ]; then
				return 0
			fi
		done <"$procfs/net/ipv6_route"
	fi
	return 1
}

# has_free_interface_or_no_driver fails when the host uses the interface of a device, and is true once it is known that nobody does. The
# kernel shows the driver of a device before the driver has made its interface, and for a moment also one that does not take the device
# (really_probe in drivers/base/dd.c).
has_free_interface_or_no_driver() {
	interfaces=0
	for folder in "$pci/devices/$1"/net/* "$pci/devices/$1"/virtio*/net/*; do
		if [ ! -e "$folder" ]; then
			continue
		fi
		interfaces=$((interfaces + 1))
		interface=${folder##*/}
		if [ -e "$folder/master" ]; then
			fail "$interface belongs to a bond or bridge of the host; it is left alone"
		fi
		if has_default_route "$interface"; then
			fail "$interface carries the default route of the host; it is left alone"
		fi
	done
	holder=$(driver_of "$1")
	[ "$interfaces" -gt 0 ] || [ -z "$holder" ]
}

# check_unused fails when the host or a pod uses the interface of a device.
check_unused() {
	retry has_free_interface_or_no_driver "$1" ||
		fail "device $1 has driver $holder but no interface on the host; a pod may hold it, so it is left alone"
}

create_functions() {
	numvfs=$pci/devices/$nic/sriov_numvfs
	retry has_driver "$nic" || fail "it has no driver, and only its driver can create virtual functions"
	[ -w "$numvfs" ] || fail "it has no SR-IOV; switch it on in the firmware of the NIC and of the host"
	read -r have <"$numvfs"
	if [ "$have" -eq "$count" ]; then
		return
	fi
	if [ "$have" -ne 0 ]; then
		# The kernel changes the number only by removing all (Documentation/PCI/pci-iov-howto.rst).
		fail "it has $have virtual functions and not $count, and pods may hold them: reboot, and let nothing else create any"
	fi
	if [ "$driver" != kept ]; then
		# No network driver takes them in between.
		echo 0 >"$pci/devices/$nic/sriov_drivers_autoprobe" || true
	fi
	echo "$count" >"$numvfs" || true
	read -r have <"$numvfs"
	[ "$have" -eq "$count" ] || fail "the kernel created $have of $count virtual functions; its log says why"
	echo "NIC $nic: created $count virtual functions"
}

# check_isolation fails when nothing would keep the device from the memory of the host, unless that is wanted.
check_isolation() {
	if [ -e "$pci/devices/$1/iommu_group" ]; then
		return
	fi
	if [ "$isolation" != NoIOMMU ]; then
		fail "device $1 has no IOMMU group: the IOMMU is off in the firmware or on the kernel's command line"
	fi
	unsafe=$sysfs/module/vfio/parameters/enable_unsafe_noiommu_mode
	[ -w "$unsafe" ] || fail "this kernel has no VFIO without an IOMMU (CONFIG_VFIO_NOIOMMU)"
	echo 1 >"$unsafe"
}

# take gives a device to the driver, from whichever has it. Another driver that began to probe the device before the override was written
# ends up with it, so this is to be tried again.
take() {
	if is_bound "$1"; then
		return 0
	fi
	has_free_interface_or_no_driver "$1" || return 1
	if [ -e "$device/driver/unbind" ]; then
		echo "$1" >"$device/driver/unbind"
	fi
	echo "$1" >"$pci/drivers_probe" || true
	is_bound "$1"
}

# give_back lets the device's own driver have it again.
give_back() {
	echo >"$device/driver_override"
	echo "$1" >"$pci/drivers_probe" || true
}

# bind gives a device to the driver for as long as the kernel runs (Documentation/ABI/testing/sysfs-bus-pci, driver_override).
bind() {
	device=$pci/devices/$1
	if is_bound "$1"; then
		return
	fi
	check_unused "$1"
	check_isolation "$1"
	taken=$1
	trap 'give_back "$taken"' EXIT
	echo "$driver" >"$device/driver_override"
	retry take "$1" || fail "$driver does not take device $1; its own driver has it back, and the kernel's log says why"
	trap - EXIT
	echo "NIC $nic: bound $1 to $driver"
}

retry [ -e "$pci/devices/$nic" ] || fail "there is no such device"
if [ "$count" -gt 0 ]; then
	create_functions
fi
if [ "$driver" = kept ]; then
	exit 0
fi
if [ ! -d "$pci/drivers/$driver" ]; then
	modprobe "$driver" || true
	[ -d "$pci/drivers/$driver" ] || fail "the kernel has no driver $driver"
fi
if [ "$count" -eq 0 ]; then
	bind "$nic"
	exit 0
fi
number=0
while [ "$number" -lt "$count" ]; do
	link=$(readlink "$pci/devices/$nic/virtfn$number") || fail "virtual function $number is missing"
	bind "${link##*/}"
	number=$((number + 1))
done
