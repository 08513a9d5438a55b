// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
)

// unitHazards lists units that a node needs, by name without an instance. Those of the platform come on top.
func unitHazards() []Hazard {
	const others = "Remove it, and name the services themselves."
	return []Hazard{
		{names: []string{"*.mount", "*.automount"}, Why: "is a file system, and what is on it would be gone at the next boot", Instead: "Remove it."},
		{names: []string{"*.slice"}, Why: "holds services and pods, all of which would stop", Instead: others},
		{names: []string{"*.target"}, harmless: isOptionalTarget, Why: "starts other units, which would not start either", Instead: others},
		{names: []string{"kubelet.*", "crio.*", "containerd.*", "docker.*", "cri-docker.*"},
			Why: "runs the node's pods, and without it the node is lost to the cluster", Instead: "Remove it."},
		{names: []string{"networkmanager.*", "networkmanager-dispatcher.*", "systemd-networkd.*", "systemd-networkd-persistent-storage.*", "openvswitch.*",
			"ovs-vswitchd.*", "ovsdb-server.*", "ovs-configuration.*", "networking.*", "wickedd*", "nmstate*", "nodeip-configuration.*"},
			Why: "connects the node to its network, and without it the node is lost to the cluster", Instead: "Remove it."},
		{names: []string{"dbus.*", "dbus-broker.*", "dbus-org.*", "systemd-udev*", "systemd-journal*", "systemd-tmpfiles-setup*", "systemd-sysctl.*",
			"systemd-modules-load.*", "systemd-remount-fs.*", "systemd-fsck*", "systemd-sysusers.*", "systemd-logind.*", "systemd-machine-id*",
			"systemd-cryptsetup*", "systemd-random-seed.*", "systemd-user-sessions.*", "initrd-*", "dracut-*", "ignition-*", "ostree-*", "kmod-static-nodes.*"},
			Why: "is a part of the operating system without which other services do not start", Instead: "Remove it."},
		{names: []string{"lowlatency-*"}, Why: "carries out this profile", Instead: "Change the field that the unit carries out."},
		{names: []string{"sshd.*", "ssh.*"}, Acceptable: true, Why: "is the only way to a node that its kubelet has lost", Instead: "Remove it."},
		{names: []string{"systemd-resolved.*", "polkit.*", "iscsid.*", "iscsi.*", "multipathd.*", "lvm2-*", "rpc-statd.*", "nfs-client.*", "dm-event.*"},
			Acceptable: true, Why: "may carry name resolution, disks or updates of the node", Instead: "Remove it."},
	}
}

// isOptionalTarget reports whether a target of systemd.special(7) is one that a server can do without.
func isOptionalTarget(unit string) bool {
	return slices.Contains([]string{"sleep.target", "suspend.target", "hibernate.target", "hybrid-sleep.target", "suspend-then-hibernate.target",
		"ctrl-alt-del.target", "bluetooth.target", "printer.target", "sound.target", "smartcard.target"}, unit)
}

// unitName is the name of a unit in small letters without its instance: systemd has one file for sshd@1.service and
// sshd@2.service.
func unitName(name string) string {
	stem, instance, found := strings.Cut(strings.ToLower(name), "@")
	if !found {
		return stem
	}
	return stem + path.Ext(instance)
}

// unitHazards are those among spec.system.stopServices.
func (p *planner) unitHazards() []hazardousSetting {
	table := append([]Hazard{{
		names: spelled(p.input.Platform.Services, unitName),
		Why:   "belongs to the platform, and without it the node is lost to the platform", Instead: "Remove it.",
	}}, unitHazards()...)
	var found []hazardousSetting
	for i, unit := range p.spec.System.StopServices {
		if hazard, dangerous := hazardOf(table, unitName(string(unit)), unitName(string(unit))); dangerous {
			found = append(found, hazardousSetting{
				field: element("spec.system.stopServices", i), text: string(unit), same: equalTo(string(unit), unitName), Hazard: hazard,
			})
		}
	}
	return found
}

func spelled(names []string, spell func(string) string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = spell(name)
	}
	return out
}

// moduleHazards lists modules by what a node loses with them.
func moduleHazards() []Hazard {
	return []Hazard{
		{names: []string{"overlay", "xfs", "libcrc32c", "crc32c_*", "ext4", "jbd2", "mbcache", "vfat", "fat", "nls_*", "autofs4", "efivarfs"},
			Why: "is a module that file systems of the node or of its containers need", Instead: "Remove it."},
		{names: []string{"nvme*", "sd_mod", "scsi_*", "ahci", "libahci*", "libata", "ata_*", "megaraid*", "mpt3sas", "mpi3mr", "smartpqi", "hpsa",
			"aacraid", "qla2xxx", "lpfc", "bnx2fc", "fcoe", "libfc*", "iscsi_*", "libiscsi*", "virtio", "virtio_ring", "virtio_pci*", "virtio_mmio",
			"virtio_blk", "virtio_scsi", "virtio_net", "vmd", "dm_*", "md_mod", "raid*", "xen_blkfront", "hv_vmbus", "hv_storvsc", "hv_netvsc",
			"vmw_pvscsi", "mmc_*", "sdhci*", "ufshcd*", "target_core*", "t10_pi"},
			Why: "is a module that disks or network of a node may need", Instead: "Remove it."},
		{names: []string{"btrfs", "ext2", "ext3", "squashfs", "erofs", "isofs", "loop", "fuse", "sr_mod", "usb_storage", "uas", "unix", "af_packet",
			"ceph", "libceph", "rbd", "nbd", "nfs", "nfsv3", "nfsv4", "lockd", "cifs", "gfs2", "dlm"},
			Acceptable: true, Why: "is a module that file systems or services of some nodes need", Instead: "Remove it."},
		{names: []string{"veth", "openvswitch"}, Why: "is a module that connects pods to the network", Instead: "Remove it."},
		{names: []string{"bonding", "8021q", "team*", "geneve", "vxlan", "ipip", "ip_gre", "wireguard", "br_netfilter"}, Acceptable: true,
			Why: "is a module that the network of the node or of its pods may need", Instead: "Remove it."},
	}
}

// moduleName is the one spelling of a module's name: kmod takes "-" for "_". No two modules differ in case in a way that
// matters here.
func moduleName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }

func moduleHazard(name string) (Hazard, bool) { return hazardOf(moduleHazards(), moduleName(name), "") }

// moduleHazards are those among spec.system.unloadModules, on this node.
func (p *planner) moduleHazards() []hazardousSetting {
	var found []hazardousSetting
	for i, module := range p.spec.System.UnloadModules {
		hazard, dangerous := moduleHazard(string(module))
		if !dangerous {
			hazard, dangerous = p.nicModuleHazard(string(module))
		}
		if dangerous {
			found = append(found, hazardousSetting{
				field: element("spec.system.unloadModules", i), text: string(module), same: equalTo(string(module), moduleName), Hazard: hazard,
			})
		}
	}
	return found
}

// nicModuleHazard: a module that drives a NIC of this node by which it is reached, or that a pool hands out.
func (p *planner) nicModuleHazard(module string) (Hazard, bool) {
	for _, nic := range p.topology.NICs {
		if nic.Management != "" && moduleName(nic.Driver) == moduleName(module) {
			return Hazard{
				Why:     fmt.Sprintf("drives NIC %s, which carries %s", nic.PCIAddress, nic.Management),
				Instead: "Remove it.", objects: finding.OfNICs(nic.PCIAddress),
			}, true
		}
	}
	for _, pool := range p.input.Pools {
		for _, nic := range pool.NICs {
			if moduleName(nic.Driver) == moduleName(module) {
				return Hazard{
					Why:     fmt.Sprintf("drives NIC %s, which BypassNICPool %s hands out", nic.PCIAddress, pool.Name),
					Instead: "Remove it, or take the NIC out of the pool.", objects: finding.OfNICs(nic.PCIAddress),
				}, true
			}
		}
	}
	return Hazard{}, false
}

// parameterHazards lists kernel parameters (sysctls).
func parameterHazards() []Hazard {
	return []Hazard{
		{names: []string{"kernel.modules_disabled"}, harmless: isOff, Why: "forbids kernel modules until the next boot, and with them NICs and file systems",
			Instead: "Remove it."},
		{names: []string{"kernel.modprobe", "kernel.hotplug", "kernel.poweroff_cmd", "kernel.usermodehelper.*", "kernel.core_pattern", "fs.binfmt_misc.*"},
			Why: "names a program that the kernel starts with all rights", Instead: "Remove it."},
		{names: []string{"kernel.hostname", "kernel.domainname"}, Why: "gives the node another name than the cluster knows it by", Instead: "Remove it."},
		{names: []string{"net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding", "net.ipv6.conf.all.forwarding"}, harmless: isOn,
			Why: "stops the node from passing on packets of its pods", Instead: "Remove it."},
		{names: []string{"kernel.panic"}, harmless: cmdline.RebootsSoon, Why: waitsAfterPanic, Instead: "Write 10, or remove it."},
		{names: []string{"vm.overcommit_memory"}, harmless: func(value string) bool { return value == "0" || value == "1" }, Acceptable: true,
			Why: "lets allocations of pods fail although memory is left; the kubelet expects 1", Instead: "Remove it."},
	}
}

// parameterHazard finds danger in a kernel parameter. The kernel takes "/" in its name for ".".
func parameterHazard(name, value string) (Hazard, bool) {
	return hazardOf(parameterHazards(), strings.ToLower(strings.ReplaceAll(name, "/", ".")), value)
}

// parameterHazards are those among spec.system.kernelParameters.
func (p *planner) parameterHazards() []hazardousSetting {
	var found []hazardousSetting
	for i, parameter := range p.spec.System.KernelParameters {
		if hazard, dangerous := parameterHazard(parameter.Name, strings.TrimSpace(parameter.Value)); dangerous {
			found = append(found, hazardousSetting{
				field: element("spec.system.kernelParameters", i), text: parameter.Name + "=" + parameter.Value, Hazard: hazard,
				same: equalTo(parameter.Name+"="+parameter.Value, strings.TrimSpace),
			})
		}
	}
	return found
}

// kubeletHazards lists fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1).
func kubeletHazards() []Hazard {
	return []Hazard{
		{names: []string{"authentication", "authorization"}, Why: "decides who may run programs in every pod of the node through the kubelet",
			Instead: "Remove it; the platform sets it."},
		{names: []string{"readOnlyPort"}, harmless: func(value string) bool { return value == "0" },
			Why: "lets everybody read the pods of the node without authentication", Instead: "Remove it."},
		{names: []string{"staticPodPath", "staticPodURL"}, Why: "makes the kubelet run pods that the cluster does not know, or not run those of its control plane",
			Instead: "Remove it; the platform sets it."},
		{names: []string{"tlsCertFile", "tlsPrivateKeyFile", "rotateCertificates", "serverTLSBootstrap"},
			Why: "decides by which certificates kubelet and API server know each other", Instead: "Remove it; the platform sets it."},
		{names: []string{"containerRuntimeEndpoint", "imageServiceEndpoint", "cgroupRoot", "cgroupsPerQOS", "providerID", "podCIDR"},
			Why: "must agree with the container runtime or the cluster, else no pod runs", Instead: "Remove it; the platform sets it."},
		{names: []string{"cgroupDriver"}, harmless: func(value string) bool { return value == "systemd" }, Acceptable: true,
			Why: "must agree with the container runtime, else no pod runs", Instead: "Remove it."},
		{names: []string{"registerNode", "enableServer"}, harmless: func(value string) bool { return value == "true" },
			Why: "takes the node away from the cluster", Instead: "Remove it."},
		{names: []string{"tlsMinVersion", "tlsCipherSuites"}, Acceptable: true, Why: "may allow connections that the cluster's policy forbids", Instead: "Remove it."},
		{names: []string{"address", "port", "healthzPort", "healthzBindAddress"}, Acceptable: true,
			Why: "moves the kubelet to where API server, probes and monitoring do not look for it", Instead: "Remove it."},
		{names: []string{"enableDebuggingHandlers", "enableDebugFlagsHandler", "enableContentionProfiling", "enableProfilingHandler", "enableSystemLogQuery"},
			Acceptable: true, Why: "changes which of the kubelet's handlers answer", Instead: "Remove it."},
	}
}

// kubeletHazards are those in spec.kubelet.additionalConfiguration. What cannot be read is refused elsewhere.
func (p *planner) kubeletHazards() []hazardousSetting {
	given := p.spec.Kubelet.AdditionalConfiguration
	if given == "" {
		return nil
	}
	fields, err := parseKubeletConfiguration(given)
	if err != nil {
		return nil
	}
	var found []hazardousSetting
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(p.input.Platform.KubeletFields, name) {
			continue
		}
		if hazard, dangerous := hazardOf(kubeletHazards(), name, scalar(fields[name])); dangerous {
			found = append(found, hazardousSetting{
				field: additionalField, text: name, Hazard: hazard, same: equalTo(name, strings.TrimSpace),
			})
		}
	}
	return found
}

// scalar writes a text, a number or a switch; "" for others.
func scalar(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(value)
	default:
		return ""
	}
}
