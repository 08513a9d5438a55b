// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"regexp"
)

func readKubelet(r *reader, f *Facts) {
	f.Kubelet = Kubelet{
		Config:             r.kubeletConfig(),
		CPUManagerState:    r.textFact(cpuStateFile),
		MemoryManagerState: r.textFact(memoryStateFile),
	}
}

// kubeletConfig returns the first file that holds a KubeletConfiguration. Under the name that OpenShift
// gives to it, kubeadm keeps a kubeconfig with the credentials of the node: that is neither kept nor put
// into a snapshot.
func (r *reader) kubeletConfig() Fact[string] {
	const foreign = "not a KubeletConfiguration"
	isConfiguration := regexp.MustCompile(`(?m)^\s*[{,]?\s*["']?kind["']?\s*:\s*["']?KubeletConfiguration\b|[{,]\s*"kind"\s*:\s*"KubeletConfiguration"`)
	var fact Fact[string]
	for i, file := range kubeletConfigFiles() {
		content, err := r.peek(file, smallFile)
		if err == nil {
			content, err = plainText(content)
		}
		switch {
		case err == nil && isConfiguration.MatchString(content):
			r.recordConfiguration(file, content)
			return Known(content, file)
		case err == nil:
			err = unreadableError{foreign}
		}
		r.taken.file(file, "", err)
		if reason := reasonOf(err); i == 0 || fact.Reason == reasonMissing && reason != reasonMissing {
			fact = Absent[string](file, reason)
		}
	}
	return fact
}

// recordConfiguration puts what is essential of the kubelet's configuration into a snapshot.
func (r *reader) recordConfiguration(file, content string) {
	if r.taken == nil {
		return
	}
	kept, err := essentialConfiguration(content)
	if err != nil {
		r.taken.skip(file, "neither YAML nor JSON")
		return
	}
	r.taken.file(file, kept, nil)
}

// kubeletConfigFiles are the places of the configuration: of OpenShift, of kubeadm, and of the images of
// EKS.
func kubeletConfigFiles() []string {
	return []string{
		"/etc/kubernetes/kubelet.conf",
		"/var/lib/kubelet/config.yaml",
		"/etc/kubernetes/kubelet/config.yaml",
		"/etc/kubernetes/kubelet/config.json",
	}
}
