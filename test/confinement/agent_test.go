// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package confinement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/test/confinement/attempts"
)

func itoa(number int) string { return strconv.Itoa(number) }

// runAsAgent does one of the things that an agent, or whoever has taken it over, would do, and prints the answer as JSON.
func runAsAgent(arguments []string) int {
	mask, err := strconv.ParseUint(os.Getenv("KEEP"), 10, 64)
	if err == nil {
		err = keepOnly(mask)
	}
	var answer any
	if err == nil {
		switch arguments[0] {
		case "attempt":
			answer = attempts.Try(arguments[1], attempts.Trial{Way: arguments[2], Path: arguments[3]})
		case "absent":
			answer, err = absentFacts(arguments[1])
		case "compare":
			answer, err = compare(arguments[1], arguments[2])
		case "nics":
			answer, err = compareNICs(arguments[1], arguments[2])
		case "mounts":
			answer, err = host.MountsBelow(arguments[1])
		}
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// everything asks for all that a Read can give.
func everything() host.Request {
	return host.Request{
		UserSpaces: []string{"/", "/opt/onload"}, Tasks: cpus.Of(0, 1), LatencyHolders: true,
		Units: []string{"irqbalance.service", "fwupd-refresh.timer", "no-such.service"},
	}
}

func facts(root string) (*host.Facts, error) {
	opened, err := host.Open(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	return opened.ReadWith(context.Background(), everything())
}

// absentFacts are the facts of a host that could not be read, with their reasons, apart from those of single processes, which
// come and go.
func absentFacts(root string) ([]string, error) {
	read, err := facts(root)
	if err != nil {
		return nil, err
	}
	read.Processes, read.LatencyHolders = host.Fact[[]host.Process]{}, host.Fact[[]host.Process]{}
	var absent []string
	collect(reflect.ValueOf(*read), "", func(text string) { absent = append(absent, text) })
	return absent, nil
}

func collect(v reflect.Value, path string, found func(text string)) {
	switch v.Kind() {
	case reflect.Struct:
		collectFields(v, path, found)
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), fmt.Sprintf("%s[%d]", path, i), found)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			collect(v.MapIndex(key), path+"["+fmt.Sprint(key)+"]", found)
		}
	default:
	}
}

func collectFields(v reflect.Value, path string, found func(text string)) {
	if known := v.FieldByName("Known"); known.IsValid() && known.Kind() == reflect.Bool && !known.Bool() {
		found(path + ": " + v.FieldByName("Source").String() + ": " + v.FieldByName("Reason").String())
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			collect(v.Field(i), path+"."+v.Type().Field(i).Name, found)
		}
	}
}

// compare tells how the facts of two hosts differ.
func compare(one, other string) (string, error) {
	first, err := facts(one)
	if err != nil {
		return "", err
	}
	second, err := facts(other)
	if err != nil {
		return "", err
	}
	// Secrets are beside that file, so that it is not mounted, and its check does not apply to agents.
	first.PlatformPods, second.PlatformPods = host.Fact[bool]{}, host.Fact[bool]{}
	return cmp.Diff(first, second), nil
}

// compareNICs tells how what is read of NICs and Onload differs on two hosts.
func compareNICs(one, other string) (string, error) {
	var read [2]*host.Facts
	for i, root := range []string{one, other} {
		opened, err := host.Open(root)
		if err != nil {
			return "", err
		}
		read[i], err = opened.ReadNICs(context.Background(), host.Request{UserSpaces: []string{"/opt/onload"}})
		if err := errors.Join(err, opened.Close()); err != nil {
			return "", err
		}
		// These are for others, see deviceplugin.Source.
		read[i].Bypass.SocketReports = host.Fact[map[string]host.SocketReport]{}
	}
	return cmp.Diff(read[0], read[1]), nil
}
