// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

const (
	// annotationNetworks asks Multus for networks, and annotationNetworkStatus is where it says what a pod was given (the de-facto
	// standard of the Network Plumbing Working Group, version 1.3, sections 4.1 and 5).
	annotationNetworks      = "k8s.v1.cni.cncf.io/networks"
	annotationNetworkStatus = "k8s.v1.cni.cncf.io/network-status"
	// mostHugepages of 2 MiB are asked for by the pod of an end: as many as a stack takes for one program.
	mostHugepages     = 64
	hugepageMebibytes = 2
	trafficMebibytes  = 256
	sizeMebibytes     = 48 // of a million messages
	million           = 1_000_000
	// answerBytes is what the time of an answer takes, of which there may be twice as many as asked for, in both programs.
	answerBytes        = 256
	trafficOverhead    = 90 * time.Second
	serverSuffix       = "-server"
	serverArg          = "--server="
	sizeOfAllHugepages = "2Mi"
)

// serverFor is the node that is to run the server of a node that is to be measured; otherwise why there is none now.
func (d *decider) serverFor(c *candidate, wanted string) (*candidate, string) {
	server := qualification.ParametersOf(&d.Test.Spec).Traffic.Server
	if server.Placement == v1alpha1.ServerOnSameNode {
		return c, ""
	}
	why := "none of the nodes of spec.traffic.server.nodeNames exists beside the measured one"
	for _, name := range server.NodeNames {
		s := d.serverNode(name)
		if s == nil || name == c.node.Name {
			continue
		}
		if why = d.occupied(s, wanted); why == "" {
			return s, ""
		}
		why = fmt.Sprintf("waits for node %s, which is to run the server: %s", name, why)
	}
	return nil, why
}

// isTaken reports whether the test itself uses a node now, to measure it or for a server.
func (d *decider) isTaken(node string) bool {
	return slices.ContainsFunc(d.Status.Results, func(r v1alpha1.LatencyTestResult) bool {
		return r.Activity == v1alpha1.LatencyRunning && uses(&r, node)
	})
}

// uses reports whether a result that is under way takes a node.
func uses(result *v1alpha1.LatencyTestResult, node string) bool {
	return result.Node == node || (result.Server != nil && result.Server.Node == node)
}

// poolOf is the pool of an end; nil for none. Otherwise it says why there is none.
func (w *World) poolOf(end *v1alpha1.TestEnd) (*v1alpha1.BypassNICPool, string) {
	if end.BypassNICPool == "" {
		return nil, ""
	}
	at := slices.IndexFunc(w.Pools, func(p *v1alpha1.BypassNICPool) bool { return p.Name == end.BypassNICPool })
	if at < 0 {
		return nil, fmt.Sprintf("waits for BypassNICPool %s, which does not exist", end.BypassNICPool)
	}
	pool := w.Pools[at]
	if attachment := pool.Spec.NetworkAttachment; attachment != nil && !slices.Contains(attachment.Namespaces, w.Test.Namespace) {
		return nil, fmt.Sprintf("spec.networkAttachment.namespaces of BypassNICPool %s does not have %s, the namespace of the test", pool.Name, w.Test.Namespace)
	}
	return pool, ""
}

// notClaimed says what pods need that ask for a NIC of a DRA driver by the name of its resource, as those of all ends do: the scheduler makes the claim of
// such a pod, by the name in the pool's DeviceClass. It is for the end of a sentence about a pod that does not start; "" where no such pool is asked.
func (w *World) notClaimed(end *v1alpha1.TestEnd) string {
	pool, _ := w.poolOf(end)
	if pool == nil || bypass.Allocation(&pool.Spec) != v1alpha1.AllocationDynamic {
		return ""
	}
	return fmt.Sprintf("; the pod asks by the name of the resource for a NIC of BypassNICPool %s, which has allocation DynamicResourceAllocation: the scheduler makes "+
		"its claim from Kubernetes 1.36 on, or with the feature gate DRAExtendedResource, and not while nodes still know the device plugin of the pool", pool.Name)
}

// poolMissing says which pool of the test cannot be used; "" when all can.
func (w *World) poolMissing() string {
	p := qualification.ParametersOf(&w.Test.Spec)
	if p.Traffic == nil {
		return ""
	}
	for _, side := range p.Sides() {
		if why := w.poolsMissing(&p, &side); why != "" {
			return why
		}
	}
	return ""
}

// poolsMissing says which pool of a side cannot be used.
func (w *World) poolsMissing(p *qualification.Parameters, side *qualification.Side) string {
	var frames []*v1alpha1.BypassNICPool
	path := side.Path
	if path == "" && w.Test.Spec.Budget != nil {
		path = w.Test.Spec.Budget.Path
	}
	for _, end := range []*v1alpha1.TestEnd{&side.Server, &side.Client} {
		pool, why := w.poolOf(end)
		if why == "" && pool != nil {
			why = otherThanPath(path, pool, end)
		}
		if why == "" {
			why = besideNIC(side, pool, end)
		}
		if why != "" {
			return why
		}
		if goesAsFrames(pool, end) {
			frames = append(frames, pool)
		}
	}
	if why := framesMissing(p, frames); why != "" {
		return why
	}
	return w.addressesMissing(side)
}

// addressesMissing says which end of a side gets no address in the network of its pool. An end in the network of its node has those of the node.
func (w *World) addressesMissing(side *qualification.Side) string {
	for _, one := range []struct {
		end      *v1alpha1.TestEnd
		isOnHost bool
	}{{&side.Server, side.IsServerOnHost}, {&side.Client, side.IsOnHost}} {
		pool, _ := w.poolOf(one.end)
		if pool == nil || one.isOnHost || goesAsFrames(pool, one.end) {
			continue
		}
		if why := addressMissing(pool, one.end); why != "" {
			return why
		}
	}
	return ""
}

// otherThanPath says why the messages of an end with a pool cannot go by a path, "" for any; "" when they can.
func otherThanPath(path v1alpha1.LatencyPath, pool *v1alpha1.BypassNICPool, end *v1alpha1.TestEnd) string {
	isFrames := goesAsFrames(pool, end)
	switch {
	case path == v1alpha1.LatencyPathAccelerated && !isFrames:
		return withoutSockets(pool)
	case path == v1alpha1.LatencyPathKernel && isFrames:
		return fmt.Sprintf("BypassNICPool %s has stack AFXDP, whose frames go past the kernel, and path Kernel is asked for: set sockets Kernel at both ends", pool.Name)
	}
	return ""
}

// addressMissing says why the pod of an end gets no address in the network of its pool, or has one that no network takes; "" otherwise.
func addressMissing(pool *v1alpha1.BypassNICPool, end *v1alpha1.TestEnd) string {
	attachment := pool.Spec.NetworkAttachment
	switch {
	case attachment == nil && end.Address != "":
		return fmt.Sprintf("BypassNICPool %s has no spec.networkAttachment, which would take address %s: leave the address out, and messages go by the pods' own network", pool.Name, end.Address)
	case attachment != nil && attachment.Addresses == v1alpha1.AddressesNone:
		return fmt.Sprintf("spec.networkAttachment.addresses of BypassNICPool %s is None, and messages need an address: name a pool whose addresses are Static", pool.Name)
	case attachment != nil && end.Address == "":
		return fmt.Sprintf("spec.networkAttachment.addresses of BypassNICPool %s is Static, and the end has no address: give it one", pool.Name)
	}
	return ""
}

// wayArgs tell the pod of an end how its messages go; none for sockets of the C library with what the pool preloads.
func wayArgs(pool *v1alpha1.BypassNICPool, end *v1alpha1.TestEnd) []string {
	switch {
	case end.Sockets == v1alpha1.TestSocketsKernel:
		return []string{"--sockets=" + string(v1alpha1.TestSocketsKernel)}
	case goesAsFrames(pool, end):
		return frameArgs(pool, end)
	default:
		return nil
	}
}

// withoutSockets says that the stack of a pool accelerates no program with sockets; "" when it does. What it is to be measured with is then a program of
// the vendor.
func withoutSockets(pool *v1alpha1.BypassNICPool) string {
	stack := bypass.StackOf(pool.Spec.Stack.Type)
	if stack.AcceleratesSockets {
		return ""
	}
	program := ""
	if stack.Measures != "" {
		program = ": its programs, such as " + stack.Measures + " of its vendor, measure it"
	}
	return fmt.Sprintf("BypassNICPool %s has stack %s, which accelerates no sockets, and what is to go by path Accelerated is measured through sockets%s", pool.Name, stack.Type, program)
}

// followServer looks after the server of a node that is measured, and makes the Job of the client when it is ready. It reports whether
// the client is to be looked after, too.
func (d *decider) followServer(c *candidate, result *v1alpha1.LatencyTestResult) bool {
	client, server := d.jobNamed(result.Job), d.jobNamed(result.Server.Job)
	if client != nil && isDone(client) {
		return true
	}
	age := d.Now.Sub(result.StartedTime.Time)
	switch {
	case d.isOutdatedSeries(server, c, result):
		result.Activity, result.PendingFingerprint = v1alpha1.LatencyIdle, nil
	case d.serverNode(result.Server.Node) == nil:
		d.fail(result, faultf(v1alpha1.TestPeerVanished, "node %s, which ran the server, went away", result.Server.Node))
	case server == nil:
		d.missServer(result, age)
	case isDone(server):
		d.concludeServer(server, result)
	case result.Server.Address == "":
		d.awaitServer(server, c, result, age)
	default:
		return true
	}
	if result.Activity != v1alpha1.LatencyRunning {
		d.stopNamed(result.Job)
	}
	return false
}

// missServer waits for a Job of a server that was just made, and gives up one that somebody has deleted.
func (d *decider) missServer(result *v1alpha1.LatencyTestResult, age time.Duration) {
	if result.Server.Address == "" && age < jobAppears {
		d.again(jobAppears - age)
		return
	}
	d.fail(result, faultf(v1alpha1.TestJobGone, "Job %s of the server was deleted before there was a result", result.Server.Job))
}

// concludeServer says why a server has ended, once the news of its pod is there.
func (d *decider) concludeServer(server *batchv1.Job, result *v1alpha1.LatencyTestResult) {
	if late := d.podIsLate(server); late > 0 {
		d.again(late)
		return
	}
	d.fail(result, d.whyServerEnded(server))
}

// whyServerEnded is why a server has ended, which none does by itself.
func (d *decider) whyServerEnded(job *batchv1.Job) *fault {
	pods := d.podsOf(job)
	if len(pods) == 0 {
		return faultf(v1alpha1.TestPeerFailed, "Job %s of the server ended without a pod: %s", job.Name, whyEnded(job))
	}
	at := max(0, slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return endOf(pod) != nil }))
	ended := endOf(pods[at])
	if ended != nil {
		if record, err := qualification.Parse(ended.Message); err == nil && record.Problem != nil {
			return faultf(record.Problem.Reason, "the server: %s", record.Problem.Message)
		}
	}
	return faultf(v1alpha1.TestPeerFailed, "pod %s of the server has ended: %s", pods[at].Name, whyFailed(pods[at], ended))
}

// awaitServer makes the Job of the client when the pod of the server is ready, and gives up when that takes too long.
func (d *decider) awaitServer(server *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult, age time.Duration) {
	parameters := qualification.ParametersOf(&d.Test.Spec)
	side := parameters.SideOf(int(result.ComparedRuns))
	address, sentence := d.addressOf(server, &side)
	switch {
	case !d.isServer(server, result):
		d.fail(result, faultf(v1alpha1.TestForeignPod, "Job %s or its pod is not the server that the operator has made on node %s", server.Name, result.Server.Node))
	case address != "":
		result.Server.Address, result.StartedTime = address, new(metav1.NewTime(d.Now))
		d.again(jobAppears)
		d.create(d.jobFor(c, result), result)
	case age >= StartTime:
		d.fail(result, faultf(v1alpha1.TestNotStarted, "the server did not start on node %s within %s: %s%s", result.Server.Node, StartTime, sentence,
			d.notClaimed(&side.Server)))
	default:
		d.again(StartTime - age)
		d.tell(result, d.inSeries(result)+sentence)
	}
}

// isServer reports whether a Job is that of the server, and its pod, where there is one, the only one and where it belongs.
func (d *decider) isServer(job *batchv1.Job, result *v1alpha1.LatencyTestResult) bool {
	pods := d.podsOf(job)
	if !isControlledBy(job, d.Test.UID) || !d.isOwnServer(job, result) || len(pods) > 1 {
		return false
	}
	return len(pods) == 0 || pods[0].Spec.NodeName == "" ||
		(pods[0].Spec.NodeName == result.Server.Node && sameProgram(&pods[0].Spec, &job.Spec.Template.Spec))
}

// tell says how far a node is that has no outcome which people would rather read.
func (d *decider) tell(result *v1alpha1.LatencyTestResult, sentence string) {
	if result.Outcome == "" || result.Outcome == v1alpha1.LatencyInconclusive {
		result.Message = shorten.Sentence(sentence, v1alpha1.MaxTestMessageLength)
	}
}

// addressOf is where the server of a Job listens, that of a side; otherwise how far it is.
func (d *decider) addressOf(job *batchv1.Job, side *qualification.Side) (address, sentence string) {
	sentence, started := d.progress(job)
	if !started {
		return "", "the server: " + sentence
	}
	pod := d.podsOf(job)[0]
	isReady := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if !isReady {
		return "", "the server: pod " + pod.Name + " is not ready yet"
	}
	pool, _ := d.poolOf(&side.Server)
	if side.IsServerOnHost {
		return qualification.AddressOf(&side.Server), ""
	}
	if pool == nil || pool.Spec.NetworkAttachment == nil {
		return ipv4(pod.Status.PodIP), "the server: pod " + pod.Name + " has no IPv4 address"
	}
	return attachedAddress(pod, pool.Name), "the server: pod " + pod.Name + " has no IPv4 address in the network of BypassNICPool " + pool.Name
}

// ipv4 is an address as the program takes it; "" when it is none.
func ipv4(text string) string {
	address, err := netip.ParseAddr(text)
	if err != nil || !address.Is4() || address.IsUnspecified() || address.IsMulticast() || address.IsLoopback() {
		return ""
	}
	return address.String()
}

// attachedAddress is the first IPv4 address that a pod was given in the network of a pool.
func attachedAddress(pod *corev1.Pod, pool string) string {
	var networks []struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips"`
	}
	if json.Unmarshal([]byte(pod.Annotations[annotationNetworkStatus]), &networks) != nil {
		return ""
	}
	for _, network := range networks {
		if network.Name != pod.Namespace+"/"+pool && network.Name != pool {
			continue
		}
		for _, ip := range network.IPs {
			if address := ipv4(ip); address != "" {
				return address
			}
		}
	}
	return ""
}

// networksOf is what an end asks of Multus; "" for the pods' own network alone.
func networksOf(pool *v1alpha1.BypassNICPool, end *v1alpha1.TestEnd) string {
	if pool == nil || pool.Spec.NetworkAttachment == nil {
		return ""
	}
	network := struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips,omitempty"`
	}{Name: pool.Name}
	if end.Address != "" {
		network.IPs = []string{end.Address}
	}
	text, err := json.Marshal([]any{network})
	if err != nil {
		return ""
	}
	return string(text)
}

// serverJobFor is the Job of the server of a node; the candidate is the node that runs it.
func (w *World) serverJobFor(server *candidate, result *v1alpha1.LatencyTestResult) *batchv1.Job {
	parameters := qualification.ParametersOf(&w.Test.Spec)
	// The client of each run has to start.
	seconds := int64(parameters.Runs()) * (int64(StartTime.Seconds()) + trafficSeconds(&parameters))
	args := []string{"--kind=" + string(parameters.Kind), "--role=Server"}
	side := parameters.SideOf(int(result.ComparedRuns))
	if side.IsServerOnHost {
		args = append(args, "--listen="+qualification.AddressOf(&side.Server))
	}
	job := w.trafficJob(server, &side.Server, result.Server.Job, seconds, trafficMebibytes, append(args, w.nicArgs(&side, &side.Server)...))
	if side.IsServerOnHost {
		moveToHost(job)
	}
	if w.needsHosts() {
		job.Spec.Template.Labels = withLabel(job.Spec.Template.Labels, v1alpha1.LabelTestClients, string(v1alpha1.LatencySideHost))
	}
	return job
}

// clientJobFor is the Job of the client that measures a node.
func (w *World) clientJobFor(c *candidate, name string, result *v1alpha1.LatencyTestResult) *batchv1.Job {
	parameters := qualification.ParametersOf(&w.Test.Spec)
	address := ""
	if result.Server != nil {
		address = result.Server.Address
	}
	args := []string{
		"--kind=" + string(parameters.Kind), "--role=Client", serverArg + address, "--transport=" + string(parameters.Traffic.Transport),
		"--waiting=" + string(parameters.Traffic.Waiting), "--sizes=" + commas(parameters.Sizes),
		"--duration=" + parameters.Duration.String(), fmt.Sprintf("--repetitions=%d", parameters.RepetitionsOfRun()),
	}
	if parameters.Traffic.Group != "" {
		args = append(args, "--group="+parameters.Traffic.Group)
	}
	if parameters.HasOtherMessages() {
		args = append(args, fmt.Sprintf("--messages=%d", parameters.Messages))
	}
	if len(parameters.Rates) > 0 {
		args = append(args, "--rates="+commas(parameters.Rates), fmt.Sprintf("--answers=%d", parameters.Answers))
	}
	if parameters.Load != nil {
		args = append(args, searchArgs(parameters.Load)...)
	}
	side := parameters.SideOf(int(result.ComparedRuns))
	job := w.trafficJob(c, &side.Client, name, trafficSeconds(&parameters), clientMebibytes(&parameters), append(args, w.nicArgs(&side, &side.Client)...))
	if side.IsOnHost {
		moveToHost(job)
	}
	if parameters.Comparison != nil {
		job.Spec.TTLSecondsAfterFinished = new(int32(keptSeconds + parameters.Runs()*int(StartTime.Seconds()+float64(trafficSeconds(&parameters)))))
	}
	return job
}

// searchArgs say how a search goes.
func searchArgs(l *qualification.Load) []string {
	args := []string{
		fmt.Sprintf("--minimum=%d", l.Lowest), fmt.Sprintf("--start=%d", l.First), fmt.Sprintf("--highest=%d", l.Highest), fmt.Sprintf("--granularity=%g", l.Granularity()),
		fmt.Sprintf("--probes=%d", l.ProbesPerSecond), "--sniff=" + l.Sniff.String(), "--search=" + l.Trial.String(), "--confirm=" + l.Confirm.String(),
		fmt.Sprintf("--retries=%d", l.Retries), fmt.Sprintf("--loss=%d", l.LossPartsPerMillion),
	}
	limits := make([]string, 0, len(l.Percentiles))
	for _, bound := range l.Percentiles {
		limits = append(limits, fmt.Sprintf("--limit=%g=%dns", qualification.PercentOf(bound.Percentile), bound.Nanoseconds))
	}
	growth := []string{fmt.Sprintf("--growth=%g", l.Growth()), fmt.Sprintf("--growth-percentile=%g", qualification.PercentOf(l.GrowthPercentile))}
	return slices.Concat(args, limits, growth)
}

// clientMebibytes are what the client needs: the times of the messages of each size, and those of the answers at each rate or of the probes of a
// trial.
func clientMebibytes(p *qualification.Parameters) int {
	answers := int64(p.Answers) * answerBytes * int64(len(p.Rates)+1)
	if p.Load != nil {
		answers = int64(p.Load.ProbesPerSecond) * int64(p.Load.Confirm.Seconds()) * answerBytes
	}
	sizes := sizeMebibytes * len(p.Sizes)
	if p.Messages > 0 {
		sizes = int(int64(sizes) * int64(p.Messages) / million)
	}
	return trafficMebibytes + max(sizes, sizeMebibytes) + int(answers>>20)
}

// trafficSeconds is what the measurement of a Job takes at most. Each trial of a search takes longer than its messages are sent.
func trafficSeconds(p *qualification.Parameters) int64 {
	longest := p.Duration
	if p.Load != nil {
		longest *= 2
	}
	return int64(p.RepetitionsOfRun()) * int64((longest + trafficOverhead).Seconds())
}

func commas(numbers []int32) string {
	words := make([]string, 0, len(numbers))
	for _, n := range numbers {
		words = append(words, strconv.Itoa(int(n)))
	}
	return strings.Join(words, ",")
}

// trafficJob is the Job of an end.
func (w *World) trafficJob(on *candidate, end *v1alpha1.TestEnd, name string, seconds int64, mebibytes int, args []string) *batchv1.Job {
	pool, _ := w.poolOf(end)
	cpus := CPUsAskedFor(1, on.report)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(cpus), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(mebibytes)<<20, resource.BinarySI),
	}
	if pool != nil {
		resources[corev1.ResourceName(pool.Spec.ResourceName)] = *resource.NewQuantity(1, resource.DecimalSI)
		if pages := hugepagesOf(pool); pages > 0 {
			resources[corev1.ResourceHugePagesPrefix+sizeOfAllHugepages] = *resource.NewQuantity(int64(pages*hugepageMebibytes)<<20, resource.BinarySI)
		}
	}
	job := w.job(on, name, seconds, w.container(w.TrafficImage, resources, slices.Concat(args, wayArgs(pool, end), []string{
		fmt.Sprintf("--own=%d", cpus), "--record=" + RecordFile,
	})))
	if networks := networksOf(pool, end); networks != "" {
		job.Spec.Template.Annotations = map[string]string{annotationNetworks: networks}
	}
	return job
}

// hugepagesOf is how many hugepages of 2 MiB an end asks for: those that the pool reserves for each NIC, as far as a program takes them.
func hugepagesOf(pool *v1alpha1.BypassNICPool) int32 {
	for _, pages := range pool.Spec.Hugepages {
		if pages.Size == sizeOfAllHugepages {
			return min(pages.CountPerNIC, mostHugepages)
		}
	}
	return 0
}
