// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package subprocess

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

const asParent = "SUBPROCESS_TEST_PARENT"

// TestEndWithParent kills a process whose own child holds its standard output open, which ends when both are gone.
func TestEndWithParent(t *testing.T) {
	if os.Getenv(asParent) != "" {
		runChild()
		return
	}
	parent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEndWithParent$")
	parent.Env = append(os.Environ(), asParent+"=yes")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "started\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, lines); ended <- err }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the child lives on")
	}
	_ = parent.Wait()
}

func runChild() {
	child := exec.Command("sh", "-c", "echo started; exec sleep 300")
	child.Stdout = os.Stdout
	defer EndWithParent(child)()
	_ = child.Run()
}
