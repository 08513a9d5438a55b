// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// watchedUnits are the units that every Read looks at: those that are known to disturb.
func watchedUnits() []string { return []string{"fwupd-refresh.timer"} }

// unitFolders are where systemd finds units, in the order in which it looks (systemd.unit(5)).
func unitFolders() []string {
	return []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
}

// readUnits looks at systemd units by their files: no bus is asked, and nothing is started.
func readUnits(names []string) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		f.Units = map[string]Unit{}
		readMoreUnits(slices.Concat(watchedUnits(), names))(r, f)
	}
}

// readMoreUnits reads units that somebody asked for.
func readMoreUnits(names []string) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		isName := regexp.MustCompile(`^[A-Za-z0-9:_.@\\-]+\.[a-z]+$`)
		for _, name := range names {
			if _, known := f.Units[name]; !known && isName.MatchString(name) && len(name) < 256 {
				f.Units[name] = r.unit(name)
			}
		}
	}
}

// unrecorded is a unit of which a snapshot says nothing: whoever made it did not know the plan.
func unrecorded(file string) Unit {
	const reason = "the snapshot does not hold it"
	return Unit{Installed: Absent[bool](file, reason), Masked: Absent[bool](file, reason), Running: Absent[bool](file, reason)}
}

// unit finds the first file of a unit, which decides whatever the other folders hold.
func (r *reader) unit(name string) Unit {
	if r.unreadable != nil && !slices.Contains(watchedUnits(), name) {
		return unrecorded(unitFolders()[0] + "/" + name)
	}
	unit := Unit{Running: Absent[bool](name, "only services have a control group")}
	if strings.HasSuffix(name, ".service") {
		unit.Running = r.exists("/sys/fs/cgroup/system.slice/" + name)
	}
	for _, folder := range unitFolders() {
		file := folder + "/" + name
		target, err := r.unitFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil:
			unit.Installed, unit.Masked = Known(true, file), Known(target == "/dev/null", file)
		default:
			unit.Installed, unit.Masked = Absent[bool](file, reasonOf(err)), Absent[bool](file, reasonOf(err))
		}
		return unit
	}
	file := unitFolders()[0] + "/" + name
	if _, err := r.directory("/etc"); err != nil {
		unit.Installed, unit.Masked = Absent[bool]("/etc", reasonOf(err)), Absent[bool]("/etc", reasonOf(err))
		return unit
	}
	unit.Installed, unit.Masked = Known(false, file), Known(false, file)
	return unit
}

// unitFile is where the link leads that a unit is installed or enabled by; "" for a file. One that is absent leaves no trace in a snapshot. What
// the unit does is nobody's business: a snapshot holds an empty file.
func (r *reader) unitFile(file string) (string, error) {
	target, err := r.readLink(file)
	switch {
	case err == nil:
		r.taken.link(file, nil)
	case errors.Is(err, errNotLink):
		r.taken.file(file, "", nil)
		return "", nil
	case !errors.Is(err, fs.ErrNotExist):
		r.taken.file(file, "", err)
	}
	return target, err
}

// exists reports whether there is a directory.
func (r *reader) exists(dir string) Fact[bool] {
	_, err := r.directory(dir)
	switch {
	case err == nil:
		return Known(true, dir)
	case errors.Is(err, fs.ErrNotExist):
		return Known(false, dir)
	}
	return Absent[bool](dir, reasonOf(err))
}
