// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import (
	"maps"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

// Effect is what a command line does to one parameter of the kernel.
type Effect struct {
	// Parameter is the name of the parameter with underscores. The number of hugepages has one parameter for each size,
	// such as "hugepages of 1G".
	Parameter string
	// Args are the arguments that have the effect, in the order of the line.
	Args []Arg

	// meanings are the values of the arguments that count, each in its one spelling, sorted.
	meanings []string
}

// Name is the name under which the effect is known to who wrote the arguments: that of the first one.
func (e Effect) Name() string {
	if len(e.Args) == 0 || strings.Contains(e.Parameter, " ") {
		return e.Parameter
	}
	return underscored(e.Args[0].Name)
}

// Text is the arguments as they are written.
func (e Effect) Text() string {
	texts := make([]string, len(e.Args))
	for i, arg := range e.Args {
		texts[i] = arg.Text()
	}
	return strings.Join(texts, " ")
}

// Equal reports whether two effects are the same.
func (e Effect) Equal(other Effect) bool {
	return e.Parameter == other.Parameter && slices.Equal(e.meanings, other.meanings)
}

// Has reports whether a running kernel with this effect has the wanted one: the same, or, of parameters of which each
// argument counts, at least that.
func (e Effect) Has(wanted Effect) bool {
	if e.Parameter != wanted.Parameter {
		return false
	}
	switch {
	case e.Parameter == "nosmt":
		// smt_cmdline_disable of kernel/cpu.c: only force says more, namely that nobody can take it back.
		return !slices.Contains(wanted.meanings, forced) || slices.Contains(e.meanings, forced)
	case repetitionOf(e.Parameter) != eachCounts:
		return e.Equal(wanted)
	}
	return !slices.ContainsFunc(wanted.meanings, func(one string) bool { return !slices.Contains(e.meanings, one) })
}

// forced is the meaning of nosmt=force.
const forced = "=force"

// Effects are what the arguments for the kernel do on a machine, one effect for each parameter, in the order in which the
// parameters first occur. Of arguments that are repeated, those count that the kernel obeys (repetitionOf). hugepagesz= belongs to the hugepages= behind it and has no effect of its own.
func (l Line) Effects(m Machine) []Effect {
	r := reader{machine: m, index: map[string]int{}}
	for _, arg := range l.kernel {
		for _, atom := range m.atoms(arg) {
			r.add(arg, atom)
		}
	}
	r.nameDefaultSize()
	r.readIsolation(l.Isolation(m))
	return r.effects
}

// reader collects effects.
type reader struct {
	machine Machine
	effects []Effect
	// index is where in the effects a parameter is.
	index map[string]int
	// size is the last size of hugepages.
	size string
}

// unsized is the parameter of a number of hugepages without a size before it.
const unsized = "hugepages"

// add adds what an argument does. It may be only a part of what is written as one argument.
func (r *reader) add(written, atom Arg) {
	parameter := atom.Name
	switch parameter {
	case "hugepagesz", "default_hugepagesz":
		r.size = sizeText(atom.Value)
		if parameter == "hugepagesz" {
			return
		}
	case "hugepages":
		if r.size != "" {
			parameter = hugepagesOf(r.size)
		}
	}
	meaning := r.machine.meaning(atom)
	at, repeated := r.index[parameter]
	switch {
	case !repeated:
		r.index[parameter] = len(r.effects)
		r.effects = append(r.effects, Effect{Parameter: parameter, Args: []Arg{written}, meanings: []string{meaning}})
	default:
		r.effects[at].repeat(repetitionOf(parameter), written, meaning)
	}
}

// repeat adds an argument of the same parameter.
func (e *Effect) repeat(how repetition, written Arg, meaning string) {
	switch how {
	case lastCounts:
		e.Args, e.meanings = []Arg{written}, []string{meaning}
	case firstCounts:
	case eachCounts, agreeingCount:
		e.include(written, meaning)
	}
}

// include adds another argument that counts besides those before it.
func (e *Effect) include(written Arg, meaning string) {
	if last := e.Args[len(e.Args)-1]; last != written {
		e.Args = append(e.Args, written)
	}
	if at, known := slices.BinarySearch(e.meanings, meaning); !known {
		e.meanings = slices.Insert(e.meanings, at, meaning)
	}
}

func hugepagesOf(size string) string { return "hugepages of " + size }

// sizeText is a size in its shortest spelling, or as it is written.
func sizeText(value string) string {
	if bytes, ok := setting.Size(value); ok {
		return setting.SizeText(bytes)
	}
	return value
}

// nameDefaultSize gives a number of hugepages without a size before it the default size: that of default_hugepagesz=,
// wherever it stands, or what an architecture has without one, where that is always the same.
func (r *reader) nameDefaultSize() {
	at, given := r.index[unsized]
	if !given {
		return
	}
	size := ""
	if standard, chosen := r.index["default_hugepagesz"]; chosen {
		size = sizeText(r.effects[standard].Args[0].Value)
	} else if r.machine.Architecture == amd64 {
		size = "2M"
	}
	if _, taken := r.index[hugepagesOf(size)]; size == "" || taken {
		return
	}
	delete(r.index, unsized)
	r.index[hugepagesOf(size)] = at
	r.effects[at].Parameter = hugepagesOf(size)
}

// readIsolation replaces what isolcpus= and nohz_full= say by what the kernel makes of all of them. Where it takes none of
// them, the first one keeps what it says.
func (r *reader) readIsolation(kept Isolation) {
	isolcpus, isolates := r.index["isolcpus"]
	tickless, stops := r.index["nohz_full"]
	if stops {
		r.effects[tickless].meanings = r.meaningOf(tickless, map[string]cpus.Set{flagNoise: kept.Noise})
	}
	if isolates {
		taken := map[string]cpus.Set{flagDomain: kept.Domain, flagManagedIRQ: kept.ManagedIRQ}
		// Beside nohz_full=, the flag nohz says nothing more; alone it does the same in newer kernels only.
		if !stops {
			taken[flagNoise] = kept.Noise
		}
		r.effects[isolcpus].meanings = r.meaningOf(isolcpus, taken)
	}
}

func (r *reader) meaningOf(effect int, taken map[string]cpus.Set) []string {
	var meanings []string
	for _, flag := range slices.Sorted(maps.Keys(taken)) {
		if set := taken[flag].Difference(r.machine.Gone); !set.IsEmpty() {
			meanings = append(meanings, flag+" "+set.String())
		}
	}
	if len(meanings) == 0 {
		return []string{r.machine.meaning(r.effects[effect].Args[0])}
	}
	return meanings
}
