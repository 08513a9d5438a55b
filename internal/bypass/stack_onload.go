// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	fileOnload     = "libonload.so"
	fileExtensions = "libonload_ext.so.1"
	fileLauncher   = "onload"
	fileStackdump  = "onload_stackdump"
)

func onloadStack() Stack {
	return Stack{
		Type: v1alpha1.StackOnload, Sample: "tick-to-trade/pool.yaml", Section: "Onload",
		AcceleratesSockets: true,
		HasStackdump:       true,
		hasSection:         func(s *v1alpha1.BypassStack) bool { return s.Onload != nil },
		needs:              func(s *v1alpha1.BypassStack) needs { return onloadNeeds(s.Onload) },
		supported:          (*candidate).supported,
		eligible:           []rule{(*candidate).nativeXDP},
		rules:              onloadRules((*candidate).interfaceVersion, (*candidate).userVersion),
		badSettings: func(s *v1alpha1.BypassStack) []string {
			_, bad := good(s.Onload.Options, CheckOption)
			return bad
		},
		addEdits: addOnloadEdits(onloadSettings),
		shares:   sharesByVirtualInterfaces,
	}
}

// onloadNeeds: the release is one for module and user files. /dev/sfc_char is not opened by sockets, but by the
// extensions and tools of the same installation, so it is given where it is. The tool that prints what stacks received
// must be of the module's build, so it comes along.
func onloadNeeds(o *v1alpha1.OnloadStack) needs {
	n := needs{
		moduleVersion: string(o.Version), moduleField: "spec.stack.onload.version",
		userVersion: string(o.Version), userField: "spec.stack.onload.version",
		userSpace:    o.UserSpace,
		sameBuild:    true,
		overXDP:      o.Datapath == v1alpha1.DatapathExperimentalAFXDP,
		experimental: o.Datapath == v1alpha1.DatapathExperimentalAFXDP,
		start:        onloadStart(o),
		otherNICs:    " Other NICs are reached by spec.stack.onload.datapath ExperimentalAFXDP only.",
		nodes:        []string{nodeOnload, nodeOnloadEpoll},
		nodesForAll:  true,
		modules:      []string{moduleOnload, moduleResource},
		library:      fileOnload,
		files:        []string{fileOnload},
		extras:       []string{fileExtensions, fileStackdump},
	}
	if n.start == v1alpha1.StartLauncher {
		n.files = append(n.files, fileLauncher)
	}
	return n
}

// onloadStart fills in the default of the field.
func onloadStart(o *v1alpha1.OnloadStack) v1alpha1.OnloadStart {
	switch {
	case o.Start != "":
		return o.Start
	case o.UserSpace.Source == v1alpha1.UserSpaceHostPath:
		return v1alpha1.StartPreload
	default:
		return v1alpha1.StartApplication
	}
}

// onloadSettings are the EF_ variables of the profile, with the pool's options over them, in ascending order of their
// names.
func onloadSettings(held []*candidate) []Variable {
	in := held[0].in
	o := in.Pool.Spec.Stack.Onload
	values := profileOptions(in, cmp.Or(o.Profile, v1alpha1.OnloadProfileLatency))
	options, _ := good(o.Options, CheckOption)
	for _, option := range options {
		values[option.Name] = option.Value
	}
	variables := make([]Variable, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variables = append(variables, Variable{name, values[name]})
	}
	return variables
}

// profileOptions are the options of Onload's profiles latency and latency-best
// (scripts/onload_profiles/latency.opf, latency-best.opf).
func profileOptions(in Input, profile v1alpha1.OnloadProfile) map[string]string {
	values := map[string]string{}
	if profile == v1alpha1.OnloadProfileNone {
		return values
	}
	values["EF_POLL_USEC"] = "100000"
	values["EF_TCP_FASTSTART_INIT"] = "0"
	values["EF_TCP_FASTSTART_IDLE"] = "0"
	if profile == v1alpha1.OnloadProfileLatency {
		return values
	}
	values["EF_CTPIO_SWITCH_BYPASS"] = "1"
	values["EF_EPOLL_MT_SAFE"] = "1"
	values["EF_TPH_MODE"] = "2"
	if !mayHaveFastX2(in) {
		values["EF_CTPIO_MODE"] = "ct"
	}
	return values
}

// mayHaveFastX2 reports whether a NIC of series X2 runs above 10 Gbit/s, or may: a NIC that sends faster than the CPU
// writes would cut frames off in mid-air, which arrive as poisoned ones. Like the vendor's script it looks at all
// NICs of the node, because a stack uses every one that it can reach. Unlike it, it takes an unknown speed for a
// high one: a link that comes up later must not spoil the frames of a running container.
func mayHaveFastX2(in Input) bool {
	const tenGigabit = 10000
	return slices.ContainsFunc(candidatesOfNode(in), func(c *candidate) bool {
		speed, known := c.nic.SpeedMegabits.Get()
		return c.model.Series == "X2" && c.nic.Driver.Value == c.model.Driver && (!known || speed > tenGigabit)
	})
}

func candidatesOfNode(in Input) []*candidate {
	all := make([]*candidate, 0, len(in.Facts.NICs))
	for _, nic := range in.Facts.NICs {
		all = append(all, newCandidate(in, nic, nil))
	}
	return all
}

// interfaceVersion wants libonload.so and the module to have one interface version (uk_intf_ver). With another, the
// module refuses the library, and the program runs on kernel sockets and exits 0. How the library holds its checksum is up
// to the compiler, so that one which is not found may be there: another one is only said where it is found. What is
// not known of the checksum keeps no NIC back when the library names a release, which userVersion compares.
func (c *candidate) interfaceVersion() verdict {
	file, ok := c.library()
	if !ok || file.Unreadable != "" || !c.isLoaded() {
		return passed()
	}
	version := c.bypass().Onload.InterfaceVersion
	if v := absent(version, "The interface version (uk_intf_ver) of the module onload", file.Path+" may not fit it",
		remedyProc); v.level != levelPassed {
		return v
	}
	others := c.otherInterfaces(file)
	switch {
	case file.HoldsChecksum(version.Value):
		return passed()
	case len(others) > 0:
		return failed("%s%s has interface version %s and the module onload%s wants %s (uk_intf_ver of %s), so programs run "+
			"on kernel sockets; install module and user files of one build.", file.Path, inBrackets(file.Version),
			strings.Join(others, " or "), inBrackets(c.bypass().Onload.Version.Value), version.Value, version.Source)
	case file.Version == "":
		return unknown("%s names neither a release of Onload nor the interface version %s (uk_intf_ver of %s) that the module "+
			"onload wants; see that the file is a library of Onload.", file.Path, version.Value, version.Source)
	default:
		return noted("Whether %s%s is of the build of the module onload is not known: no interface version of a module was "+
			"found in it, and the module wants %s (uk_intf_ver of %s). Run a program with EF_NO_FAIL=0: its first socket fails "+
			"with EPERM when they are of two builds.", file.Path, inBrackets(file.Version), version.Value, version.Source)
	}
}

// efviInterface is the checksum of ef_vi that every library claims since 2014 (ef_vi_set_intf_ver of Onload's
// src/lib/ciul/pt_endpoint.c).
const efviInterface = "1518b4f7ec6834a578c7a807736097ce"

// otherInterfaces are the checksums of a libonload.so of which one must be that of a module: those that are neither the
// control plane's nor ef_vi's. These are told by the libraries of the same installation that hold them alone. Where
// libefcp.so does not tell that of the control plane, which every libonload.so holds, one checksum may be it, and
// of two one is not.
func (c *candidate) otherInterfaces(file host.UserFile) []string {
	controlPlane := c.checksumsOf(fileCPlane)
	known := append(slices.Concat(controlPlane, c.checksumsOf(fileEFVI)), efviInterface)
	checksums, areAll := file.Checksums()
	tellsControlPlane := slices.ContainsFunc(checksums, func(sum string) bool { return slices.Contains(controlPlane, sum) })
	others := slices.DeleteFunc(checksums, func(sum string) bool { return slices.Contains(known, sum) })
	if !areAll || !tellsControlPlane && len(others) < 2 {
		return nil
	}
	return others[:min(len(others), 2)]
}

// checksumsOf are the checksums that another file of the installation holds.
func (c *candidate) checksumsOf(name string) []string {
	file, _ := c.file(name)
	checksums, _ := file.Checksums()
	return checksums
}
