// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package supportreport gathers what somebody else needs to help with a cluster: the operator's objects and what it has made of them, with
// conditions and events, the full reports of agents, and snapshots of hosts. Secrets are never asked for. What cannot be read is said in
// the report, and is no error: people make a report when something does not work.
package supportreport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

// Lister reads the objects at a path of the API server.
type Lister func(ctx context.Context, path, selector string, each func(object map[string]any)) error

// Options say what is gathered.
type Options struct {
	// Namespace is the operator's, AgentNamespace that of its agents and device plugins.
	Namespace, AgentNamespace string
	// Nodes are those of which the agent's full report and a snapshot are wanted.
	Nodes []string
	// Redacted tells that other names take the place of those of nodes, pods and containers, and that addresses are left out.
	Redacted bool
	List     Lister
	// Report is the full report of the agent on a node, as JSON; Snapshot is a snapshot of its host, redacted or not.
	Report, Snapshot func(ctx context.Context, node string) ([]byte, error)
	// Progress is told what is done next.
	Progress func(doing string)
	// Time is when the report is made, Program what makes it.
	Time    time.Time
	Program string

	// known are the nodes that have a LowLatencyNode.
	known map[string]bool
}

// Writer takes the files of a report, one after another.
type Writer interface {
	Add(name string, content []byte) error
}

// Summary is what a report holds, for who is to pass it on.
type Summary struct {
	Files int
	Bytes int64
	// Objects are how many there are by folder.
	Objects map[string]int
	// Problems are what is missing, and why.
	Problems []string
}

// file is a file of a report before names are replaced.
type file struct {
	name    string
	content []byte
	// opaque tells that it is no text, so that what made it has redacted it.
	opaque bool
}

// report is a report in the making.
type report struct {
	options  *Options
	files    []file
	names    *names
	problems []string
	objects  map[string]int
	// tested are the namespaces with LatencyTests, and the Jobs of these by name.
	tested map[string]map[string]bool
}

// Write gathers a report and writes it. The error is about writing, or says that nothing of the cluster could be read at all.
func Write(ctx context.Context, options Options, to Writer) (Summary, error) {
	r := &report{options: &options, names: newNames(), objects: map[string]int{}, tested: map[string]map[string]bool{}}
	options.known = map[string]bool{}
	if err := r.gatherObjects(ctx); err != nil {
		return Summary{}, err
	}
	r.gatherNodes(ctx)
	if err := ctx.Err(); err != nil {
		return Summary{}, fmt.Errorf("gathering the report: %w", err)
	}
	options.Progress("writing the report")
	return r.write(to)
}

// isOurNode reports whether a Node has a LowLatencyNode.
func (o *Options) isOurNode(object map[string]any) bool {
	name, _ := fields(object, "metadata")["name"].(string)
	return o.known[name]
}

// gatherObjects reads all kinds.
func (r *report) gatherObjects(ctx context.Context) error {
	all := kinds(r.options)
	failures, err := r.gatherLists(ctx, all)
	if err != nil {
		return err
	}
	if len(failures) == len(all) {
		return fmt.Errorf("nothing of the cluster can be read: %w", failures[0])
	}
	_, err = r.gatherLists(ctx, r.testEvents())
	return err
}

// gatherLists reads lists, and returns why some could not be read.
func (r *report) gatherLists(ctx context.Context, lists []kind) (failures []error, err error) {
	for i := range lists {
		k := &lists[i]
		what := path.Join(k.folder, k.namespace)
		r.options.Progress("reading " + what)
		err := r.options.List(ctx, k.path, k.selector, func(object map[string]any) { r.addObject(k, object) })
		switch {
		case err == nil:
		case apierrors.IsNotFound(err):
			r.problems = append(r.problems, what+": the cluster has no such kind")
			failures = append(failures, err)
		default:
			r.problems = append(r.problems, fmt.Sprintf("%s: %v", what, err))
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("gathering the report: %w", ctx.Err())
		}
	}
	return failures, nil
}

// addObject takes an object into the report.
func (r *report) addObject(k *kind, object map[string]any) {
	r.names.learn(k.folder, object)
	name, _ := fields(object, "metadata")["name"].(string)
	switch k.folder {
	case "lowlatencynodes":
		r.options.known[name] = true
	case testsFolder:
		r.learnTest(object)
	case jobsFolder:
		r.learnJobs(object, name)
	}
	if k.keep != nil && !k.keep(object) {
		return
	}
	reduce(object)
	if k.reduce != nil {
		k.reduce(object)
	}
	if r.options.Redacted {
		redactArguments(object)
	}
	content, err := yaml.Marshal(object)
	if err != nil {
		r.problems = append(r.problems, fmt.Sprintf("%s/%s: %v", k.folder, name, err))
		return
	}
	r.objects[k.folder]++
	r.files = append(r.files, file{name: path.Join("objects", k.in(object), harmless(name)+".yaml"), content: content})
}

// reduce takes away what says nothing about the cluster's state.
func reduce(object map[string]any) {
	metadata := fields(object, "metadata")
	delete(metadata, "managedFields")
	delete(fields(metadata, "annotations"), "kubectl.kubernetes.io/last-applied-configuration")
}

// gatherNodes asks the agents of the chosen nodes.
func (r *report) gatherNodes(ctx context.Context) {
	for i, node := range r.options.Nodes {
		of := fmt.Sprintf("node %s (%d of %d)", node, i+1, len(r.options.Nodes))
		if !r.options.known[node] {
			r.problems = append(r.problems, fmt.Sprintf("node %s: there is no LowLatencyNode of this name", node))
			continue
		}
		r.options.Progress("asking the agent of " + of)
		content, err := r.options.Report(ctx, node)
		if err != nil {
			r.problems = append(r.problems, fmt.Sprintf("node %s: the full report of its agent: %v", node, err))
		} else {
			r.learnReport(content)
			r.files = append(r.files, file{name: path.Join("nodes", node, "report.json"), content: content})
		}
		r.options.Progress("taking a snapshot of " + of)
		content, err = r.options.Snapshot(ctx, node)
		if err != nil {
			r.problems = append(r.problems, fmt.Sprintf("node %s: the snapshot of its host: %v", node, err))
			continue
		}
		r.files = append(r.files, file{name: path.Join("nodes", node, "snapshot.tar.gz"), content: content, opaque: true})
	}
}

// learnReport learns the names of pods in an agent's report.
func (r *report) learnReport(content []byte) {
	var decoded map[string]any
	if json.Unmarshal(content, &decoded) == nil {
		r.names.learnPods(decoded)
	}
}

// write writes what was gathered.
func (r *report) write(to Writer) (Summary, error) {
	redactor := newRedactor(r.names, r.options.Redacted)
	slices.SortFunc(r.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for i := range r.problems {
		r.problems[i] = string(redactor.text([]byte(r.problems[i])))
	}
	sum := Summary{Objects: r.objects, Problems: r.problems}
	add := func(name string, content []byte) error {
		sum.Files++
		sum.Bytes += int64(len(content))
		if err := to.Add(path.Join(Folder, name), content); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		return nil
	}
	if err := add("README.txt", r.readme()); err != nil {
		return Summary{}, err
	}
	for _, f := range r.files {
		content := f.content
		if !f.opaque {
			content = redactor.text(content)
		}
		if err := add(redactor.path(f.name), content); err != nil {
			return Summary{}, err
		}
	}
	return sum, nil
}

// Folder is that of all files of a report.
const Folder = "lowlatency-report"

// readme says what the report is.
func (r *report) readme() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Report of the Low Latency Node Operator, made %s by %s.\n\n", r.options.Time.UTC().Format(time.RFC3339), r.options.Program)
	b.WriteString("objects/  objects of the operator and what it has made of them, with status and events\n" +
		"nodes/    for each chosen node the full report of its agent, and a snapshot of its host: kubectl lowlatency check --root FILE\n\n")
	if r.options.Redacted {
		b.WriteString("Names of nodes, pods, containers, and namespaces of pods and LatencyTests were replaced, equal ones by equal ones, and addresses left out.\n\n")
	}
	if len(r.problems) == 0 {
		b.WriteString("Nothing is missing.\n")
	} else {
		b.WriteString("What is missing:\n- " + strings.Join(r.problems, "\n- ") + "\n")
	}
	return b.Bytes()
}

// harmless is a name as part of a path: the API server knows names with colons, and nothing but the writer decides on folders.
func harmless(name string) string {
	name = strings.Map(func(c rune) rune {
		if c == '/' || c == '\\' || c < ' ' {
			return '_'
		}
		return c
	}, name)
	if strings.Trim(name, ".") == "" {
		return "_"
	}
	return name
}

// ErrSnapshotMissing tells that the agent of a node offers no snapshots.
var ErrSnapshotMissing = errors.New("the agent of this version offers no snapshots")
