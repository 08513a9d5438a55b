// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	_ "embed" // for the scripts
)

// scriptFolder is writable on image-based hosts, too.
const scriptFolder = "/usr/local/bin/"

var (
	//go:embed scripts/hugepages.sh
	hugepagesScript string
	//go:embed scripts/offline-cpus.sh
	offlineScript string
	//go:embed scripts/dataplane-partition.sh
	dataPlaneScript string
	//go:embed scripts/kernel-threads.sh
	kernelThreadsScript string
	//go:embed scripts/bypass-nic.sh
	bypassNICScript string
	//go:embed scripts/nic-interrupts.sh
	nicInterruptsScript string
)

// addScript puts a script on the host and returns its path.
func (p *planner) addScript(name, content string, origin Origin) string {
	path := scriptFolder + name
	p.addFile(File{Path: path, Mode: 0o755, Content: content, Origin: origin})
	return path
}
