// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
)

// completionTimeout bounds what a shell waits for the cluster when somebody presses the tabulator key.
const completionTimeout = 3 * time.Second

// completer returns the words that may follow.
type completer func(ctx context.Context) ([]string, error)

// complete makes of a completer what cobra wants, for a command that takes one argument.
func complete(words completer) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		names, err := words(ctx)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveError
		}
		// Files may be read twice: cobra parses the flags of an unfinished line more than once.
		slices.Sort(names)
		return begunBy(begun, slices.Compact(names)), cobra.ShellCompDirectiveNoFileComp
	}
}

// begunBy are the words that begin so.
func begunBy(begun string, words []string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, begun) })
}

// completeFlags lets shells complete the values of all flags that take one of several words, and the names of files.
func completeFlags(command *cobra.Command) {
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if words, ok := flag.Value.(*usage.Choice); ok {
			register(command, flag.Name, oneOf(words.Allowed))
		}
		if mode, ok := flag.Value.(*colourMode); ok {
			register(command, flag.Name, oneOf(mode.names()))
		}
		if flag.Name == "filename" {
			register(command, flag.Name, cobra.FixedCompletions([]string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt))
		}
	})
	for _, child := range command.Commands() {
		completeFlags(child)
	}
}

// oneOf completes one of some words.
func oneOf(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return begunBy(begun, slices.Clone(words)), cobra.ShellCompDirectiveNoFileComp
	}
}

// register adds a completion, unless the flag has one of its own.
func register(command *cobra.Command, flag string, function cobra.CompletionFunc) {
	if _, exists := command.GetFlagCompletionFunc(flag); !exists {
		// The other reason to fail is a flag that does not exist.
		_ = command.RegisterFlagCompletionFunc(flag, function)
	}
}

// nodeNames are those of the LowLatencyNodes in the files, or without files in the cluster.
func (a *app) nodeNames(ctx context.Context, files []string, access *clusterAccess) ([]string, error) {
	if len(files) > 0 {
		return a.namesInFiles(ctx, files, func(m *manifests) []string { return namesOf(m.nodes) })
	}
	cluster, err := access.connect()
	if err != nil {
		return nil, err
	}
	var names []string
	err = eachNode(ctx, cluster, func(node *v1alpha1.LowLatencyNode) { names = append(names, node.Name) })
	return names, err
}

// poolNames are those of the BypassNICPools in the files, or without files in the cluster.
func (a *app) poolNames(ctx context.Context, files []string, access *clusterAccess) ([]string, error) {
	if len(files) > 0 {
		return a.namesInFiles(ctx, files, func(m *manifests) []string { return namesOf(m.pools) })
	}
	cluster, err := access.connect()
	if err != nil {
		return nil, err
	}
	pools, err := fetchPools(ctx, cluster, "")
	names := make([]string, 0, len(pools))
	for i := range pools {
		names = append(names, pools[i].Name)
	}
	return names, err
}

// governing are the LowLatencyNodeProfiles of the cluster by name.
func governing(ctx context.Context, access *clusterAccess) ([]string, error) {
	cluster, err := access.connect()
	if err != nil {
		return nil, err
	}
	var list v1alpha1.LowLatencyNodeProfileList
	if err := cluster.Get().Resource("lowlatencynodeprofiles").Do(ctx).Into(&list); err != nil {
		return nil, explain("listing LowLatencyNodeProfiles", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// listed completes the last of several words with commas between them; no word is offered twice.
func listed(words completer) cobra.CompletionFunc {
	one := complete(words)
	return func(command *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before, last := "", begun
		if comma := strings.LastIndexByte(begun, ','); comma >= 0 {
			before, last = begun[:comma+1], begun[comma+1:]
		}
		names, directive := one(command, nil, last)
		names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(","+before, ","+name+",") })
		for i := range names {
			names[i] = before + names[i]
		}
		return names, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// forFlag completes a flag whose argument is no other's: what stands on the line beside it does not matter.
func forFlag(words completer) cobra.CompletionFunc {
	one := complete(words)
	return func(command *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return one(command, nil, begun)
	}
}

// profileNames are those of the LowLatencyNodeProfiles in the files.
func (a *app) profileNames(ctx context.Context, files []string) ([]string, error) {
	return a.namesInFiles(ctx, files, func(m *manifests) []string { return namesOf(m.profiles) })
}

// namesInFiles are the names of some of the objects of files.
func (a *app) namesInFiles(ctx context.Context, files []string, of func(*manifests) []string) ([]string, error) {
	// A command line that is completed is read twice, and so its flags are there twice.
	all, err := a.readManifests(ctx, slices.Compact(slices.Sorted(slices.Values(files))))
	if err != nil {
		return nil, err
	}
	return of(all), nil
}

func namesOf[T interface{ GetName() string }](objects []T) []string {
	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}
