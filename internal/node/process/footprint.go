// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// agentGCPercent makes the garbage collector of an agent run twice as often as usual. A pass over a host leaves some
// megabytes behind, of which little lives on, and comes so seldom that the time does not matter.
const agentGCPercent = 50

// collectOften sets agentGCPercent unless the environment says otherwise.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(agentGCPercent)
	}
}

// forgetStart takes the pages of the program file that starting has read out of this process. Before main()
// all packages of a program are initialized, which touches far more of it than an agent goes on to use. Nothing is lost: they are pages of a file, unchanged, and are mapped again when
// they are used, so that VmRSS after the next passes tells what the agent really needs. The kernel keeps them cached as
// long as there is room, for whoever runs the same image, and, as MADV_COLD says, gives them up first when there is none.
func forgetStart() error {
	const path = "/proc/self/smaps"
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the mappings of this process: %w", err)
	}
	for _, m := range unchangedMappings(string(content)) {
		for _, advice := range []uintptr{unix.MADV_COLD, unix.MADV_DONTNEED} {
			_, _, problem := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, advice)
			// Kernels before 5.4 do not know MADV_COLD, and can do without.
			if problem != 0 && advice != unix.MADV_COLD {
				return fmt.Errorf("giving back the mapping at %#x: %w", m.start, problem)
			}
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unchangedMappings finds the read-only mappings of files in the text of proc_pid_smaps(5). A mapping with a page of its
// own (Anonymous), such as one that the dynamic linker or a debugger has changed, is none: dropping that would lose it.
func unchangedMappings(smaps string) []mapping {
	var unchanged []mapping
	var latest mapping
	for line := range strings.Lines(smaps) {
		fields := append(strings.Fields(line), "", "")
		switch {
		case !strings.HasSuffix(fields[0], ":"):
			latest = readOnlyFile(fields)
		case latest.end > 0 && fields[0] == "Anonymous:" && fields[1] == "0":
			unchanged = append(unchanged, latest)
		}
	}
	return unchanged
}

// readOnlyFile is the mapping that the first line of an entry describes; zero for one of another kind.
func readOnlyFile(fields []string) mapping {
	const permissionsField, pathField = 1, 5
	var found mapping
	if len(fields) <= pathField || !strings.HasPrefix(fields[pathField], "/") {
		return mapping{}
	}
	if permissions := fields[permissionsField]; permissions != "r-xp" && permissions != "r--p" {
		return mapping{}
	}
	if _, err := fmt.Sscanf(fields[0], "%x-%x", &found.start, &found.end); err != nil {
		return mapping{}
	}
	return found
}
