// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package operation

import (
	"path"
	"strings"
)

// start is a unit that starts another one, and what the folder with its link ends in.
type start struct{ unit, suffix string }

// starts are the units by which systemd starts an Enabled unit; none for other operations.
func (o *Operation) starts() []start {
	if o.Kind != Unit || o.State != Enabled {
		return nil
	}
	var starts []start
	for line := range strings.Lines(o.Content) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		suffix := map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires"}[key]
		if suffix == "" {
			continue
		}
		for by := range strings.FieldsSeq(value) {
			starts = append(starts, start{by, suffix})
		}
	}
	return starts
}

// Links are the paths of the links by which systemd starts an Enabled unit at boot, as systemctl enable makes them.
func (o *Operation) Links() []string {
	starts := o.starts()
	links := make([]string, len(starts))
	for i, s := range starts {
		links[i] = path.Join(path.Dir(o.Path), s.unit+s.suffix, o.Name)
	}
	return links
}
