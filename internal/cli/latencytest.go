// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/page"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

const latencyTests = "latencytests"

// testOptions say which LatencyTests are meant.
type testOptions struct {
	files     []string
	namespace string
	access    clusterAccess
}

func (o *testOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`FILE` or folder with LatencyTests as kubectl get -o yaml saves them; - for the standard input; repeatable")
	o.addClusterFlags(command)
}

func (o *testOptions) addClusterFlags(command *cobra.Command) {
	command.Flags().StringVarP(&o.namespace, "namespace", "n", heartbeat.DefaultNamespace, "`NAMESPACE` of the LatencyTest")
	o.access.addFlags(command.Flags())
}

// fileNamespace is the namespace whose tests are meant of those in files; "" for all, as without -n.
func (o *testOptions) fileNamespace() string {
	if o.access.flags.Changed("namespace") {
		return o.namespace
	}
	return ""
}

// ofNamespace are the tests of a namespace; all for "".
func ofNamespace(tests []*v1alpha1.LatencyTest, namespace string) []*v1alpha1.LatencyTest {
	return slices.DeleteFunc(slices.Clone(tests), func(test *v1alpha1.LatencyTest) bool { return namespace != "" && test.Namespace != namespace })
}

// testCommand is the group of commands about LatencyTests.
func (a *app) testCommand() *cobra.Command {
	command := usage.Group(&cobra.Command{
		Use:   "test",
		Short: "Run LatencyTests, watch them, and report and compare what they measured",
		Long: `Run LatencyTests in a cluster, watch them, and report and compare what they measured. report and compare do without a
cluster when they are given files: kubectl get latencytests -A -o yaml > tests.yaml saves what there is. Of files, -n
means the tests of that namespace alone.`,
	})
	command.AddCommand(a.testRunCommand(), a.testWatchCommand(), a.testReportCommand(), a.testCompareCommand())
	return command
}

// testVerdict is the error that ends a command about a test whose nodes sum up to this status.
func testVerdict(tests []view.LatencyTest) error {
	statuses := make([]metav1.ConditionStatus, 0, len(tests))
	for i := range tests {
		statuses = append(statuses, tests[i].Status())
	}
	return verdict(statuses...)
}

func (a *app) testReportCommand() *cobra.Command {
	options := &testOptions{}
	format := &usage.Choice{Value: "text", Allowed: []string{"text", "json", "csv", "hdr", "html"}}
	reference := ""
	command := &cobra.Command{
		Use:   "report [NAME]",
		Short: "Show what LatencyTests have measured on each node",
		Long: `Show what LatencyTests have measured: a row for each node with the longest interruption, the share of time that was
taken, percentiles over time, the spread between repetitions, and whether it has become worse since the run before; of
tests that send messages, a row for each size or rate. A percentile that one interruption decides is marked. Without a
name, all tests of the namespace or of the files are shown.

-o html is one page that loads nothing: distribution and percentiles of each node beside the run before, the other
nodes, and a reference, which has measured the same kind of thing. -o hdr is a log of HdrHistogram with a line for each
node, and for each side of a comparison; its tag says of which size or rate it is. -o csv is a row for each node, or for
each size or rate, with lengths in nanoseconds.

Exit codes: 0 every node has passed, and its result is fresh; 1 one has failed; 2 wrong usage or input; 3 one has no
such result, or the test was changed since or stands still.`,
		Example: `  kubectl lowlatency test report quiet-cpus
  kubectl get latencytests -A -o yaml > tests.yaml; kubectl lowlatency test report -f tests.yaml -o html > report.html`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(func(ctx context.Context) ([]string, error) { return a.testNames(ctx, options) }),
		RunE: func(command *cobra.Command, args []string) error {
			tests, err := a.readTests(command.Context(), strings.Join(args, ""), options)
			if err != nil {
				return err
			}
			return a.reportTests(command.Context(), tests, format.Value, reference)
		},
	}
	options.addFlags(command)
	command.Flags().VarP(format, "output", "o", "output format")
	command.Flags().StringVar(&reference, "reference", "", "`FILE` with a LatencyTest with one measured node, beside which -o html draws all nodes")
	return command
}

func (a *app) reportTests(ctx context.Context, tests []*v1alpha1.LatencyTest, format, reference string) error {
	views := make([]view.LatencyTest, 0, len(tests))
	for _, test := range tests {
		views = append(views, view.OfLatencyTest(test))
	}
	if reference != "" && format != "html" {
		return errors.New("--reference is drawn by -o html only")
	}
	if err := a.writeTests(ctx, views, format, reference); err != nil {
		return err
	}
	return testVerdict(views)
}

// printHarmless prints text in which others may have written what a terminal obeys.
func (a *app) printHarmless(words string) error {
	_, err := io.WriteString(a.Out, text.Harmless(words))
	return err
}

func (a *app) writeTests(ctx context.Context, views []view.LatencyTest, format, reference string) error {
	switch format {
	case "csv":
		var rows strings.Builder
		return errors.Join(text.LatencyCSV(&rows, views), a.printHarmless(rows.String()))
	case "hdr":
		var log strings.Builder
		without, err := text.LatencyLog(&log, views)
		for _, node := range without {
			a.complain("%s has no histogram", node)
		}
		return errors.Join(err, a.printHarmless(log.String()))
	case "html":
		compared, err := a.readReference(ctx, reference)
		if err != nil {
			return err
		}
		if err := checkReference(compared, views); err != nil {
			return err
		}
		document, err := page.LatencyTests(views, compared, time.Now())
		if err != nil {
			return err
		}
		_, err = io.WriteString(a.Out, document)
		return err
	default:
		return a.print(format, views, func() string { return text.LatencyTests(views, a.palette(), a.width()) })
	}
}

// readReference reads the only measurement of a file; nil without a file.
func (a *app) readReference(ctx context.Context, file string) (*page.Reference, error) {
	if file == "" {
		return nil, nil
	}
	all, err := a.readManifests(ctx, []string{file})
	if err != nil {
		return nil, err
	}
	var found []page.Reference
	for _, test := range all.tests {
		for i := range test.Status.Results {
			if result := &test.Status.Results[i]; result.Measured != nil {
				found = append(found, page.Reference{Name: test.Name + " on " + result.Node, Measurement: result.Measured})
			}
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("--reference: %s has %d measured nodes, and a reference is one", file, len(found))
	}
	return &found[0], nil
}

// checkReference refuses a reference that has no figure in common with a node beside which it would stand; none may be nil.
func checkReference(reference *page.Reference, views []view.LatencyTest) error {
	if reference == nil {
		return nil
	}
	subject := view.Subject(reference.Measurement)
	for i := range views {
		for j := range views[i].Nodes {
			measured := views[i].Nodes[j].Measured
			if measured != nil && view.Subject(measured) != subject {
				return fmt.Errorf("--reference: %s has measured %s, and %s/%s on %s %s: a reference stands beside measurements of its own kind", reference.Name, subject,
					views[i].Namespace, views[i].Name, views[i].Nodes[j].Node, view.Subject(measured))
			}
		}
	}
	return nil
}

func (a *app) testCompareCommand() *cobra.Command {
	options := &testOptions{}
	format := newFormat()
	command := &cobra.Command{
		Use:   "compare [NAME | BEFORE AFTER]",
		Short: "Compare what LatencyTests have measured with the run before, or two files",
		Long: `Compare what a LatencyTest has measured with the run before, node by node; or two files with saved LatencyTests, which
are matched by the names of tests and nodes, or are compared as they are where each has one node.

A node is worse when every repetition is longer than all of the other measurement, and than those of up to five runs
before that which its status keeps. With two runs that happens by chance in 5 of 100
cases with three repetitions of each, and in 1 of 250 with five. With five or more, the ratio is printed with its
interval. What has changed in the fingerprint of the node is named.

Exit codes: 0 no node is worse; 1 one is worse; 2 wrong usage or input; 3 none is worse, and one cannot be compared.`,
		Example: `  kubectl lowlatency test compare quiet-cpus
  kubectl lowlatency test compare before.yaml after.yaml`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: complete(func(ctx context.Context) ([]string, error) { return a.testNames(ctx, options) }),
		RunE: func(command *cobra.Command, args []string) error {
			compared, err := a.comparedTests(command.Context(), args, options)
			if err != nil {
				return err
			}
			if err := a.print(format.Value, compared, func() string { return text.LatencyChanges(compared, a.palette(), a.width()) }); err != nil {
				return err
			}
			return verdict(compared.Trend())
		},
	}
	options.addFlags(command)
	command.Flags().VarP(format, "output", "o", "output format")
	return command
}

// comparedTests are the nodes of a test, each beside the run before; or those of two files.
func (a *app) comparedTests(ctx context.Context, args []string, options *testOptions) (*view.LatencyTest, error) {
	if len(args) == 2 {
		if len(options.files) > 0 {
			return nil, errors.New("give either two files, or -f FILE with one test")
		}
		return a.comparedFiles(ctx, args[0], args[1], options.fileNamespace())
	}
	tests, err := a.readTests(ctx, strings.Join(args, ""), options)
	if err != nil {
		return nil, err
	}
	if len(tests) != 1 {
		return nil, fmt.Errorf("there are %d LatencyTests, %s: name one", len(tests), strings.Join(namesOf(tests), ", "))
	}
	compared := view.OfLatencyTest(tests[0])
	return &compared, nil
}

// comparedFiles matches the measured nodes of two files, of the tests of a namespace, or of all for "".
func (a *app) comparedFiles(ctx context.Context, before, after, namespace string) (*view.LatencyTest, error) {
	was, err := a.measuredIn(ctx, before, namespace)
	if err != nil {
		return nil, err
	}
	is, err := a.measuredIn(ctx, after, namespace)
	if err != nil {
		return nil, err
	}
	compared, found := matchMeasured(was, is)
	if found == 0 {
		return nil, fmt.Errorf("no test of %s has measured a node that the same test of %s has measured, too", after, before)
	}
	return compared, nil
}

// matchMeasured puts each node beside the same one of before, and says how many have one. Those that one side lacks have one
// measurement.
func matchMeasured(was, is []measuredNode) (compared *view.LatencyTest, found int) {
	compared = &view.LatencyTest{Nodes: make([]view.LatencyNode, 0, len(is))}
	matched := make([]bool, len(was))
	for i := range is {
		at := slices.IndexFunc(was, func(m measuredNode) bool { return m.test == is[i].test && m.result.Node == is[i].result.Node })
		if at < 0 && len(was) == 1 && len(is) == 1 {
			at = 0
		}
		if at < 0 {
			compared.Nodes = append(compared.Nodes, is[i].view(view.OfLatencyResult(is[i].result, nil)))
			continue
		}
		matched[at], found = true, found+1
		compared.Nodes = append(compared.Nodes, is[i].beside(&was[at]))
	}
	for i := range was {
		if !matched[i] {
			gone := &v1alpha1.LatencyTestResult{Node: was[i].result.Node}
			compared.Nodes = append(compared.Nodes, was[i].view(view.OfLatencyResult(gone, was[i].result.Measured)))
		}
	}
	if kind := is[0].kind; !slices.ContainsFunc(compared.Nodes, func(n view.LatencyNode) bool { return n.Kind != kind }) {
		compared.Kind = kind
	}
	return compared, found
}

// measuredNode is a node that a test has measured.
type measuredNode struct {
	// test is its namespace and name.
	test   string
	kind   v1alpha1.LatencyTestKind
	result *v1alpha1.LatencyTestResult
}

// view is a view of the node with the test that it is of.
func (m *measuredNode) view(node view.LatencyNode) view.LatencyNode {
	node.Test, node.Kind = m.test, m.kind
	return node
}

// beside is the node with the measurement of another one as the previous one, and with the runs before that as far as they were measured alike.
func (m *measuredNode) beside(was *measuredNode) view.LatencyNode {
	var earlier []v1alpha1.LatencyRunSpread
	// The runs before one that is the later of the two may hold the other, which would then be compared with itself.
	if !m.result.Measured.CompletedTime.Before(&was.result.Measured.CompletedTime) {
		earlier = qualification.EarlierRuns(was.result.Earlier, was.result.Previous, was.result.Measured)
	}
	node := m.view(view.OfLatencyResult(m.result, was.result.Measured, earlier...))
	if was.test != m.test || was.result.Node != m.result.Node {
		node.ComparedWith = was.test + " on " + was.result.Node
	}
	return node
}

// measuredIn are the nodes that the tests of a file have measured, those of a namespace, or all for "".
func (a *app) measuredIn(ctx context.Context, file, namespace string) ([]measuredNode, error) {
	all, err := a.readManifests(ctx, []string{file})
	if err != nil {
		return nil, err
	}
	var found []measuredNode
	for _, test := range ofNamespace(all.tests, namespace) {
		for i := range test.Status.Results {
			if result := &test.Status.Results[i]; result.Measured != nil {
				found = append(found, measuredNode{test.Namespace + "/" + test.Name, test.Spec.Kind, result})
			}
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case namespace != "":
		return nil, fmt.Errorf("%s holds no LatencyTest of namespace %s with a measured node", file, namespace)
	default:
		return nil, fmt.Errorf("%s holds no LatencyTest with a measured node", file)
	}
}

// readTests reads the test with the name, or all, from the files or else from the cluster.
func (a *app) readTests(ctx context.Context, name string, options *testOptions) ([]*v1alpha1.LatencyTest, error) {
	tests, where, err := a.findTests(ctx, options)
	if err != nil {
		return nil, err
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("%s no LatencyTest", where)
	}
	if name == "" {
		return tests, nil
	}
	named := slices.DeleteFunc(slices.Clone(tests), func(test *v1alpha1.LatencyTest) bool { return test.Name != name })
	switch len(named) {
	case 0:
		return nil, fmt.Errorf("%s no LatencyTest %q, but %s", where, name, strings.Join(namesOf(tests), ", "))
	case 1:
		return named, nil
	default:
		namespaces := make([]string, 0, len(named))
		for _, test := range named {
			namespaces = append(namespaces, test.Namespace)
		}
		return nil, fmt.Errorf("%s %d LatencyTests of this name, in the namespaces %s: choose one with -n", where, len(named), strings.Join(namespaces, ", "))
	}
}

func (a *app) findTests(ctx context.Context, options *testOptions) (tests []*v1alpha1.LatencyTest, where string, err error) {
	if len(options.files) > 0 {
		all, err := a.readManifests(ctx, options.files)
		if err != nil {
			return nil, "", err
		}
		where = "the files hold"
		if namespace := options.fileNamespace(); namespace != "" {
			where = "namespace " + namespace + " of the files has"
		}
		return ofNamespace(all.tests, options.fileNamespace()), where, nil
	}
	cluster, err := options.access.connect()
	if err != nil {
		return nil, "", err
	}
	tests, err = fetchTests(ctx, cluster, options.namespace)
	return tests, "namespace " + options.namespace + " has", err
}

// fetchTests reads the tests of a namespace.
func fetchTests(ctx context.Context, cluster *rest.RESTClient, namespace string) ([]*v1alpha1.LatencyTest, error) {
	var list v1alpha1.LatencyTestList
	if err := cluster.Get().Namespace(namespace).Resource(latencyTests).Do(ctx).Into(&list); err != nil {
		return nil, explain("listing LatencyTests", err)
	}
	tests := make([]*v1alpha1.LatencyTest, 0, len(list.Items))
	for i := range list.Items {
		tests = append(tests, &list.Items[i])
	}
	return tests, nil
}

// testNames are those of the LatencyTests in the files, or without files in the cluster.
func (a *app) testNames(ctx context.Context, options *testOptions) ([]string, error) {
	tests, _, err := a.findTests(ctx, options)
	return namesOf(tests), err
}
