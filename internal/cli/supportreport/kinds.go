// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package supportreport

import (
	"net/url"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// testsFolder has the LatencyTests.
const testsFolder = "latencytests"

// kind is one list of objects of a report.
type kind struct {
	// folder is where they are in the report, path where the API server has them.
	folder, path string
	// selector is a label selector; "" for all of the list.
	selector string
	// keep tells those that belong into the report; nil for all.
	keep func(object map[string]any) bool
	// reduce takes away what does not; nil for nothing but what no object needs.
	reduce func(object map[string]any)
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
		{folder: "latencytest-jobs", path: "/apis/batch/v1/jobs", selector: v1alpha1.LabelLatencyTest},
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
