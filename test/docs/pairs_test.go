// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// serverAddress is where the servers of the probe listen when nothing else is said.
const serverAddress = "127.0.0.1:2048"

// TestCommandsOfTwoHosts runs the commands that measure between two hosts between two programs of this one: each server in the order in
// which it is there, until the next one, and the clients that follow it. A client without a server in its block takes one of its own kind.
func TestCommandsOfTwoHosts(t *testing.T) {
	if !*all {
		t.Skip("make docs-test runs these")
	}
	w := newWorld(t)
	w.run(t, &command{file: "pairs_test.go", text: "make traffic"})
	w.env = append(w.env, "PATH="+w.dir+"/bin:"+valueOf(w.env, "PATH"))
	stop, clients := func() {}, 0
	for _, c := range allCommands(t) {
		if r, _ := ruleOf(&c); r.need != pairs {
			continue
		}
		if !strings.Contains(c.text, " --client ") {
			stop()
			stop = w.serve(t, &c)
			continue
		}
		clients++
		hasMeasured(t, &c, w.run(t, &c))
	}
	stop()
	if clients == 0 {
		t.Error("no client has run")
	}
}

// hasMeasured fails where a client has printed no result. An outcome that is no pass is told as an error, too, and that it was measured is what
// counts here.
func hasMeasured(t *testing.T, c *command, out string) {
	t.Helper()
	if strings.TrimSpace(out) == "" && !strings.Contains(c.text, ">") {
		t.Errorf("%s:%d: no result", c.file, c.line)
	}
	for line := range strings.Lines(out) {
		if told, is := strings.CutPrefix(line, "error: "); is && !strings.HasPrefix(told, "inconclusive (") && !strings.HasPrefix(told, "failed (") {
			t.Errorf("%s:%d: %s", c.file, c.line, line)
		}
	}
}

// valueOf is that of a variable which an environment has; the last one counts.
func valueOf(env []string, name string) string {
	value := ""
	for _, one := range env {
		if found, is := strings.CutPrefix(one, name+"="); is {
			value = found
		}
	}
	return value
}

// serve starts a server, and waits until somebody can connect to it.
func (w *world) serve(t *testing.T, c *command) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	server, said := exec.CommandContext(ctx, "bash", "-c", "exec "+w.textOf(c)), &strings.Builder{}
	server.Dir, server.Env, server.Stdout, server.Stderr = w.dir, w.env, said, said
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 10 * time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var failure error
	ended := make(chan struct{})
	go func() {
		failure = server.Wait()
		close(ended)
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if connection, err := net.Dial("tcp", serverAddress); err == nil {
			_ = connection.Close()
			break
		}
		select {
		case <-ended:
			t.Fatalf("%s:%d: the server has ended: %v\n%s", c.file, c.line, failure, said)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s:%d: nobody listens at %s\n%s", c.file, c.line, serverAddress, said)
		}
	}
	return func() {
		cancel()
		<-ended
	}
}
