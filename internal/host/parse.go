// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

func parseName(text string) (string, error) {
	if text == "" {
		return "", errors.New("empty")
	}
	return text, nil
}

func parseNumber(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("not a number: %q", abbreviate(text))
	}
	return number, nil
}

func parseCount(text string) (uint64, error) {
	count, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("not a count: %q", abbreviate(text))
	}
	return count, nil
}

// parseIdentifier reads a number that is negative where the kernel does not know it.
func parseIdentifier(text string) (int, error) {
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("not a number: %q", abbreviate(text))
	}
	if number < 0 {
		return 0, fmt.Errorf("the kernel reports %d", number)
	}
	return int(number), nil
}

// parseNUMANode reads numa_node of a device: NUMA_NO_NODE is -1.
func parseNUMANode(text string) (int, error) {
	number, err := parseIdentifier(text)
	if err != nil && strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("the firmware reports %s", abbreviate(text))
	}
	return number, err
}

func parseSwitch(text string) (bool, error) {
	number, err := parseNumber(text)
	return number != 0, err
}

// parseDistances reads one row of the table of NUMA distances.
func parseDistances(text string) ([]int, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, errors.New("no distances")
	}
	if len(fields) > maxNUMANodes {
		return nil, tooManyError{maxNUMANodes}
	}
	distances := make([]int, len(fields))
	for i, field := range fields {
		distance, err := parseIdentifier(field)
		if err != nil {
			return nil, err
		}
		distances[i] = distance
	}
	return distances, nil
}

// parseMemory returns how to read one line of meminfo ("MemTotal:  263 kB", of a NUMA node
// "Node 0 MemTotal:  263 kB") in bytes.
func parseMemory(key string) func(text string) (int64, error) {
	return func(text string) (int64, error) {
		for line := range strings.Lines(text) {
			name, value, ok := strings.Cut(line, ":")
			if !ok || name != key && !strings.HasSuffix(name, " "+key) {
				continue
			}
			digits := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB"))
			kibibytes, err := parseNumber(digits)
			if err == nil && (kibibytes < 0 || kibibytes > 1<<50) {
				err = fmt.Errorf("not an amount of memory: %q", abbreviate(digits))
			}
			return kibibytes << 10, err
		}
		return 0, fmt.Errorf("no line %s", key)
	}
}

// parseNUMAStatistic returns how to read one line of numastat of a NUMA node, such as "numa_foreign 0".
func parseNUMAStatistic(key string) func(text string) (uint64, error) {
	return func(text string) (uint64, error) {
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == key {
				return parseCount(strings.TrimSpace(value))
			}
		}
		return 0, fmt.Errorf("no line %s", key)
	}
}

// parseColonPairs reads lines of the form "key : value" and keeps the first value of each wanted key.
// /proc/cpuinfo repeats its keys for every processor.
func parseColonPairs(text string, wanted ...string) map[string]string {
	found := make(map[string]string, len(wanted))
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if !ok || len(line) > longLine {
			continue
		}
		name = strings.TrimSpace(name)
		for _, key := range wanted {
			if _, known := found[key]; key == name && !known {
				found[key] = strings.TrimSpace(value)
			}
		}
		if len(found) == len(wanted) {
			break
		}
	}
	return found
}
