// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// BootLoader is what starts the kernel, and where its arguments are kept.
type BootLoader string

const (
	// GRUB keeps the arguments in its own configuration, which is generated.
	GRUB BootLoader = "GRUB"
	// GRUBWithEntries reads an entry for each kernel (Boot Loader Specification), as RHEL and Fedora have it.
	GRUBWithEntries BootLoader = "GRUBWithEntries"
	// SystemdBoot reads an entry for each kernel.
	SystemdBoot BootLoader = "systemd-boot"
	// OSTree makes a deployment for each change, and an entry for each deployment.
	OSTree BootLoader = "OSTree"
	// Extlinux is the configuration that U-Boot reads.
	Extlinux BootLoader = "extlinux"
	// RaspberryPi is the firmware of that computer.
	RaspberryPi BootLoader = "RaspberryPi"
)

// ContainerRuntime is what runs the containers of pods.
type ContainerRuntime string

const (
	// CRIO is CRI-O.
	CRIO ContainerRuntime = "CRI-O"
	// Containerd is containerd.
	Containerd ContainerRuntime = "containerd"
)

// Software is what is installed on a host and decides how a plan is written there.
type Software struct {
	// OpenShift reports whether the operating system is that of a node of OpenShift.
	OpenShift Fact[bool]
	// BootLoader is absent where none is known by its files.
	BootLoader Fact[BootLoader]
	// KubeletUnit is the unit that runs the kubelet, such as kubelet.service or k3s-agent.service; absent where none does.
	KubeletUnit Fact[string]
	// NoKubelet reports whether the host has no kubelet: no service and no process of one, and no folder in which one of any distribution
	// keeps its state. It is read where the host is there as a whole, and absent elsewhere and where a folder could not be looked for: what
	// nobody has seen may be there all the same.
	NoKubelet Fact[bool]
	// KubeletConfigArguments is the variable KUBELET_CONFIG_ARGS of kubelet.service, by which kubeadm gives the kubelet its
	// configuration file; absent where the unit has none.
	KubeletConfigArguments Fact[string]
	// RancherArguments are the arguments --data-dir and --kubelet-arg, as --name=value, that the files of K3s or RKE2 in /etc/rancher give to the service that
	// runs the kubelet; absent where that is none of theirs, or where a file cannot be read. What its unit gives is not among them.
	RancherArguments Fact[[]string]
	// ContainerRuntime is absent where none is known by its service.
	ContainerRuntime Fact[ContainerRuntime]
	// TuneDProfiles is the folder in which TuneD looks for the profiles of the host's owner; "" where TuneD is not installed or not enabled.
	TuneDProfiles Fact[string]
}

// ReadInstallation reads what ReadConfiguration does, and the software that decides how a plan is written on the host. The
// rest stays empty. Errors are those of Read.
func (h *Host) ReadInstallation(ctx context.Context) (*Facts, error) {
	return h.readSections(ctx, nil, readKernel, h.readProcessor, readCPUs, readNUMANodes, readHugepages, readMemory, readDefaultAffinity,
		readNICs, readKubelet, readWorkloads, readSettings(nil), readNetworks, readSoftware)
}

// readRequestedSoftware is readSoftware for those who ask for it.
func readRequestedSoftware(asked bool) func(*reader, *Facts) {
	if asked {
		return readSoftware
	}
	return func(*reader, *Facts) {}
}

func readSoftware(r *reader, f *Facts) {
	f.Software = Software{
		OpenShift:              r.openShift(),
		BootLoader:             r.bootLoader(),
		KubeletUnit:            r.kubeletUnit(),
		KubeletConfigArguments: r.kubeletConfigArguments(),
		ContainerRuntime:       r.containerRuntime(),
		TuneDProfiles:          r.tunedProfiles(),
	}
	f.Software.RancherArguments = r.rancherArguments(f.Software.KubeletUnit)
	f.Software.NoKubelet = r.noKubelet(f)
}

// kubeletFolders are where kubelets keep their state: each, Rancher's distributions, k0s, and MicroK8s.
func kubeletFolders() []string {
	return []string{"/var/lib/kubelet", "/var/lib/rancher", "/var/lib/k0s", "/var/snap/microk8s"}
}

// noKubelet is known where what is not to be seen is not on the host.
func (r *reader) noKubelet(f *Facts) Fact[bool] {
	if f.Software.KubeletUnit.Known || f.Kubelet.Flags.Known {
		return Known(false, systemSlice)
	}
	if !r.complete {
		return Absent[bool](systemSlice, reasonMissing)
	}
	for _, folder := range kubeletFolders() {
		found := r.exists(folder)
		if !found.Known {
			return found
		}
		if found.Value {
			return Known(false, folder)
		}
	}
	return Known(true, systemSlice)
}

// osReleaseFile and the vendor's, which counts where the first is not there (os-release(5)) and where only the latter is
// mounted.
const (
	osReleaseFile       = "/etc/os-release"
	vendorOSReleaseFile = "/usr/lib/os-release"
)

// openShift reports whether the operating system is that of a node of OpenShift.
func (r *reader) openShift() Fact[bool] {
	found := read(r, source[bool]{osReleaseFile, parseOpenShift})
	if found.Known {
		return found
	}
	if vendor := read(r, source[bool]{vendorOSReleaseFile, parseOpenShift}); vendor.Known {
		return vendor
	}
	return found
}

// parseOpenShift looks for the release of OpenShift that its operating systems name in os-release.
func parseOpenShift(text string) (bool, error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), openShiftVersion) {
			return true, nil
		}
	}
	return false, nil
}

const openShiftVersion = "OPENSHIFT_VERSION="

// essentialRelease keeps the lines of os-release(5) that are read.
func essentialRelease(content string) string {
	return eachLine(content, func(line string) string {
		if strings.HasPrefix(line, "ID=") || strings.HasPrefix(line, openShiftVersion) {
			return line
		}
		return ""
	})
}

// bootLoaderFiles are files by which boot loaders are known, the more particular first: a host of OSTree has the files of
// GRUB, too, and one with entries has a grub.cfg that reads them.
func bootLoaderFiles() []struct {
	file   string
	loader BootLoader
} {
	return []struct {
		file   string
		loader BootLoader
	}{
		{"/run/ostree-booted", OSTree},
		{"/boot/firmware/cmdline.txt", RaspberryPi},
		{"/boot/extlinux/extlinux.conf", Extlinux},
		{"/boot/grub/grub.cfg", GRUB},
		{"/boot/grub2/grub.cfg", GRUB},
		{"/boot/efi/loader/loader.conf", SystemdBoot},
		{"/boot/loader/loader.conf", SystemdBoot},
		{"/efi/loader/loader.conf", SystemdBoot},
	}
}

const bootEntries = "/boot/loader/entries"

func (r *reader) bootLoader() Fact[BootLoader] {
	for _, known := range bootLoaderFiles() {
		found, ok := r.present(known.file).Get()
		switch {
		case !ok || !found:
			continue
		case known.file == "/boot/grub2/grub.cfg" && r.hasEntries():
			return Known(GRUBWithEntries, bootEntries)
		}
		return Known(known.loader, known.file)
	}
	return Absent[BootLoader]("/boot", "no boot loader is known by its files")
}

// hasEntries reports whether there are entries of the Boot Loader Specification.
func (r *reader) hasEntries() bool {
	names, err := r.peekList(bootEntries, func(e entry) bool { return strings.HasSuffix(e.name, ".conf") })
	if err != nil || len(names) == 0 {
		return false
	}
	// One stands for all; what it says is nobody's business.
	r.taken.file(bootEntries+"/"+names[0], "", nil)
	return true
}

// present reports whether the host has a file, whose content is not read. Of a copy that may lack it, nothing is known.
func (r *reader) present(file string) Fact[bool] {
	_, err := r.regular(file)
	switch {
	case err == nil:
		r.taken.file(file, "", nil)
		return Known(true, file)
	case !errors.Is(err, fs.ErrNotExist):
		r.taken.file(file, "", err)
		return Absent[bool](file, reasonOf(err))
	case r.complete || slices.Contains(r.missing, file):
		r.taken.lack(file)
		return Known(false, file)
	}
	return Absent[bool](file, reasonMissing)
}

// KubeletUnits are the services that run a kubelet: of packages and OpenShift, and of Rancher's distributions.
func KubeletUnits() []string {
	return []string{"kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service"}
}

// RuntimeUnits are the services of the container runtimes of packages that run pods in the field.
func RuntimeUnits() []string { return []string{"crio.service", "containerd.service"} }

// UnitsOfPods are the services with which the first pod of a host may start. systemd passes over the names of units that a host does not have.
func UnitsOfPods() []string { return append(KubeletUnits(), RuntimeUnits()...) }

// kubeletUnit is the first of these that runs, else the first that is installed.
func (r *reader) kubeletUnit() Fact[string] {
	for _, name := range KubeletUnits() {
		if running, _ := r.exists(systemSlice + name).Get(); running {
			return Known(name, systemSlice+name)
		}
	}
	for _, name := range KubeletUnits() {
		for _, folder := range unitFolders() {
			if found, _ := r.present(folder + "/" + name).Get(); found {
				return Known(name, folder+"/"+name)
			}
		}
	}
	return Absent[string](systemSlice, "no service of a kubelet is installed")
}

const systemSlice = "/sys/fs/cgroup/system.slice/"

// kubeletConfigVariable is the variable by which kubeadm's drop-in gives the kubelet its configuration file.
const kubeletConfigVariable = "KUBELET_CONFIG_ARGS"

// kubeletConfigArguments reads the variable as systemd does: the drop-ins of all folders in the order of their names, of
// equal names the first folder's, and the last that sets the variable counts. That which the operator writes is left out.
func (r *reader) kubeletConfigArguments() Fact[string] {
	files := map[string]string{}
	for _, folder := range slices.Backward(unitFolders()) {
		folder += "/kubelet.service.d"
		names, err := r.peekList(folder, func(e entry) bool {
			return strings.HasSuffix(e.name, ".conf") && !strings.Contains(e.name, "lowlatency")
		})
		if err != nil {
			continue
		}
		for _, name := range names {
			files[name] = folder + "/" + name
		}
	}
	found := Absent[string]("/etc/systemd/system/kubelet.service.d", "no drop-in sets "+kubeletConfigVariable)
	for _, file := range sortedValues(files) {
		if text, err := r.content(file, smallFile); err == nil {
			if value, ok := variableOf(text, kubeletConfigVariable); ok {
				found = Known(value, file)
			}
		}
	}
	return found
}

// sortedValues are the values of a map in the order of their keys.
func sortedValues(texts map[string]string) []string {
	keys := make([]string, 0, len(texts))
	for key := range texts {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for i, key := range keys {
		keys[i] = texts[key]
	}
	return keys
}

// variableOf is the last value that a unit's lines Environment= give to a variable. Of the quotes of systemd.exec(5), those
// around the whole assignment are known, which is how kubeadm writes it.
func variableOf(text, variable string) (string, bool) {
	value, found := "", false
	for line := range strings.Lines(text) {
		assignment, ok := strings.CutPrefix(strings.TrimSpace(line), "Environment=")
		if !ok {
			continue
		}
		assignment = strings.TrimSpace(assignment)
		if len(assignment) > 1 && assignment[0] == '"' && assignment[len(assignment)-1] == '"' {
			assignment = assignment[1 : len(assignment)-1]
		}
		if given, ok := strings.CutPrefix(assignment, variable+"="); ok {
			value, found = given, true
		}
	}
	return value, found
}

// essentialDropIn keeps of a drop-in of the kubelet what is read of it.
func essentialDropIn(content string) string {
	value, found := variableOf(content, kubeletConfigVariable)
	if !found {
		return ""
	}
	return `Environment="` + kubeletConfigVariable + "=" + essentialFlagText(value) + "\"\n"
}

// containerRuntime is known by its service: CRI-O's, containerd's own, or that of a distribution that brings containerd.
func (r *reader) containerRuntime() Fact[ContainerRuntime] {
	services := []struct {
		unit    string
		runtime ContainerRuntime
	}{
		{"crio.service", CRIO}, {"containerd.service", Containerd}, {"k3s.service", Containerd}, {"k3s-agent.service", Containerd},
		{"rke2-server.service", Containerd}, {"rke2-agent.service", Containerd},
	}
	for _, service := range services {
		if running, _ := r.exists(systemSlice + service.unit).Get(); running {
			return Known(service.runtime, systemSlice+service.unit)
		}
	}
	for _, service := range services {
		for _, folder := range unitFolders() {
			if found, _ := r.present(folder + "/" + service.unit).Get(); found {
				return Known(service.runtime, folder+"/"+service.unit)
			}
		}
	}
	return Absent[ContainerRuntime](systemSlice, "no service of a container runtime is installed")
}

// enabled reports whether systemd starts a unit with multi-user.target. That is a link, and where it leads is not asked: the folder of the vendor's units has two
// names, of which an agent sees one.
func (r *reader) enabled(unit string) Fact[bool] {
	const folder = "/etc/systemd/system"
	file := folder + "/multi-user.target.wants/" + unit
	_, err := r.unitFile(file)
	switch {
	case err == nil:
		return Known(true, file)
	case !errors.Is(err, fs.ErrNotExist):
		return Absent[bool](file, reasonOf(err))
	case r.complete && r.exists(folder).Value || slices.Contains(r.missing, file):
		r.taken.lack(file)
		return Known(false, file)
	}
	return Absent[bool](file, reasonMissing)
}

// tunedProfiles tells the layouts of TuneD apart: since 2.23 profiles have a folder of their own (tuned/consts.py). A TuneD that systemd does
// not start is none: a profile of it would never be in force. Recordings that do not say count as enabled.
func (r *reader) tunedProfiles() Fact[string] {
	const program, folder = "/usr/sbin/tuned", "/etc/tuned"
	installed := r.present(program)
	found, known := installed.Get()
	switch {
	case !known:
		return Absent[string](program, installed.Reason)
	case !found:
		return Known("", program)
	}
	if enabled := r.enabled("tuned.service"); enabled.Known && !enabled.Value {
		return Known("", enabled.Source)
	}
	for _, of := range []string{folder, "/usr/lib/tuned"} {
		if newer, _ := r.exists(of + "/profiles").Get(); newer {
			return Known(folder+"/profiles", of+"/profiles")
		}
	}
	return Known(folder, program)
}
