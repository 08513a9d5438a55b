// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package supportreport

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// testsFolder has the LatencyTests, jobsFolder the Jobs that measure for them.
const (
	testsFolder = "latencytests"
	jobsFolder  = "latencytest-jobs"
)

// kind is one list of objects of a report.
type kind struct {
	// folder is where they are in the report, path where the API server has them.
	folder, path string
	// namespace is that of all of the list, where it is one of users.
	namespace string
	// selector is a label selector; "" for all of the list.
	selector string
	// keep tells those that belong into the report; nil for all.
	keep func(object map[string]any) bool
	// reduce takes away what does not; nil for nothing but what no object needs.
	reduce func(object map[string]any)
}

// in is the folder of an object: lists of namespaces of users have one for each.
func (k *kind) in(object map[string]any) string {
	namespace, _ := fields(object, "metadata")["namespace"].(string)
	if namespace != "" && (k.namespace != "" || !strings.Contains(k.path, "/namespaces/")) {
		return path.Join(k.folder, harmless(namespace))
	}
	return k.folder
}

// kinds are the table of all that a report holds of the API server. Secrets are not in it and must never be, nor is what others have
// rendered: a rendered MachineConfig holds the pull secret of the cluster.
func kinds(options *Options) []kind {
	const own = v1alpha1.LabelManagedBy + "=" + v1alpha1.ProjectName
	ours := "/apis/" + v1alpha1.GroupVersion.String() + "/"
	operator, agents := "/namespaces/"+url.PathEscape(options.Namespace)+"/", "/namespaces/"+url.PathEscape(options.AgentNamespace)+"/"
	return []kind{
		{folder: "lowlatencynodeprofiles", path: ours + "lowlatencynodeprofiles"},
		{folder: "bypassnicpools", path: ours + "bypassnicpools"},
		{folder: "lowlatencynodes", path: ours + "lowlatencynodes"},
		// These are in namespaces of their users.
		{folder: testsFolder, path: ours + "latencytests"},
		{folder: jobsFolder, path: "/apis/batch/v1/jobs", selector: v1alpha1.LabelLatencyTest},
		{folder: "latencytest-pods", path: "/api/v1/pods", selector: v1alpha1.LabelLatencyTest},
		{folder: "nodes", path: "/api/v1/nodes", keep: options.isOurNode, reduce: reduceNode},
		{folder: "machineconfigs", path: "/apis/machineconfiguration.openshift.io/v1/machineconfigs", selector: own},
		{folder: "kubeletconfigs", path: "/apis/machineconfiguration.openshift.io/v1/kubeletconfigs", selector: own},
		{folder: "machineconfigpools", path: "/apis/machineconfiguration.openshift.io/v1/machineconfigpools", selector: own},
		{folder: "tuneds", path: "/apis/tuned.openshift.io/v1/tuneds", selector: own},
		{folder: "runtimeclasses", path: "/apis/node.k8s.io/v1/runtimeclasses", selector: own},
		{folder: "operator/configmaps", path: "/api/v1" + operator + "configmaps", selector: own},
		{folder: "operator/deployments", path: "/apis/apps/v1" + operator + "deployments"},
		{folder: "operator/pods", path: "/api/v1" + operator + "pods"},
		{folder: "operator/events", path: "/api/v1" + operator + "events"},
		{folder: "agents/configmaps", path: "/api/v1" + agents + "configmaps", selector: own},
		{folder: "agents/daemonsets", path: "/apis/apps/v1" + agents + "daemonsets"},
		{folder: "agents/pods", path: "/api/v1" + agents + "pods"},
		{folder: "agents/leases", path: "/apis/coordination.k8s.io/v1" + agents + "leases"},
		{folder: "agents/events", path: "/api/v1" + agents + "events"},
		// Events of objects without a namespace are in this one.
		{folder: "events", path: "/api/v1/namespaces/default/events", keep: isOurEvent},
	}
}

// isOurEvent reports whether an event is about one of our kinds or about a Node.
func isOurEvent(event map[string]any) bool {
	about := fields(event, "involvedObject")
	version, _ := about["apiVersion"].(string)
	group, err := url.Parse(version)
	return about["kind"] == "Node" || err == nil && group.Path == v1alpha1.GroupVersion.String()
}

// testEvents are the lists of events about LatencyTests, their Jobs and pods, of which the API server has one in each namespace with such
// tests. They are known when the tests have been read.
func (r *report) testEvents() []kind {
	lists := make([]kind, 0, len(r.tested))
	for _, namespace := range slices.Sorted(maps.Keys(r.tested)) {
		jobs := r.tested[namespace]
		lists = append(lists, kind{
			folder: "latencytest-events", namespace: namespace, path: "/api/v1/namespaces/" + url.PathEscape(namespace) + "/events",
			keep: func(event map[string]any) bool { return isTestEvent(event, jobs) },
		})
	}
	return lists
}

// isTestEvent reports whether an event is about a LatencyTest, one of the Jobs, or a pod of one, which may be gone.
func isTestEvent(event map[string]any, jobs map[string]bool) bool {
	about := fields(event, "involvedObject")
	name, _ := about["name"].(string)
	switch about["kind"] {
	case "Job":
		return jobs[name]
	case "Pod":
		end := max(strings.LastIndexByte(name, '-'), 0)
		return jobs[name[:end]]
	case "LatencyTest":
		return isOurEvent(event)
	}
	return false
}

// learnTest notes the namespace of a LatencyTest and the Jobs that it names.
func (r *report) learnTest(test map[string]any) {
	r.learnJobs(test)
	results, _ := fields(test, "status")["results"].([]any)
	for _, entry := range results {
		result, _ := entry.(map[string]any)
		r.learnJobs(test, result["job"])
	}
}

// learnJobs notes the namespace of an object and names of Jobs in it.
func (r *report) learnJobs(in map[string]any, names ...any) {
	namespace, _ := fields(in, "metadata")["namespace"].(string)
	if r.tested[namespace] == nil {
		r.tested[namespace] = map[string]bool{}
	}
	for _, name := range names {
		if name, _ := name.(string); name != "" {
			r.tested[namespace][name] = true
		}
	}
}

// reduceNode leaves what the operator reads and writes of a Node: images, addresses and annotations of others say whose cluster it is.
func reduceNode(node map[string]any) {
	status := fields(node, "status")
	for name := range status {
		if name != "conditions" && name != "capacity" && name != "allocatable" && name != "nodeInfo" {
			delete(status, name)
		}
	}
	information := fields(status, "nodeInfo")
	delete(information, "machineID")
	delete(information, "systemUUID")
	annotations := fields(fields(node, "metadata"), "annotations")
	for name := range annotations {
		if !isReadAnnotation(name) {
			delete(annotations, name)
		}
	}
}

// fields is the map below a name; nil when there is none. Deleting from that is harmless.
func fields(object map[string]any, name string) map[string]any {
	found, _ := object[name].(map[string]any)
	return found
}
