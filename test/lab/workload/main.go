// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

// Workload is what pods of the lab run: it holds what a program of a trading team would hold, says what the kernel
// gave it, and waits. Without arguments it holds nothing, which is what the sandbox of a pod does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// said is what is printed.
type said struct {
	// CPUs and MemoryNodes are those that the kernel lets the program use.
	CPUs        string `json:"cpus"`
	MemoryNodes string `json:"memoryNodes"`
	// HugepageNodes are the NUMA nodes of its hugepages, as numa_maps names them, such as N0=8.
	HugepageNodes []string `json:"hugepageNodes"`
	// Environment are the variables about devices.
	Environment []string `json:"environment"`
	// Devices are the device files that it could open for reading and writing, and their states.
	Devices map[string]string `json:"devices"`
	// Files are the contents of files it was asked to read, or why it could not.
	Files map[string]string `json:"files,omitempty"`
}

func main() {
	hugepages := flag.Int("hugepages", 0, "how many hugepages of 2 MiB to hold")
	devices := flag.String("devices", "", "device files to open, as patterns with commas between them")
	files := flag.String("files", "", "files to read, with commas between them")
	queues := flag.String("queues", "", "the environment variable that names queues for AF_XDP")
	trials := flag.String("try", "", "what to try, as JSON, in place of all else; what came of each is printed")
	address := flag.String("get", "", "an https address to ask, with the TOKEN of the environment, in place of all else; the status is printed")
	connect := flag.String("connect", "", "a TCP address to connect to, in place of all else; what comes of it is printed")
	listen := flag.String("listen", "", "a TCP address to take connections at, in place of all else")
	flag.Parse()
	switch {
	case *connect != "":
		exit(dial(*connect))
	case *listen != "":
		exit(take(*listen))
	case *trials != "":
		exit(try(*trials))
	case *address != "":
		exit(get(*address, os.Getenv("TOKEN")))
	case flag.NFlag() > 0:
		err := hold(*hugepages, list(*devices), list(*files))
		if err == nil && *queues != "" {
			err = receive(os.Getenv(*queues))
		}
		if err != nil {
			exit(err)
		}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	<-ctx.Done()
}

// exit ends the program, with a word about the error if there is one.
func exit(err error) {
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func hold(hugepages int, patterns, files []string) error {
	if err := mapHugepages(hugepages); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("reading what the kernel gave: %w", err)
	}
	s := said{
		CPUs: field(string(status), "Cpus_allowed_list:"), MemoryNodes: field(string(status), "Mems_allowed_list:"),
		Environment: aboutDevices(os.Environ()), Devices: map[string]string{}, Files: map[string]string{},
	}
	if s.HugepageNodes, err = hugepageNodes(); err != nil {
		return err
	}
	if err := s.open(patterns); err != nil {
		return err
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		s.Files[path] = strings.TrimSpace(string(content))
		if err != nil {
			s.Files[path] = err.Error()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// mapHugepages takes hugepages and writes to each, so that the kernel has to find it.
func mapHugepages(count int) error {
	if count == 0 {
		return nil
	}
	memory, err := syscall.Mmap(-1, 0, count<<21, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|syscall.MAP_HUGETLB)
	if err != nil {
		return fmt.Errorf("mapping %d hugepages: %w", count, err)
	}
	for page := range count {
		memory[page<<21] = 1
	}
	return nil
}

func aboutDevices(environment []string) []string {
	var about []string
	for _, variable := range environment {
		for _, prefix := range []string{"PCIDEVICE_", "AFXDP_", "EF_", "LD_PRELOAD", "ONLOAD_"} {
			if strings.HasPrefix(variable, prefix) {
				about = append(about, variable)
			}
		}
	}
	return about
}

// field is the rest of the line that begins with a name.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, name); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// hugepageNodes reads where the pages of huge mappings are (Documentation/filesystems/proc.rst, numa_maps).
func hugepageNodes() ([]string, error) {
	maps, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		return nil, fmt.Errorf("reading where hugepages are: %w", err)
	}
	var nodes []string
	for line := range strings.Lines(string(maps)) {
		words := strings.Fields(line)
		if !strings.Contains(line, " huge ") {
			continue
		}
		for _, word := range words {
			if strings.HasPrefix(word, "N") && strings.Contains(word, "=") {
				nodes = append(nodes, word)
			}
		}
	}
	return nodes, nil
}

// vfioGroupGetStatus is VFIO_GROUP_GET_STATUS of include/uapi/linux/vfio.h: _IO(';', 100 + 3).
const vfioGroupGetStatus = ';'<<8 | 103

// open opens device files and leaves them open. The kernel says of a group of VFIO whether all its devices can be
// used from user space.
func (s *said) open(patterns []string) error {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("looking for %s: %w", pattern, err)
		}
		for _, path := range paths {
			s.Devices[path] = openDevice(path)
		}
	}
	return nil
}

func openDevice(path string) string {
	handle, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	if !strings.HasPrefix(path, "/dev/vfio/") || filepath.Base(path) == "vfio" {
		return "open"
	}
	return groupStatus(handle)
}
