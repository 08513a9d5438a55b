// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"io"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const (
	// tunedUnitName is the unit that applies the TuneD profile at boot.
	tunedUnitName = "lowlatency-tuned.service"
	// tunedImageFile names the Node Tuning Operator's image as NTO_IMAGE. The operator's pod writes it on each node, next
	// to the profiles that it has last applied there (pkg/tuned/controller.go of openshift/cluster-node-tuning-operator).
	tunedImageFile = "/var/lib/ocp-tuned/image.env"
	// tunedTimeout is longer than the 60 seconds after which the image's own program ends TuneD, so that there is time to
	// pull an image that CRI-O has removed after a power failure.
	tunedTimeout = "180"
)

// tunedUnit runs the Node Tuning Operator's TuneD once before anything can start a pod. Its DaemonSet starts together
// with the pods that are bound to the node already, so that after a reboot that nobody planned they would run for a while
// on a node with the kernel's defaults. Profile and TuneD are those that the DaemonSet applies, so there is one answer to
// what the node is tuned with. The unit's text names no setting: a setting that changes takes no reboot.
//
// A failure does not keep the kubelet down: a node that cannot be reached cannot be repaired, and the checks tell what is
// not in force. What TuneD holds open, such as a latency request, ends with it and is back when the DaemonSet has started.
func tunedUnit() plan.Unit {
	command := "/usr/bin/podman run --rm --replace --name lowlatency-tuned" +
		" --privileged --net=host --pid=host --security-opt=label=disable --log-driver=none" +
		" --authfile=/var/lib/kubelet/config.json" +
		" --volume=" + strings.Join(tunedVolumes(), " --volume=") +
		" --entrypoint=/usr/bin/cluster-node-tuning-operator ${NTO_IMAGE} ocp-tuned --in-cluster=false --one-shot=true"
	option := unit.NewUnitOption
	content, _ := io.ReadAll(unit.Serialize([]*unit.UnitOption{
		option("Unit", "Description", "Apply the TuneD profile before pods start"),
		option("Unit", "ConditionPathExists", tunedImageFile),
		option("Unit", "Wants", "network-online.target"),
		// crio-wipe.service may empty the storage from which podman takes the image.
		option("Unit", "After", "systemd-sysctl.service network-online.target crio-wipe.service"),
		option("Unit", "Before", "crio.service kubelet.service"),
		option("Service", "Type", "oneshot"),
		option("Service", "RemainAfterExit", "true"),
		option("Service", "TimeoutStartSec", tunedTimeout),
		option("Service", "EnvironmentFile", "-/etc/mco/proxy.env"),
		option("Service", "EnvironmentFile", tunedImageFile),
		option("Service", "ExecStartPre", "/usr/bin/mkdir -p /run/tuned /var/lib/tuned"),
		option("Service", "ExecStart", command),
		option("Install", "WantedBy", "multi-user.target"),
	}))
	return plan.Unit{Name: tunedUnitName, Content: string(content), Enabled: true}
}

// tunedVolumes are the folders of the host that TuneD reads and writes for the profiles that are rendered here and their
// parents.
func tunedVolumes() []string {
	return []string{
		"/etc/modprobe.d:/etc/modprobe.d",
		"/etc/sysctl.conf:/etc/sysctl.conf:ro",
		"/etc/sysctl.d:/etc/sysctl.d:ro",
		"/run/systemd:/run/systemd",
		"/run/tuned:/run/tuned",
		"/sys:/sys",
		"/var/lib/ocp-tuned:/host/var/lib/ocp-tuned",
		"/var/lib/tuned:/host/var/lib/tuned",
	}
}
