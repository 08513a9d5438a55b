// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package stackdump

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
)

// stack is what onload_stackdump lots prints about stack 1 with one socket, which a process has open or not.
func stack(pids string, user, kernel, percent int) string {
	return fmt.Sprintf("ci_netif_dump_to_logger: stack=1 name=feed\n  namespace=net:[4026532001]\n  uk_intf_ver=%032x\npids: %s\n", 10, pids) +
		fmt.Sprintf("UDP 1:9 lcl=192.0.2.1:5001 rmt=0.0.0.0:0 UDP\n  rcv: q_pkts=0 reap=0 tot_pkts=%d\n", user) +
		fmt.Sprintf("  rcv: os=%d(%d%%) os_slow=0 os_error=0\n----\nul_accepts: 0\n", kernel, percent)
}

// noProgram is what a container runtime says of a program that the image does not have.
func noProgram(name string) error {
	return fmt.Errorf("exec failed: exec: %q: executable file not found in $PATH: unknown", name)
}

func TestAsk(t *testing.T) {
	const (
		inside   = "env LD_PRELOAD= /opt/onload/usr/bin/onload_stackdump lots"
		byPath   = "env LD_PRELOAD= onload_stackdump lots"
		bare     = "/opt/onload/usr/bin/onload_stackdump lots"
		barePath = "onload_stackdump lots"
		readlink = "readlink /proc/self/ns/net"
		list     = "ls /proc"
		look     = "ls /proc/1/fd /proc/12/fd"
	)
	// What is not listed is not in the image.
	type programs map[string]Ended
	// whose adds what tells whose stack 1 is, in the network namespace 4026532001.
	whose := func(namespace string, listed, looked Ended) programs {
		return programs{inside: {Output: stack("", 5, 0, 0)}, readlink: {Output: namespace}, list: listed, look: looked}
	}
	const own, other = "net:[4026532001]\n", "net:[4026532002]\n"
	processes := Ended{Output: "1\n12\nbus\nself\n"}
	ended := Ended{ExitCode: 2, Output: "/proc/1/fd:\n0\n1\n", Complaint: "ls: cannot access '/proc/12/fd': No such file or directory"}
	closed := Ended{ExitCode: 2, Output: "/proc/1/fd:\n0\n", Complaint: "ls: cannot open directory '/proc/12/fd': Permission denied"}
	notFound := Ended{ExitCode: 127, Complaint: "env: 'onload_stackdump': No such file or directory"}
	preloaded := Ended{ExitCode: 255, Complaint: "onload_stackdump should not itself be run under onload acceleration."}
	looks := []string{inside, readlink, list, look}
	cases := map[string]struct {
		programs programs
		want     onload.State
		message  string
		commands []string
	}{
		"mounted by the pool": {programs{inside: {Output: stack("7", 5, 0, 0)}}, onload.Accelerated, "5 datagrams", []string{inside}},
		"on the image's PATH": {programs{inside: notFound, byPath: {Output: stack("7", 0, 5, 100)}}, onload.ReceivesThroughKernel, "5 of 5", []string{inside, byPath}},
		"an image without env": {
			programs{barePath: {Output: ""}}, onload.NoStack, "no process", []string{inside, bare, barePath},
		},
		"without env, and with LD_PRELOAD": {
			programs{bare: preloaded}, onload.Unknown, "the container runtime found no command env", []string{inside, bare},
		},
		"preloaded by the image itself": {
			programs{inside: preloaded}, onload.Unknown, "see that the image has no /etc/ld.so.preload", []string{inside},
		},
		"nowhere":             {programs{}, onload.Unknown, "the container has no onload_stackdump", []string{inside, bare, barePath}},
		"nowhere, but env":    {programs{inside: notFound, byPath: notFound}, onload.Unknown, "has no onload_stackdump", []string{inside, byPath}},
		"another build":       {programs{inside: {ExitCode: 255, Complaint: "Could not open /dev/onload (rc=-79) - check"}}, onload.Unknown, "is of another build", []string{inside}},
		"aborted":             {programs{inside: {ExitCode: 134, Output: "strerror: Permission denied"}}, onload.Unknown, "(strerror: Permission denied)", []string{inside}},
		"a bus error":         {programs{inside: {ExitCode: 135}}, onload.Unknown, "ended by SIGBUS", []string{inside}},
		"something else":      {programs{inside: {Output: "welcome"}}, onload.Unknown, `cannot be read (line 1: "welcome" is not what onload_stackdump prints)`, []string{inside}},
		"somebody's stack":    {whose(other, processes, closed), onload.NoStack, "no process", looks},
		"perhaps its own":     {whose(own, processes, closed), onload.Unknown, "sees stack 1", looks},
		"a neighbour's":       {whose(own, processes, Ended{Output: "/proc/1/fd:\n0\n\n/proc/12/fd:\n"}), onload.NoStack, "although stack 1 is in its network namespace", looks},
		"while processes end": {whose(own, processes, ended), onload.NoStack, "although stack 1", looks},
		"no process listed":   {whose(own, Ended{Output: "self\n"}, closed), onload.Unknown, "sees stack 1", looks[:3]},
		"many processes": {
			whose(own, Ended{Output: strings.Repeat("7\n", maximumProcesses)}, closed), onload.Unknown, "sees stack 1", looks[:3],
		},
		"without ls":          {programs{inside: {Output: stack("", 5, 0, 0)}, readlink: {Output: own}}, onload.Unknown, "and that the image has ls", looks[:3]},
		"without readlink":    {programs{inside: {Output: stack("", 5, 0, 0)}}, onload.Unknown, "add readlink", looks[:3]},
		"a namespace of sort": {whose("4026532002", processes, closed), onload.Unknown, "add readlink", looks},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var commands []string
			got := Ask(t.Context(), func(_ context.Context, command []string) (Ended, error) {
				line := strings.Join(command, " ")
				commands = append(commands, line)
				if ended, has := tc.programs[line]; has {
					return ended, nil
				}
				return Ended{}, noProgram(command[0])
			}, time.Minute)
			if got.State != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %s: %s", got.State, got.Message)
			}
			if diff := cmp.Diff(tc.commands, commands); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAskInVain(t *testing.T) {
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	cases := map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"no right":  {t.Context(), errors.New(`pods "feed" is forbidden: User "u" cannot create resource "pods/exec"`), `(pods "feed" is forbidden: User "u" cannot create resource "pods/exec"); see that you may create pods/exec`},
		"a command": {t.Context(), errors.New("\x1b[2Jgone"), "could not be run in the container ([2Jgone); "},
		"too much":  {t.Context(), ErrTooMuch, "wrote more than 16777216 bytes"},
		"too late":  {late, context.DeadlineExceeded, "did not end within 10s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Ask(tc.ctx, func(context.Context, []string) (Ended, error) { return Ended{}, tc.err }, 10*time.Second)
			if got.State != onload.Unknown || !strings.Contains(got.Message, tc.want) {
				t.Errorf("got %s: %s", got.State, got.Message)
			}
		})
	}
}
