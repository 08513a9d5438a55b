// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Hold keeps everything as it is until somebody removes the file that LAB_HOLD names, which says how to look around. Without
// LAB_HOLD it keeps nothing.
func Hold(how string, progress io.Writer) error {
	path := os.Getenv("LAB_HOLD")
	if path == "" {
		return nil
	}
	if err := os.WriteFile(path, []byte(how), 0o600); err != nil {
		return fmt.Errorf("keeping everything for somebody to look around: %w", err)
	}
	report(progress, "everything is kept until %s is removed, which holds how to look around", path)
	for isThere := true; isThere; {
		time.Sleep(time.Second)
		_, err := os.Stat(path)
		isThere = err == nil
	}
	return nil
}
