// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/crdschema"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// lookEvery is how often a test is looked at that runs.
const lookEvery = 2 * time.Second

// runOptions say which test is run, and what a new one measures.
type runOptions struct {
	testOptions
	watchOptions
	profile, pool string
	nodes         []string
	cpus          int32
	duration      time.Duration
	repetitions   int32
	maximum       time.Duration
	stolen        int32
	percentiles   []string
	traffic       trafficOptions
	dryRun        bool
	detach        bool
}

// trafficOptions say what a new test measures that sends messages.
type trafficOptions struct {
	kind, transport, waiting, path *usage.Choice
	group                          string
	servers                        []string
	sizes, rates                   []int32
	bytes, answers, messages       int32
	loss, late                     int32
	// What a search for the highest rate asks for.
	least, highest int32
	trial, confirm time.Duration
	growth         int32
	// ratios of a comparison that pass.
	ratios []string
}

func newTrafficOptions() trafficOptions {
	choice := func(words ...string) *usage.Choice { return &usage.Choice{Value: words[0], Allowed: words} }
	return trafficOptions{
		kind:      choice(qualification.Kinds()...),
		transport: choice(string(v1alpha1.TransportTCP), string(v1alpha1.TransportUDP), string(v1alpha1.TransportMulticast)),
		waiting:   choice(string(v1alpha1.WaitingSpin), string(v1alpha1.WaitingBlock)),
		path:      choice("Any", string(v1alpha1.LatencyPathAccelerated), string(v1alpha1.LatencyPathKernel)),
	}
}

func (o *trafficOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.Var(o.kind, "kind", "what is measured")
	flags.StringSliceVar(&o.servers, "server-nodes", nil, "the first free one of these nodes, `NAME,NAME`, runs the server; the measured node itself without it")
	flags.Var(o.transport, "transport", "what carries messages")
	flags.StringVar(&o.group, "group", "", "`ADDRESS` of the group of transport Multicast; the operator chooses without it")
	flags.Var(o.waiting, "wait", "how both ends wait for a message")
	flags.Int32SliceVar(&o.sizes, "sizes", nil, "sizes of messages in bytes, `SIZE,SIZE`; the operator chooses without it")
	flags.Int32Var(&o.messages, "messages", 0, "with how many messages a size ends, of kind PingPong or ContainerVersusHost; the operator chooses without it")
	flags.Var(o.path, "path", "the way that messages have to take for the result to be judged")
	flags.Int32Var(&o.loss, "loss", -1, "how many parts per million of the messages may be lost; -1 for no limit")
	flags.Int32SliceVar(&o.rates, "rates", nil, "rates of kind RateSweep in messages a second, `RATE,RATE`; the operator chooses without it")
	flags.Int32Var(&o.bytes, "bytes", 0, "size of messages of kind RateSweep or LoadSearch in bytes; the operator chooses without it")
	flags.Int32Var(&o.answers, "answers", 0, "of how many messages of each rate the time is taken; the operator chooses without it")
	flags.Int32Var(&o.late, "late", -1, "how many parts per million of the messages of kind RateSweep may leave late; -1 for no limit")
	flags.Int32Var(&o.least, "at-least", 0, "the rate in messages a second that kind LoadSearch must find to pass; 0 for any")
	flags.Int32Var(&o.highest, "highest", 0, "the highest rate that kind LoadSearch tries; the operator chooses without it")
	flags.DurationVar(&o.trial, "trial", 0, "how long a trial of kind LoadSearch is, in whole seconds; the operator chooses without it")
	flags.DurationVar(&o.confirm, "confirm", 0, "how long the highest rate must hold, in whole seconds; the operator chooses without it")
	flags.Int32Var(&o.growth, "growth", 0, "how large 99 % may be in per cent of that at the lowest rate, 300 for three times, with kind LoadSearch; when omitted, 50 % may be ten times")
	flags.StringArrayVar(&o.ratios, "ratio", nil, "`NAME=RATIO` that passes, such as P50=1.05, with kind ContainerVersusHost; repeatable")
}

// adjusts reports whether a flag says how messages are to be sent.
func (o *trafficOptions) adjusts() bool {
	return o.kind.Value != o.kind.Allowed[0] || len(o.servers) > 0 || o.transport.Value != o.transport.Allowed[0] || o.waiting.Value != o.waiting.Allowed[0] ||
		o.sends() || o.searches() || o.path.Value != o.path.Allowed[0] || max(o.loss, o.late) >= 0 || len(o.ratios) > 0
}

// sends reports whether a flag says which messages are to be sent.
func (o *trafficOptions) sends() bool {
	return len(o.sizes)+len(o.rates) > 0 || o.bytes != 0 || o.answers != 0 || o.messages != 0 || o.group != ""
}

// searches reports whether a flag says how the highest rate is to be searched for.
func (o *trafficOptions) searches() bool {
	return o.least != 0 || o.highest != 0 || o.trial != 0 || o.confirm != 0 || o.growth != 0
}

// fill makes a test one that sends messages, when it is to be one.
func (o *trafficOptions) fill(spec *v1alpha1.LatencyTestSpec) error {
	spec.Kind = v1alpha1.LatencyTestKind(o.kind.Value)
	if spec.Kind == v1alpha1.LatencyTestStackComparison {
		return errors.New("--kind=StackComparison has sides, which no flag says: write the LatencyTest into a file, as config/samples/qualification/stack-comparison.yaml, and run it with -f FILE")
	}
	if spec.Kind == v1alpha1.LatencyTestJitter {
		if o.adjusts() {
			return errors.New("--server-nodes, --transport, --group, --wait, --sizes, --messages, --rates, --bytes, --answers, --path, --loss, --late, --at-least, --highest, --trial, --confirm, --growth and --ratio " +
				"are about messages: say --kind=PingPong, --kind=RateSweep, --kind=LoadSearch or --kind=ContainerVersusHost")
		}
		return nil
	}
	spec.Traffic = &v1alpha1.TestTraffic{
		Server:    v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode, NodeNames: o.servers},
		Transport: v1alpha1.TestTransport(o.transport.Value), Waiting: v1alpha1.TestWaiting(o.waiting.Value), MulticastGroup: o.group,
	}
	if len(o.servers) > 0 {
		spec.Traffic.Server.Placement = v1alpha1.ServerOnNodes
	}
	o.fillPings(spec)
	if spec.Kind == v1alpha1.LatencyTestLoadSearch {
		return o.fillSearch(spec)
	}
	if o.searches() {
		return errors.New("--at-least, --highest, --trial, --confirm and --growth say how the highest rate is searched for: say --kind=LoadSearch")
	}
	if len(o.rates) > 0 || o.bytes != 0 || o.answers != 0 {
		spec.RateSweep = &v1alpha1.RateSweepTest{MessagesPerSecond: o.rates, Bytes: o.bytes, AnswersPerRate: o.answers}
	}
	return o.limit(spec)
}

// fillPings says how many messages go one at a time, and of which sizes.
func (o *trafficOptions) fillPings(spec *v1alpha1.LatencyTestSpec) {
	if len(o.sizes) > 0 || o.messages != 0 {
		spec.PingPong = &v1alpha1.PingPongTest{Sizes: o.sizes, MessagesPerSize: o.messages}
	}
}

// fillSearch says how the highest rate is searched for. What bounds loss and percentiles decides whether a rate passes, and not the budget.
func (o *trafficOptions) fillSearch(spec *v1alpha1.LatencyTestSpec) error {
	if err := o.checkSearch(); err != nil {
		return err
	}
	search := &v1alpha1.LoadSearchTest{
		Bytes: o.bytes, HighestMessagesPerSecond: o.highest, TrialSeconds: int32(o.trial / time.Second), ConfirmSeconds: int32(o.confirm / time.Second),
	}
	if o.loss >= 0 {
		search.LossPartsPerMillion = &o.loss
	}
	if o.growth != 0 {
		search.Growth = &v1alpha1.LatencyGrowth{Percentile: v1alpha1.P99, MaximumPercent: o.growth}
	}
	budget := &v1alpha1.LatencyBudget{MinimumMessagesPerSecond: o.least}
	if spec.Budget != nil {
		search.Percentiles, budget.MaximumNanoseconds, budget.StolenPartsPerMillion = spec.Budget.Percentiles, spec.Budget.MaximumNanoseconds, spec.Budget.StolenPartsPerMillion
	}
	if o.path.Value != o.path.Allowed[0] {
		budget.Path = v1alpha1.LatencyPath(o.path.Value)
	}
	if !reflect.DeepEqual(search, &v1alpha1.LoadSearchTest{}) {
		spec.LoadSearch = search
	}
	spec.Budget = nil
	if !reflect.DeepEqual(budget, &v1alpha1.LatencyBudget{}) {
		spec.Budget = budget
	}
	return nil
}

// checkSearch says which flags do not stand with a search, or are none of it.
func (o *trafficOptions) checkSearch() error {
	if len(o.rates) > 0 || o.answers != 0 || o.late >= 0 {
		return errors.New("--rates, --answers and --late stand with --kind=RateSweep: a search chooses its rates")
	}
	if len(o.ratios) > 0 {
		return errors.New("--ratio stands with --kind=ContainerVersusHost, which compares")
	}
	if o.trial%time.Second != 0 || o.confirm%time.Second != 0 {
		return fmt.Errorf("--trial %s and --confirm %s: they have whole seconds", o.trial, o.confirm)
	}
	return nil
}

// limit adds to the budget what is about messages alone.
func (o *trafficOptions) limit(spec *v1alpha1.LatencyTestSpec) error {
	if o.path.Value == o.path.Allowed[0] && max(o.loss, o.late) < 0 && len(o.ratios) == 0 {
		return nil
	}
	if spec.Budget == nil {
		spec.Budget = &v1alpha1.LatencyBudget{}
	}
	if o.path.Value != o.path.Allowed[0] {
		spec.Budget.Path = v1alpha1.LatencyPath(o.path.Value)
	}
	if o.loss >= 0 {
		spec.Budget.LossPartsPerMillion = &o.loss
	}
	if o.late >= 0 {
		spec.Budget.LatePartsPerMillion = &o.late
	}
	return o.limitRatios(spec.Budget)
}

// limitRatios adds the ratios of a comparison that pass to a budget.
func (o *trafficOptions) limitRatios(budget *v1alpha1.LatencyBudget) error {
	for _, given := range o.ratios {
		name, times, _ := strings.Cut(given, "=")
		ratio, err := strconv.ParseFloat(times, 64)
		parts := math.Round(ratio * ratioParts)
		if err != nil || math.IsNaN(ratio) || math.Abs(parts) > v1alpha1.MaxRatio {
			return fmt.Errorf("--ratio: %q is not written as P50=1.05", given)
		}
		budget.Ratios = append(budget.Ratios, v1alpha1.LatencyRatioBound{
			Percentile: v1alpha1.PercentileName(strings.ToUpper(name)), MaximumPartsPerThousand: int32(parts),
		})
	}
	return nil
}

// ratioParts are the parts of a ratio of one.
const ratioParts = 1000

// watchOptions say how a test is watched.
type watchOptions struct {
	timeout time.Duration
}

func (a *app) testRunCommand() *cobra.Command {
	options := &runOptions{traffic: newTrafficOptions()}
	command := &cobra.Command{
		Use:   "run [NAME]",
		Short: "Make a LatencyTest or run one again, and watch it",
		Long: `Run a LatencyTest and watch it until each of its nodes has a result. One that exists is run again: its spec.run is
raised. A new one is made from flags, which say with --profile, --pool or --nodes what it measures, or from a file
with -f.

Exit codes: 0 every node has passed; 1 one has failed; 2 wrong usage or input, or the time is over; 3 one gave no result
that can be judged, or the test was deleted meanwhile.`,
		Example: `  kubectl lowlatency test run quiet-cpus
  kubectl lowlatency test run quiet-cpus --profile trading --duration 10m --repetitions 3 --maximum 10us --percentile P9999=5us
  kubectl lowlatency test run way --nodes node-1 --kind PingPong --server-nodes node-2 --transport UDP --percentile P99=20us
  kubectl lowlatency test run rates --nodes node-1 --kind RateSweep --server-nodes node-2 --transport UDP --rates 10000,50000 --loss 0
  kubectl lowlatency test run load --nodes node-1 --kind LoadSearch --server-nodes node-2 --transport UDP --growth 300 --at-least 200000
  kubectl lowlatency test run pods --nodes node-1 --kind ContainerVersusHost --server-nodes node-2 --transport UDP --ratio P50=1.05
  kubectl lowlatency test run -f test.yaml --detach`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(func(ctx context.Context) ([]string, error) { return a.testNames(ctx, &options.testOptions) }),
		RunE: func(command *cobra.Command, args []string) error {
			return a.runTest(command.Context(), strings.Join(args, ""), options)
		},
	}
	options.testOptions.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&options.profile, "profile", "", "measure the nodes of the LowLatencyNodeProfile `NAME`")
	flags.StringVar(&options.pool, "pool", "", "measure the nodes of the BypassNICPool `NAME`")
	flags.StringSliceVar(&options.nodes, "nodes", nil, "measure these nodes, `NAME,NAME`")
	flags.Int32Var(&options.cpus, "cpus", 0, "how many CPUs of each node are measured; the operator chooses without it")
	flags.DurationVar(&options.duration, "duration", 0, "how long each repetition measures, in whole seconds; the operator chooses without it")
	flags.Int32Var(&options.repetitions, "repetitions", 0, "how often the measurement is made; the operator chooses without it")
	flags.DurationVar(&options.maximum, "maximum", 0, "the longest interruption, or latency of a message, that passes, such as 10us")
	flags.Int32Var(&options.stolen, "stolen", 0, "how many parts per million of the time may be taken from a CPU")
	flags.StringArrayVar(&options.percentiles, "percentile", nil, "`NAME=LENGTH` that passes, such as P9999=5us; repeatable")
	flags.BoolVar(&options.dryRun, "dry-run", false, "print the LatencyTest that would be made, and make nothing")
	flags.BoolVar(&options.detach, "detach", false, "do not watch")
	options.traffic.addFlags(command)
	options.watchOptions.addFlags(command)
	access := &options.access
	register(command, "profile", forFlag(func(ctx context.Context) ([]string, error) { return governing(ctx, access) }))
	register(command, "pool", forFlag(func(ctx context.Context) ([]string, error) { return a.poolNames(ctx, nil, access) }))
	register(command, "nodes", listed(func(ctx context.Context) ([]string, error) { return a.nodeNames(ctx, nil, access) }))
	return command
}

func (o *watchOptions) addFlags(command *cobra.Command) {
	command.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to watch; 0 is until each node has a result")
}

// makes reports whether a flag says what a new test is to measure.
func (o *runOptions) makes() bool {
	return len(o.files) > 0 || o.profile != "" || o.pool != "" || len(o.nodes) > 0
}

// refuseZeros refuses flags that ask for 0, which no LatencyTest can have: to take them for flags that were left out would ask for less than somebody meant.
func (o *runOptions) refuseZeros() error {
	for _, name := range []string{"maximum", "stolen", "cpus", "duration", "repetitions", "messages", "bytes", "answers", "highest", "trial", "confirm", "growth"} {
		flag := o.access.flags.Lookup(name)
		if !flag.Changed || !slices.Contains([]string{"0", "0s"}, flag.Value.String()) {
			continue
		}
		switch name {
		case "maximum":
			return errors.New("--maximum: 0 cannot be asked for: the least bound is 1ns, and without the flag the longest is not judged")
		case "stolen":
			return errors.New("--stolen: 0 cannot be asked for: the least bound is 1 part per million, and without the flag stolen time is not judged")
		}
		return fmt.Errorf("--%s: 0 cannot be asked for: without the flag, the operator chooses", name)
	}
	return nil
}

// adjusts reports whether a flag says how a new test is to measure.
func (o *runOptions) adjusts() bool {
	return o.traffic.adjusts() || o.cpus != 0 || o.duration != 0 || o.repetitions != 0 || o.maximum != 0 || o.stolen != 0 || len(o.percentiles) > 0
}

func (a *app) runTest(ctx context.Context, name string, options *runOptions) error {
	if err := options.refuseZeros(); err != nil {
		return err
	}
	if !options.makes() {
		switch {
		case name == "":
			return errors.New("name the LatencyTest that is to be run, or give one with -f FILE")
		case options.adjusts() || options.dryRun:
			return errors.New("a LatencyTest that exists is run as it is: say with --profile, --pool or --nodes what a new one measures, or leave the other flags out")
		}
		return a.rerun(ctx, name, options)
	}
	test, err := a.newTest(ctx, name, options)
	if err != nil {
		return err
	}
	if options.dryRun {
		return a.printManifest(test)
	}
	cluster, err := options.access.connect()
	if err != nil {
		return err
	}
	made := &v1alpha1.LatencyTest{}
	err = cluster.Post().Namespace(test.Namespace).Resource(latencyTests).Body(test).Do(ctx).Into(made)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is a LatencyTest %s/%s: run it again by its name alone, or delete it", test.Namespace, test.Name)
	}
	if err != nil {
		return explain("making LatencyTest "+test.Name, err)
	}
	a.complain("LatencyTest %s/%s was made", test.Namespace, test.Name)
	return a.follow(ctx, cluster, &watched{test.Namespace, test.Name, made.UID, made.Spec.Run}, options)
}

// newTest is a test from the flags or from the file, as an API server would take it.
func (a *app) newTest(ctx context.Context, name string, options *runOptions) (*v1alpha1.LatencyTest, error) {
	if len(options.files) > 0 {
		if options.adjusts() || options.profile != "" || options.pool != "" || len(options.nodes) > 0 || name != "" {
			return nil, errors.New("-f FILE says all about the LatencyTest: leave the name and the other flags out")
		}
		return a.testOfFile(ctx, options)
	}
	test, err := options.testOfFlags(name)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test)
	if err != nil {
		return nil, fmt.Errorf("writing LatencyTest %s: %w", name, err)
	}
	delete(content, "status")
	schemas, err := crdschema.Load()
	if err != nil {
		return nil, err
	}
	if errs := schemas.Validate(ctx, &unstructured.Unstructured{Object: content}); len(errs) > 0 {
		return nil, fmt.Errorf("the flags make no LatencyTest that a cluster takes:%s", sentences(errs))
	}
	return test, nil
}

func (a *app) testOfFile(ctx context.Context, options *runOptions) (*v1alpha1.LatencyTest, error) {
	all, err := a.readManifests(ctx, options.files)
	if err != nil {
		return nil, err
	}
	if len(all.tests) != 1 {
		return nil, fmt.Errorf("the files hold %d LatencyTests, and one is run", len(all.tests))
	}
	test := all.tests[0]
	if wanted := options.fileNamespace(); wanted != "" && wanted != test.Namespace {
		return nil, fmt.Errorf("-n %s: the file has LatencyTest %s of namespace %s: leave -n out, or change the file", wanted, test.Name, test.Namespace)
	}
	// What was saved of another cluster or run is no part of a new test.
	test.ObjectMeta = metav1.ObjectMeta{Namespace: test.Namespace, Name: test.Name, Labels: test.Labels}
	test.Status = v1alpha1.LatencyTestStatus{}
	return test, nil
}

func (o *runOptions) testOfFlags(name string) (*v1alpha1.LatencyTest, error) {
	if name == "" {
		return nil, errors.New("name the LatencyTest that is to be made")
	}
	if o.duration%time.Second != 0 {
		return nil, fmt.Errorf("--duration: %s are no whole seconds", o.duration)
	}
	test := &v1alpha1.LatencyTest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LatencyTest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
		Spec: v1alpha1.LatencyTestSpec{
			Nodes:           v1alpha1.LatencyTestNodes{Profile: o.profile, BypassNICPool: o.pool, Names: o.nodes},
			DurationSeconds: int32(o.duration / time.Second), Repetitions: o.repetitions,
		},
	}
	if o.cpus != 0 {
		test.Spec.Jitter = &v1alpha1.JitterTest{CPUs: o.cpus}
	}
	budget, err := o.budget()
	if err != nil {
		return nil, err
	}
	test.Spec.Budget = budget
	return test, o.traffic.fill(&test.Spec)
}

// budget is what the flags allow; nil when they say nothing.
func (o *runOptions) budget() (*v1alpha1.LatencyBudget, error) {
	if o.maximum == 0 && o.stolen == 0 && len(o.percentiles) == 0 {
		return nil, nil
	}
	budget := &v1alpha1.LatencyBudget{MaximumNanoseconds: o.maximum.Nanoseconds(), StolenPartsPerMillion: o.stolen}
	for _, given := range o.percentiles {
		name, length, _ := strings.Cut(given, "=")
		bound, err := time.ParseDuration(length)
		if err != nil {
			return nil, fmt.Errorf("--percentile: %q is not written as P9999=5us", given)
		}
		budget.Percentiles = append(budget.Percentiles, v1alpha1.LatencyPercentile{
			Percentile: v1alpha1.PercentileName(strings.ToUpper(name)), Nanoseconds: bound.Nanoseconds(),
		})
	}
	return budget, nil
}

// printManifest prints a test as somebody would write it, with all that the API server would be sent.
func (a *app) printManifest(test *v1alpha1.LatencyTest) error {
	type metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels,omitempty"`
	}
	manifest := struct {
		APIVersion string                   `json:"apiVersion"`
		Kind       string                   `json:"kind"`
		Metadata   metadata                 `json:"metadata"`
		Spec       v1alpha1.LatencyTestSpec `json:"spec"`
	}{test.APIVersion, test.Kind, metadata{test.Name, test.Namespace, test.Labels}, test.Spec}
	data, err := orderedYAML(manifest)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err = a.Out.Write(data)
	return err
}

// rerun raises spec.run, unless somebody else changes the test at the same moment.
func (a *app) rerun(ctx context.Context, name string, options *runOptions) error {
	cluster, err := options.access.connect()
	if err != nil {
		return err
	}
	test, err := fetchTest(ctx, cluster, options.namespace, name)
	if err != nil {
		return noTest(err, options.namespace, name, ", or with --profile, --pool or --nodes what a new one measures")
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": test.ResourceVersion}, "spec": map[string]any{"run": test.Spec.Run + 1},
	})
	if err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}
	err = cluster.Patch(types.MergePatchType).Namespace(options.namespace).Resource(latencyTests).Name(name).Body(patch).Do(ctx).Error()
	if apierrors.IsConflict(err) {
		return fmt.Errorf("somebody else has just changed LatencyTest %s/%s: run the command again", options.namespace, name)
	}
	if err != nil {
		return explain("raising spec.run of LatencyTest "+name, err)
	}
	a.complain("run %d of LatencyTest %s/%s", test.Spec.Run+1, options.namespace, name)
	return a.follow(ctx, cluster, &watched{options.namespace, name, test.UID, test.Spec.Run + 1}, options)
}

// watched is a test of which a run is wanted. Another test of the same name has another uid.
type watched struct {
	namespace, name string
	uid             types.UID
	run             int32
}

func (a *app) follow(ctx context.Context, cluster *rest.RESTClient, of *watched, options *runOptions) error {
	if options.detach {
		return nil
	}
	follower, err := a.newFollower(&options.access)
	if err != nil {
		return err
	}
	ctx, cancel := options.within(ctx)
	defer cancel()
	return follower.watchTest(ctx, cluster, of, nil, options.timeout)
}

func (a *app) testWatchCommand() *cobra.Command {
	options, watching := &testOptions{}, &watchOptions{}
	command := &cobra.Command{
		Use:   "watch NAME",
		Short: "Watch a LatencyTest until each of its nodes has a result",
		Long: `Watch a LatencyTest until none of its nodes is measured or waits for it: a line on the standard error whenever
something becomes of a node, how far the measurements are that run, from the logs of their pods, and at the end the
table of test report. Figures so far may still change, and nothing is judged by them. A terminal shows them in place;
elsewhere they are lines, which become rarer the longer it takes. A cluster that does not answer meanwhile is asked
again until it does; that is said once. A result counts when it is of the run that spec.run asks for at the begin.

Exit codes: 0 every node has passed; 1 one has failed; 2 wrong usage or input, or the time is over; 3 one gave no
result that can be judged, or the test was deleted meanwhile.`,
		Example:           "  kubectl lowlatency test watch quiet-cpus --timeout 1h",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(func(ctx context.Context) ([]string, error) { return a.testNames(ctx, options) }),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := options.access.connect()
			if err != nil {
				return err
			}
			follower, err := a.newFollower(&options.access)
			if err != nil {
				return err
			}
			ctx, cancel := watching.within(command.Context())
			defer cancel()
			test, err := fetchTest(ctx, cluster, options.namespace, args[0])
			if err != nil {
				return overdue(ctx, watching.timeout, noTest(err, options.namespace, args[0], ""), err)
			}
			return follower.watchTest(ctx, cluster, &watched{options.namespace, args[0], test.UID, test.Spec.Run}, test, watching.timeout)
		},
	}
	options.addClusterFlags(command)
	watching.addFlags(command)
	return command
}

func fetchTest(ctx context.Context, cluster *rest.RESTClient, namespace, name string) (*v1alpha1.LatencyTest, error) {
	test := &v1alpha1.LatencyTest{}
	if err := cluster.Get().Namespace(namespace).Resource(latencyTests).Name(name).Do(ctx).Into(test); err != nil {
		return nil, explain("reading LatencyTest "+name, err)
	}
	return test, nil
}

// noTest says what helps where a test that was to be read is not there; otherwise begins with a comma and says what else does. Other errors stay as they are.
func noTest(err error, namespace, name, otherwise string) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no LatencyTest %s/%s: say with -n in which namespace it is%s", namespace, name, otherwise)
	}
	return err
}

// watchTest says what becomes of the nodes until all are done with a run, prints the report, and ends by the outcome.
// first is what was read of the test already; nil for nothing.
func (f *follower) watchTest(ctx context.Context, cluster *rest.RESTClient, of *watched, first *v1alpha1.LatencyTest, timeout time.Duration) error {
	defer f.shown.End()
	for test := first; ; test = nil {
		isDeleted := false
		if test == nil {
			test, isDeleted = f.read(ctx, cluster, of)
		}
		if isDeleted {
			return errUnknown
		}
		if test != nil {
			if isEnded, err := f.look(ctx, test, of.run); isEnded {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return overdue(ctx, timeout, ctx.Err(), f.lost)
		case <-time.After(lookEvery):
		}
	}
}

// read reads the test that is watched; nil when that does not work now. A measurement takes hours and goes on in the cluster, so that a moment in which the
// cluster does not answer ends nothing: it is said once, and again when it is over.
func (f *follower) read(ctx context.Context, cluster *rest.RESTClient, of *watched) (test *v1alpha1.LatencyTest, isDeleted bool) {
	test, err := fetchTest(ctx, cluster, of.namespace, of.name)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, false
	case apierrors.IsNotFound(err):
		f.say("LatencyTest %s/%s was deleted while it was watched", of.namespace, of.name)
		return nil, true
	case err != nil:
		if f.lost == nil {
			f.say("%v; the test goes on, and is looked at again until that works", err)
		}
		f.lost = err
		return nil, false
	case test.UID != of.uid:
		f.say("LatencyTest %s/%s was deleted while it was watched, and another one has its name", of.namespace, of.name)
		return nil, true
	}
	if f.lost != nil {
		f.say("reading LatencyTest %s works again", of.name)
		f.lost = nil
	}
	return test, false
}

// look says what has become of the nodes of a test. When all are done with a run, it prints the report, and the error is that by which a command ends.
func (f *follower) look(ctx context.Context, test *v1alpha1.LatencyTest, run int32) (isEnded bool, err error) {
	v := view.OfLatencyTest(test)
	f.show(ctx, &v)
	if !isDone(test, run) {
		return false, nil
	}
	f.shown.End()
	v.OnlyRun(run)
	if err := f.printHarmless(text.LatencyTests([]view.LatencyTest{v}, f.palette(), f.width())); err != nil {
		return true, err
	}
	return true, testVerdict([]view.LatencyTest{v})
}

// within is a context that ends with the time for which a test is watched.
func (o *watchOptions) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.timeout > 0 {
		return context.WithTimeout(ctx, o.timeout)
	}
	return context.WithCancel(ctx)
}

// overdue says that the time is over where that is why something failed, which err tells otherwise. lost is why the test could not be read last; nil when it could.
func overdue(ctx context.Context, timeout time.Duration, err, lost error) error {
	const goesOn = "the test goes on, and kubectl lowlatency test watch shows how"
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return err
	case lost != nil:
		return fmt.Errorf("it is not known after %s whether all nodes have a result: %w; %s", timeout, lost, goesOn)
	default:
		return fmt.Errorf("not all nodes have a result after %s; %s", timeout, goesOn)
	}
}

// clock is the time of day, by which lines begin.
func clock() string { return time.Now().UTC().Format(time.TimeOnly) }

// isDone reports whether the operator has seen the test, and measures no node of it and none waits.
func isDone(test *v1alpha1.LatencyTest, run int32) bool {
	if test.Status.ObservedGeneration < test.Generation || test.Spec.Run < run || test.Status.ObservedGeneration == 0 {
		return false
	}
	for i := range test.Status.Results {
		if test.Status.Results[i].Activity != v1alpha1.LatencyIdle {
			return false
		}
	}
	return true
}
