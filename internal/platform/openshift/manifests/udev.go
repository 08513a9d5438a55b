// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"fmt"
	"regexp"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// udevExpression is the regular expression of TuneD's devices_udev_regex that matches the NICs which any of the
// selectors selects. TuneD searches it in the device's udev properties, one "NAME=value" per line in alphabetical
// order (tuned/hardware/device_matcher_udev.py). Each condition is a lookahead from the beginning, so that their
// order does not matter.
func udevExpression(selectors []v1alpha1.NICSelector) (string, error) {
	alternatives := make([]string, 0, len(selectors))
	for _, selector := range selectors {
		conditions := udevConditions(selector)
		if len(conditions) == 0 {
			return "", fmt.Errorf("NIC selector %+v selects nothing", selector)
		}
		var all strings.Builder
		for _, condition := range conditions {
			all.WriteString(`(?=[\s\S]*^` + condition + `$)`)
		}
		alternatives = append(alternatives, all.String())
	}
	if len(alternatives) == 1 {
		return `\A` + alternatives[0], nil
	}
	return `\A(?:` + strings.Join(alternatives, "|") + ")", nil
}

// udevConditions are what the lines of a selected device match.
func udevConditions(selector v1alpha1.NICSelector) []string {
	var conditions []string
	if selector.InterfaceName != "" {
		conditions = append(conditions, "INTERFACE="+wildcardExpression(selector.InterfaceName))
	}
	exact := []struct{ property, value string }{
		{"ID_VENDOR_ID", strings.ToLower(selector.VendorID)},
		{"ID_MODEL_ID", strings.ToLower(selector.DeviceID)},
		{"ID_NET_DRIVER", selector.Driver},
	}
	for _, e := range exact {
		if e.value != "" {
			conditions = append(conditions, e.property+"="+regexp.QuoteMeta(e.value))
		}
	}
	if selector.PCIAddress != "" {
		// A virtio device stands between the PCI function and the interface.
		conditions = append(conditions, `DEVPATH=.*/`+regexp.QuoteMeta(selector.PCIAddress)+`/(?:virtio\d+/)?net/.*`)
	}
	return conditions
}

// wildcardExpression translates the shell wildcards * and ? and a leading exclamation mark.
func wildcardExpression(pattern string) string {
	pattern, negated := strings.CutPrefix(pattern, "!")
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	if negated {
		return "(?!" + expression + "$).*"
	}
	return expression
}
