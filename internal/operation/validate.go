// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package operation

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
)

const (
	// maximumOperations, maximumContent: a plan has some dozen operations of some kilobytes. More is a mistake, and the
	// journal of a host must not fill its disk.
	maximumOperations = 512
	maximumContent    = 256 << 10
	// maximumLine is what every architecture's kernel takes as its command line, the arguments of others included.
	maximumLine = 2048
)

// The names that systemd, modprobe, sysctl and the kernel take. None can hold a line break, a quote or a way out of a folder.
var (
	unitName     = regexp.MustCompile(`^[A-Za-z0-9_:@][A-Za-z0-9_.:@-]*[.](service|socket|timer|path|target|mount|slice)$`)
	moduleName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
	sysctlName   = regexp.MustCompile(`^[a-z0-9_-]+([.][A-Za-z0-9_-]+)+$`)
	kernelValue  = regexp.MustCompile(`^[A-Za-z0-9_.,:/+ -]*$`)
	argumentText = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.,:;/@+=!&%*~-]*)?$`)
	profileName  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)
)

// Validate refuses operations that no guard carries out: unknown ones, those on paths outside the table, texts that could
// break out of a file or a command line, two operations on one thing. Its error has one line for each reason.
func Validate(operations []Operation) error {
	if len(operations) > maximumOperations {
		return fmt.Errorf("there are %d operations, and at most %d are carried out", len(operations), maximumOperations)
	}
	var problems []error
	seen := map[string]bool{}
	for i := range operations {
		o := &operations[i]
		if err := o.validate(); err != nil {
			problems = append(problems, err)
		}
		if about := o.about(); seen[about] {
			problems = append(problems, fmt.Errorf("there are two operations for %s", about))
		}
		seen[o.about()] = true
	}
	return errors.Join(problems...)
}

// about is what an operation changes, for people and for finding two operations on one thing.
func (o *Operation) about() string {
	switch {
	case o.Path != "":
		return o.Path
	case o.Kind == KernelArguments:
		return "the kernel's command line"
	default:
		return strings.ToLower(string(o.Kind)) + " " + o.Name
	}
}

func (o *Operation) validate() error {
	if !slices.Contains(Kinds(), o.Kind) {
		return fmt.Errorf("there is no operation of the kind %q", o.Kind)
	}
	for _, check := range []func() error{o.validatePath, o.validateName, o.validateState, o.validateTexts, o.validateFields} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operation) validatePath() error {
	if _, has := places()[o.Kind]; !has {
		return nil
	}
	if !Allowed(o.Kind, o.Path) {
		return fmt.Errorf("%q is not among the paths that operations of the kind %s may change", o.Path, o.Kind)
	}
	if strings.HasPrefix(o.Path, guardProgram) {
		return fmt.Errorf("%s is the guard's own, and no operation changes it", o.Path)
	}
	if made := o.made(); made != "" && made != o.Path {
		return fmt.Errorf("%s %q is written to %s and not to %q", o.Kind, o.Name, made, o.Path)
	}
	return nil
}

// made is the path that follows from the name, "" for kinds without one.
func (o *Operation) made() string {
	switch o.Kind {
	case Unit:
		return MaskUnit(o.Name).Path
	case TuneDProfile:
		return PutTuneDProfileIn(path.Dir(path.Dir(o.Path)), o.Name, "").Path
	case DropIn:
		return PutDropIn(o.Name, o.Path[strings.LastIndex(o.Path, "/")+1:], "").Path
	default:
		return ""
	}
}

func (o *Operation) validateName() error {
	patterns := map[Kind]*regexp.Regexp{
		Unit: unitName, DropIn: unitName, Service: unitName, Module: moduleName, Sysctl: sysctlName, TuneDProfile: profileName,
	}
	pattern := patterns[o.Kind]
	switch {
	case pattern == nil && o.Name != "":
		return fmt.Errorf("an operation of the kind %s has no name, and this one is called %q", o.Kind, o.Name)
	case pattern != nil && !pattern.MatchString(o.Name):
		return fmt.Errorf("%q is not a name that an operation of the kind %s can have", o.Name, o.Kind)
	case o.Kind == Unit || o.Kind == DropIn || o.Kind == Service:
		return o.validateUnit()
	default:
		return nil
	}
}

// validateUnit keeps the units of others as they are, and those running that a host is reached by.
func (o *Operation) validateUnit() error {
	switch {
	case isGuards(o.Name):
		return fmt.Errorf("unit %s is the guard's own, and no operation changes it", o.Name)
	case o.Kind == Unit && o.Content != "" && !strings.Contains(o.Name, "lowlatency") && o.Name != dataPlaneSlice:
		return fmt.Errorf("unit %s is not ours: its content is not replaced, drop-ins are", o.Name)
	case protected(o.Name) && (o.State == Masked || o.State == Stopped):
		return fmt.Errorf("without unit %s nobody reaches the host any more, so it is not stopped or masked", o.Name)
	default:
		return nil
	}
}

// guardProgram is the guard, and what the names of its units begin with.
const (
	guardProgram = "/usr/local/bin/lowlatency-guard"
	guardUnits   = "lowlatency-guard"
)

// isGuards tells that a unit is one of the guard's, or a name by which drop-ins are for them, too: systemd takes those of
// a-.service for each unit whose name begins with a- (systemd.unit(5)).
func isGuards(unit string) bool {
	name, _, _ := strings.Cut(unit, ".")
	return strings.HasPrefix(name, guardUnits) || strings.HasSuffix(name, "-") && strings.HasPrefix(guardUnits, name)
}

// dataPlaneSlice has no dash in its name, because systemd would make it the child of another slice.
const dataPlaneSlice = "dataplane.slice"

// protected units are what a host and its cluster are reached by.
func protected(unit string) bool {
	name, _, _ := strings.Cut(unit, ".")
	return strings.HasPrefix(name, "systemd-") || slices.Contains([]string{
		"containerd", "crio", "dbus", "dbus-broker", "docker", "k3s", "k3s-agent", "kubelet", "network",
		"networking", "NetworkManager", "rke2-agent", "rke2-server", "ssh", "sshd",
	}, name)
}

func (o *Operation) validateState() error {
	states := map[Kind][]State{
		Unit:    {Present, Enabled, Masked},
		Module:  {Loaded, Unloaded},
		Service: {Started, Stopped, Restarted},
	}
	allowed, has := states[o.Kind]
	if has && !slices.Contains(allowed, o.State) || !has && o.State != "" {
		return fmt.Errorf("%q is not a state of %s", o.State, o.about())
	}
	if o.Kind == Unit && (o.State == Masked) != (o.Content == "") {
		return fmt.Errorf("unit %s needs a content unless it is masked", o.Name)
	}
	return o.validateStarts()
}

// validateStarts keeps the links of an enabled unit in folders of units, and the guard from depending on it.
func (o *Operation) validateStarts() error {
	for _, s := range o.starts() {
		if !unitName.MatchString(s.unit) {
			return fmt.Errorf("%q, by which unit %s is to be started, is not the name of a unit", s.unit, o.Name)
		}
		if isGuards(s.unit) {
			return fmt.Errorf("unit %s is the guard's own, and does not start unit %s", s.unit, o.Name)
		}
	}
	return nil
}

func (o *Operation) validateTexts() error {
	if len(o.Content) > maximumContent {
		return fmt.Errorf("the content of %s has %d bytes, and at most %d are written", o.Path, len(o.Content), maximumContent)
	}
	if !kernelValue.MatchString(o.Value) {
		return fmt.Errorf("the value %q of %s holds characters that no setting of the kernel has", o.Value, o.about())
	}
	for _, argument := range o.Arguments {
		if !argumentText.MatchString(argument) {
			return fmt.Errorf("%q is not written to the kernel's command line: it holds characters that are not allowed", argument)
		}
	}
	for _, argument := range o.Arguments {
		if value, is := strings.CutPrefix(argument, panicParameter); is && !cmdline.RebootsSoon(value) {
			return fmt.Errorf("with %s a kernel that panics does not come back within a minute by itself: write %s", argument, panicArgument)
		}
	}
	if length := len(strings.Join(o.Arguments, " ")); length > maximumLine {
		return fmt.Errorf("the kernel arguments have %d bytes, and at most %d are added", length, maximumLine)
	}
	return nil
}

// hasContent and hasValue say which fields operations of a kind have.
func (k Kind) hasContent() bool {
	return slices.Contains([]Kind{File, Unit, DropIn, TuneDProfile, RuntimeDropIn, KubeletDropIn}, k)
}

func (k Kind) hasValue() bool { return k == Sysctl || k == Sysfs }

// validateFields refuses fields that an operation of the kind does not have: nobody would carry them out.
func (o *Operation) validateFields() error {
	_, hasPath := places()[o.Kind]
	for _, field := range []struct {
		name       string
		given, has bool
	}{
		{"path", o.Path != "", hasPath},
		{"content", o.Content != "", o.Kind.hasContent()},
		{"mode", o.Mode != 0, o.Kind.hasContent() && o.State != Masked},
		{"value", o.Value != "", o.Kind.hasValue()},
		{"arguments", len(o.Arguments) > 0, o.Kind == KernelArguments},
		{"fallback", o.Fallback != "", o.Kind == KernelArguments},
	} {
		if field.given && !field.has {
			return fmt.Errorf("the operation on %s is of the kind %s, which has no %s", o.about(), o.Kind, field.name)
		}
	}
	return o.validateMeaning()
}

// validateMeaning refuses operations that would do nothing, or harm.
func (o *Operation) validateMeaning() error {
	switch {
	case o.Kind.hasValue() && o.Value == "":
		return fmt.Errorf("%s is set to no value", o.about())
	case o.Kind.hasContent() && o.State != Masked && !safeMode(o.Mode):
		return fmt.Errorf("%s would have the mode %#o: it must be readable, and writable by its owner alone", o.Path, o.Mode)
	case o.Fallback != "" && o.Fallback != ByHandAccepted:
		return fmt.Errorf("%q is no fallback: %s, or none", o.Fallback, ByHandAccepted)
	case o.Kind == KernelArguments && MarkerOf(o.Arguments) != Marker(o.Arguments):
		return errors.New("the kernel arguments have no marker, so that nobody could tell which kernel came up")
	default:
		return nil
	}
}

// safeMode reports whether a file of this mode is readable, and writable by its owner alone.
func safeMode(mode int) bool { return mode > 0 && mode <= 0o777 && mode&0o400 != 0 && mode&0o022 == 0 }
