// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	nodeOnload      = "/dev/onload"
	nodeOnloadEpoll = "/dev/onload_epoll"
	nodeSFCChar     = "/dev/sfc_char"
	nodeVFIO        = "/dev/vfio/vfio"

	fileOnload     = "libonload.so"
	fileExtensions = "libonload_ext.so.1"
	fileTCPDirect  = "libonload_zf.so.1"
	fileCPlane     = "libefcp.so.1"
	fileEFVI       = "libciul.so.1"
	fileLauncher   = "onload"
	fileStackdump  = "onload_stackdump"

	moduleOnload   = "onload"
	moduleResource = "sfc_resource"
	moduleChar     = "sfc_char"

	driverVFIO = "vfio-pci"
)

// stack is what a pool's stack needs of a node, whichever section of the spec says it.
type stack struct {
	kind v1alpha1.StackType
	// moduleVersion and userVersion are the releases that the spec asks for; "" for any. The fields say where.
	moduleVersion, moduleField string
	userVersion, userField     string
	userSpace                  v1alpha1.UserSpaceSpec
	// experimental tells that Onload reaches the NIC by AF_XDP.
	experimental bool
	start        v1alpha1.OnloadStart
	// nodes are the device files that must be there, modules the kernel modules.
	nodes, modules []string
	// library is the file whose version is that of the user space.
	library string
	// files must be there with userSpace.source HostPath; extras are handed on where they are.
	files, extras []string
}

// stackOf reads the section of the spec that its type names. ParsePool makes sure that there is one.
func stackOf(spec *v1alpha1.BypassNICPoolSpec) stack {
	switch {
	case spec.Stack.Onload != nil:
		return onloadStack(spec.Stack.Onload)
	case spec.Stack.TCPDirect != nil:
		return tcpDirectStack(spec.Stack.TCPDirect)
	case spec.Stack.EFVI != nil:
		return efviStack(spec.Stack.EFVI)
	case spec.Stack.AFXDP != nil:
		return stack{kind: v1alpha1.StackAFXDP}
	default:
		return stack{kind: v1alpha1.StackVFIO, nodes: []string{nodeVFIO}}
	}
}

// onloadStack: the release is one for module and user files. /dev/sfc_char is not opened by sockets, but by the
// extensions and tools of the same installation, so it is given where it is. The tool that prints what stacks received
// must be of the module's build, so it comes along.
func onloadStack(o *v1alpha1.OnloadStack) stack {
	s := stack{
		kind:          v1alpha1.StackOnload,
		moduleVersion: string(o.Version), moduleField: "spec.stack.onload.version",
		userVersion: string(o.Version), userField: "spec.stack.onload.version",
		userSpace:    o.UserSpace,
		experimental: o.Datapath == v1alpha1.DatapathExperimentalAFXDP,
		start:        onloadStart(o),
		nodes:        []string{nodeOnload, nodeOnloadEpoll},
		modules:      []string{moduleOnload, moduleResource},
		library:      fileOnload,
		files:        []string{fileOnload},
		extras:       []string{fileExtensions, fileStackdump},
	}
	if s.start == v1alpha1.StartLauncher {
		s.files = append(s.files, fileLauncher)
	}
	return s
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

// tcpDirectStack: zf opens /dev/sfc_char for the NIC and /dev/onload for the control plane, and loads
// libefcp.so.1 when it starts.
func tcpDirectStack(t *v1alpha1.TCPDirectStack) stack {
	return stack{
		kind:          v1alpha1.StackTCPDirect,
		moduleVersion: string(t.OnloadVersion), moduleField: "spec.stack.tcpDirect.onloadVersion",
		userVersion: string(t.Version), userField: "spec.stack.tcpDirect.version",
		userSpace: t.UserSpace,
		nodes:     []string{nodeSFCChar, nodeOnload},
		modules:   []string{moduleOnload, moduleChar, moduleResource},
		library:   fileTCPDirect,
		files:     []string{fileTCPDirect, fileCPlane},
	}
}

// efviStack: ef_vi opens /dev/sfc_char only. libefcp is for programs that use the control plane's API.
func efviStack(e *v1alpha1.EFVIStack) stack {
	return stack{
		kind:          v1alpha1.StackEFVI,
		moduleVersion: string(e.OnloadVersion), moduleField: "spec.stack.efvi.onloadVersion",
		userVersion: string(e.OnloadVersion), userField: "spec.stack.efvi.onloadVersion",
		userSpace: e.UserSpace,
		nodes:     []string{nodeSFCChar},
		modules:   []string{moduleChar, moduleResource},
		library:   fileEFVI,
		files:     []string{fileEFVI},
		extras:    []string{fileCPlane},
	}
}

// isVFIO tells that programs bring a driver of their own.
func (s stack) isVFIO() bool { return s.kind == v1alpha1.StackVFIO }

// isAFXDP tells that programs get AF_XDP sockets of their own.
func (s stack) isAFXDP() bool { return s.kind == v1alpha1.StackAFXDP }

// usesXDP tells that frames leave the NIC's driver through XDP, whoever owns the sockets.
func (s stack) usesXDP() bool { return s.experimental || s.isAFXDP() }

// isOnloads tells that the stack is one of Onload's family, with its modules, device files and user files.
func (s stack) isOnloads() bool { return !s.isVFIO() && !s.isAFXDP() }

// fromHost tells that the user files are those of the node.
func (s stack) fromHost() bool { return s.userSpace.Source == v1alpha1.UserSpaceHostPath }
