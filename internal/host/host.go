// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Host is a Linux host that can be read: below a root directory, or from a snapshot. Its methods may be
// called from several goroutines, but not after Close.
type Host struct {
	// path is what the host was opened by, for messages.
	path string
	tree tree

	// cpuinfo is what /proc/cpuinfo of a running host said when it was first read.
	cpuinfo atomic.Pointer[cpuinfo]
	// interrupts and softirqs are the tables as they were read latest.
	interrupts, softirqs atomic.Pointer[counterTable]
	// deviceInterrupts is what stood for interrupts where they are hidden.
	deviceInterrupts atomic.Pointer[counterTable]
}

// Open opens a host: a directory that holds proc and sys ("/", "/host", an unpacked snapshot), or an
// archive of one (tar, plain or compressed with gzip or bzip2; recognised by its content; its entries may
// be below one common folder, or in the folder fsroot of it). Close it after use. Errors name the path.
//
// Who reads a running host again and again should keep it open: up to Linux 5.17, the first Read of each
// Host interrupts every CPU once (see readProcessor).
func Open(path string) (*Host, error) {
	opened, err := openTree(path)
	if err != nil {
		return nil, fmt.Errorf("opening host %s: %w", path, err)
	}
	return &Host{path: path, tree: opened}, nil
}

func openTree(path string) (tree, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	switch {
	case info.IsDir():
		return openHostDirectory(path)
	case info.Mode().IsRegular():
		return openArchive(path)
	}
	return nil, errors.New("neither a directory nor a file")
}

func openHostDirectory(path string) (tree, error) {
	opened, err := openDirectory(path)
	if err != nil {
		return nil, err
	}
	view := opened.view()
	defer view.release()
	if !isHost(view) {
		return nil, errors.Join(errNoHost, opened.Close())
	}
	return opened, nil
}

func openArchive(path string) (tree, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer closeRead(file)
	read, err := readArchive(file, defaultArchiveLimits())
	if err != nil {
		return nil, err
	}
	return rootOf(read)
}

// closeRead closes a file that was only read from: it has nothing to lose.
func closeRead(file io.Closer) { _ = file.Close() }

var errNoHost = errors.New("it holds neither proc nor sys")

// rootOf finds the root of a host in an archive: at the top, in the only folder there, or in that folder's fsroot,
// where hwloc-gather-topology puts it when it gathers the processors' CPUID besides.
func rootOf(read *memoryTree) (tree, error) {
	if isHost(read) {
		return read, nil
	}
	folders := read.directories()
	if len(folders) != 1 {
		return nil, errNoHost
	}
	below := read.below(folders[0])
	if isHost(below) {
		return below, nil
	}
	if slices.Contains(below.directories(), "fsroot") {
		if root := below.below("fsroot"); isHost(root) {
			return root, nil
		}
	}
	return nil, errNoHost
}

// hostFolders are the folders by which a host is recognised; one of them is enough.
func hostFolders() []string { return []string{"/proc", "/sys"} }

func isHost(v view) bool {
	for _, name := range hostFolders() {
		if found, err := newWalk(v).resolve(relative(name)); err == nil && found.node.kind == kindDirectory {
			return true
		}
	}
	return false
}

// Close releases the host.
func (h *Host) Close() error { return h.tree.Close() }

// Request is what a Read is to look at beyond what every Read does.
type Request struct {
	// Settings are further small files below /proc/sys and /sys for Facts.Settings, by absolute path: those
	// that a plan sets and SettingPaths does not list. Other paths become absent facts.
	Settings []string
	// UserSpaces are the folders, as absolute paths of the host, below which user files of a bypass stack are
	// looked for: the keys of Facts.Bypass.UserSpaces. "/" is the host's own installation.
	UserSpaces []string
	// Tasks are the CPUs of a running host whose threads are looked for: all threads are looked at for that, which
	// takes tens of milliseconds on a busy host, so this is not for those who read often. The empty set asks for
	// none. Of a copy, all threads are read in any case.
	Tasks cpus.Set
	// Units are names of systemd units for Facts.Units.
	Units []string
	// Software asks for what decides how a plan is written on the host.
	Software bool
	// LatencyHolders asks for the processes that hold /dev/cpu_dma_latency open, if the limit in it cannot be read.
	LatencyHolders bool
}

// Read reads the host. What the host does not report is an absent fact. An error names the file that makes
// no sense and on which everything else hangs: the CPU lists, the CPU lists of NUMA nodes, the tables of
// interrupts and softirqs, a directory with more entries than any host has. A canceled context is an error.
func (h *Host) Read(ctx context.Context) (*Facts, error) { return h.ReadWith(ctx, Request{}) }

// ReadWith reads like Read, and what is requested besides.
func (h *Host) ReadWith(ctx context.Context, request Request) (*Facts, error) {
	return h.read(ctx, request, nil)
}

// ReadMore reads what is requested and not among the facts of a Read yet, and returns the facts with it; the facts that were given
// stay as they are. It is for those who know what to ask for only when they know what the host is. Errors are those of Read.
func (h *Host) ReadMore(ctx context.Context, facts *Facts, request Request) (*Facts, error) {
	more := *facts
	more.Settings, more.Units, more.Bypass.UserSpaces = maps.Clone(facts.Settings), maps.Clone(facts.Units), maps.Clone(facts.Bypass.UserSpaces)
	err := h.readInto(ctx, &more, nil,
		readMoreSettings(request.Settings), readMoreTasks(request.Tasks), readMoreUnits(request.Units), readMoreUserSpaces(request.UserSpaces),
		readRequestedHolders(request.LatencyHolders))
	if err != nil {
		return nil, err
	}
	return &more, nil
}

// Snapshot writes an archive (tar, gzip) of the files that Read reads and nothing else, from which Open
// and Read give the same Facts. Equal hosts give equal bytes: entries are sorted, without times or owners.
// Of a file that says more than the facts need, only what they need is kept, see essential; of the kubelet's configuration, what
// essentialConfiguration keeps; of the libraries in defaultUserSpaces, what they say about their versions.
func (h *Host) Snapshot(ctx context.Context, w io.Writer) error {
	_, err := h.SnapshotWith(ctx, w, Disclosed)
	return err
}

// Disclosure is whether a snapshot tells whose host it is.
type Disclosure int

// Values of Disclosure.
const (
	// Disclosed keeps the names that the facts have.
	Disclosed Disclosure = iota
	// Redacted puts others in their place, see redaction. Checks and plans say the same, but for these names.
	Redacted
)

// SnapshotWith writes like Snapshot, and returns what the archive holds.
func (h *Host) SnapshotWith(ctx context.Context, w io.Writer, disclosure Disclosure) (Contents, error) {
	taken := newRecording()
	facts, err := h.read(ctx, Request{UserSpaces: defaultUserSpaces()}, taken)
	if err == nil {
		err = h.readInto(ctx, facts, taken, readSoftware)
	}
	if err != nil {
		return Contents{}, err
	}
	view := h.tree.view()
	defer view.release()
	contents, err := taken.writeAs(disclosure, newWalk(view), w)
	if err != nil {
		return Contents{}, fmt.Errorf("writing a snapshot of host %s: %w", h.path, err)
	}
	return contents, nil
}

// ReadNICs reads what package bypass judges NICs by: the kernel's release, NUMA nodes, hugepages, the NICs, on a host
// with Onload the processes of interest, and Facts.Bypass with the requested user spaces. The rest stays empty, the interrupts of NICs
// included, and of the request the rest is not looked at. It is for those who look every few seconds. Errors are those
// of Read.
func (h *Host) ReadNICs(ctx context.Context, request Request) (*Facts, error) {
	return h.readSections(ctx, nil, readKernel, readNUMANodes, readHugepages, readNICs, readStackProcesses, readBypass(request.UserSpaces))
}

// ReadHardware reads what a topology is made from: the kernel, processor, CPUs, NUMA nodes, hugepages, memory and NICs, and
// the routes and interfaces by which the NICs of the cluster's own traffic are found, and whether the platform's pods are told from others. The rest stays empty. It is for those who
// plan and look no further, and takes two thirds of the time of Read. Errors are those of Read.
func (h *Host) ReadHardware(ctx context.Context) (*Facts, error) {
	return h.readSections(ctx, nil, readKernel, h.readProcessor, readCPUs, readNUMANodes, readHugepages, readMemory, readNICs, readNetworks, readWorkloads)
}

// ReadConfiguration reads what ReadHardware does and what a plan is compared with, which says how a host is configured and not what runs
// on it: the settings, the default affinity of interrupts, and the kubelet's configuration. The rest stays empty. Errors are
// those of Read.
func (h *Host) ReadConfiguration(ctx context.Context) (*Facts, error) {
	return h.readSections(ctx, nil, readKernel, h.readProcessor, readCPUs, readNUMANodes, readHugepages, readMemory, readDefaultAffinity,
		readNICs, readKubelet, readWorkloads, readSettings(nil), readNetworks)
}

// read reads everything, and records what it touches if asked to.
func (h *Host) read(ctx context.Context, request Request, taken *recording) (*Facts, error) {
	return h.readSections(ctx, taken,
		readKernel, h.readProcessor, readCPUs, readNUMANodes, readHugepages, readMemory, h.readInterrupts, readRunQueues,
		readNICs, readProcesses, readTasks(request.Tasks), readKubelet, readWorkloads, readPodGroups, readSettings(request.Settings),
		readUptime, readTraffic, readUncore, readUnits(request.Units), readRequestedHolders(request.LatencyHolders),
		readBypass(request.UserSpaces), readRequestedSoftware(request.Software),
	)
}

// readSections fills Facts section by section.
func (h *Host) readSections(ctx context.Context, taken *recording, sections ...func(*reader, *Facts)) (*Facts, error) {
	facts := &Facts{}
	if err := h.readInto(ctx, facts, taken, sections...); err != nil {
		return nil, err
	}
	return facts, nil
}

func (h *Host) readInto(ctx context.Context, facts *Facts, taken *recording, sections ...func(*reader, *Facts)) error {
	view := h.tree.view()
	defer view.release()
	r := newReader(ctx, view, taken)
	for _, dir := range hostFolders() {
		// Errors do not matter: this is only to show in a snapshot that the folder was there.
		_, _ = r.directory(dir)
	}
	for _, section := range sections {
		section(r, facts)
	}
	if r.err != nil {
		return fmt.Errorf("reading host %s: %w", h.path, r.err)
	}
	return nil
}
