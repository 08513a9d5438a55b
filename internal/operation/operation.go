// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package operation holds what is done to a host as plain values: which file gets which content, which argument is added to
// the kernel's command line. A platform spells a plan as operations; the guard on the host carries them out and takes them
// back. There are no others: no command, no script, and no path outside a fixed table. It is pure.
package operation

import (
	"path"
	"slices"
)

// Kind says what an operation does.
type Kind string

const (
	// File puts a file on the host: a script, a configuration that a service reads from a folder of drop-ins.
	File Kind = "File"
	// Unit puts a unit of systemd on the host, or masks one.
	Unit Kind = "Unit"
	// DropIn adds a drop-in to a unit of systemd.
	DropIn Kind = "DropIn"
	// TuneDProfile puts a TuneD profile on the host and makes it the active one.
	TuneDProfile Kind = "TuneDProfile"
	// RuntimeDropIn adds a file to the container runtime's folder of configuration.
	RuntimeDropIn Kind = "RuntimeDropIn"
	// KubeletDropIn adds a file to the kubelet's folder of configuration.
	KubeletDropIn Kind = "KubeletDropIn"
	// StateFile removes a file in which the kubelet remembers a policy, while the kubelet is stopped.
	StateFile Kind = "StateFile"
	// Module loads a module of the kernel, or unloads it.
	Module Kind = "Module"
	// Sysctl sets a parameter of the running kernel, and at each boot before the kubelet starts.
	Sysctl Kind = "Sysctl"
	// Sysfs writes a value to a file of the kernel below /sys or /proc/irq, and at each boot before the kubelet starts.
	Sysfs Kind = "Sysfs"
	// Service starts, stops or restarts a unit of systemd now.
	Service Kind = "Service"
	// KernelArguments adds arguments to the kernel's command line.
	KernelArguments Kind = "KernelArguments"
)

// Kinds are all kinds, in the order in which they are carried out: what is read at the next start of something first, what
// changes the running host next, the command line, which arms the reboot, last.
func Kinds() []Kind {
	return []Kind{File, Unit, DropIn, TuneDProfile, RuntimeDropIn, KubeletDropIn, StateFile, Module, Sysctl, Sysfs, Service, KernelArguments}
}

// State is what becomes of a unit, a module or a service.
type State string

const (
	// Present units are on the host and are started by others.
	Present State = "Present"
	// Enabled units are started at boot, as their section [Install] says.
	Enabled State = "Enabled"
	// Masked units cannot be started.
	Masked State = "Masked"
	// Loaded modules are in the kernel.
	Loaded State = "Loaded"
	// Unloaded modules are not; what keeps them from coming back is a File.
	Unloaded State = "Unloaded"
	// Started services run.
	Started State = "Started"
	// Stopped services do not.
	Stopped State = "Stopped"
	// Restarted services are stopped and started, if they run.
	Restarted State = "Restarted"
)

// Operation is one thing that is done to a host. Which fields it has is decided by its kind: the functions that make one say
// so, and Validate refuses any other.
type Operation struct {
	Kind Kind `json:"kind"`
	// Name of the unit, the module, the sysctl, the service or the TuneD profile.
	Name string `json:"name,omitempty"`
	// Path of the file that is written or removed.
	Path string `json:"path,omitempty"`
	// Mode is the permission bits of that file, such as 0o644.
	Mode int `json:"mode,omitempty"`
	// Content of that file.
	Content string `json:"content,omitempty"`
	// State of a unit, a module or a service.
	State State `json:"state,omitempty"`
	// Value of a sysctl or a file of the kernel.
	Value string `json:"value,omitempty"`
	// Arguments of the kernel's command line, in their order, the marker among them.
	Arguments []string `json:"arguments,omitempty"`
	// Fallback says which way back is enough where the arguments are tried; empty for one that needs nobody.
	Fallback Fallback `json:"fallback,omitempty"`
}

// Fallback says what has to happen where a kernel does not come up with other arguments.
type Fallback string

// ByHandAccepted has arguments tried also where the boot loader would start a kernel that does not come up again and again: somebody
// chooses the entry before at the console.
const ByHandAccepted Fallback = "ByHandAccepted"

const (
	unitFolder = "/etc/systemd/system"
	// tunedFolder is where TuneD looks for the profiles of the host's owner.
	tunedFolder = "/etc/tuned"
	// fileMode is that of all files but scripts.
	fileMode = 0o644
)

// PutFile puts a file on the host.
func PutFile(name string, mode int, content string) Operation {
	return Operation{Kind: File, Path: name, Mode: mode, Content: content}
}

// PutUnit puts a unit of systemd on the host, Present or Enabled.
func PutUnit(name, content string, state State) Operation {
	return Operation{Kind: Unit, Name: name, Path: path.Join(unitFolder, name), Mode: fileMode, Content: content, State: state}
}

// MaskUnit keeps a unit from being started. That it is stopped is an operation of its own: SetService.
func MaskUnit(name string) Operation {
	return Operation{Kind: Unit, Name: name, Path: path.Join(unitFolder, name), State: Masked}
}

// PutDropIn adds a drop-in, such as 90-lowlatency.conf, to a unit of systemd.
func PutDropIn(unit, file, content string) Operation {
	return Operation{Kind: DropIn, Name: unit, Path: path.Join(unitFolder, unit+".d", file), Mode: fileMode, Content: content}
}

// PutTuneDProfile puts a TuneD profile with this tuned.conf on the host and makes it the active one. Its scripts are files.
func PutTuneDProfile(name, content string) Operation {
	return Operation{Kind: TuneDProfile, Name: name, Path: path.Join(tunedFolder, name, "tuned.conf"), Mode: fileMode, Content: content}
}

// PutTuneDProfileIn is PutTuneDProfile in one of the folders in which TuneD looks: since 2.23 it is /etc/tuned/profiles.
func PutTuneDProfileIn(folder, name, content string) Operation {
	return Operation{Kind: TuneDProfile, Name: name, Path: path.Join(folder, name, "tuned.conf"), Mode: fileMode, Content: content}
}

// PutRuntimeDropIn adds a file to the container runtime's folder of configuration.
func PutRuntimeDropIn(name, content string) Operation {
	return Operation{Kind: RuntimeDropIn, Path: name, Mode: fileMode, Content: content}
}

// PutKubeletDropIn adds a file to the kubelet's folder of configuration.
func PutKubeletDropIn(name, content string) Operation {
	return Operation{Kind: KubeletDropIn, Path: name, Mode: fileMode, Content: content}
}

// RemoveStateFile removes a file in which the kubelet remembers a policy.
func RemoveStateFile(name string) Operation { return Operation{Kind: StateFile, Path: name} }

// SetModule loads a module, or unloads it.
func SetModule(name string, state State) Operation {
	return Operation{Kind: Module, Name: name, State: state}
}

// SetSysctl sets a parameter of the kernel.
func SetSysctl(name, value string) Operation {
	return Operation{Kind: Sysctl, Name: name, Value: value}
}

// SetSysfs writes a value to a file of the kernel.
func SetSysfs(name, value string) Operation {
	return Operation{Kind: Sysfs, Path: name, Value: value}
}

// SetService starts, stops or restarts a unit of systemd.
func SetService(name string, state State) Operation {
	return Operation{Kind: Service, Name: name, State: state}
}

// AddKernelArguments adds arguments to the kernel's command line: those of a plan in their order, then what the way back
// needs. Without panic= a kernel that panics waits for ever; the marker tells the kernel that was started with these
// arguments from any other. Both are added unless they are among the arguments already.
func AddKernelArguments(arguments ...string) Operation {
	return Operation{Kind: KernelArguments, Arguments: withWayBack(slices.Clone(arguments))}
}

// FallbackOf is the way back that operations say is enough.
func FallbackOf(operations []Operation) Fallback {
	for i := range operations {
		if operations[i].Kind == KernelArguments {
			return operations[i].Fallback
		}
	}
	return ""
}
