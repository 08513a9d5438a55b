// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package tunedprofile

import (
	"fmt"
	"regexp"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
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
	if len(selector.Interfaces) > 0 {
		conditions = append(conditions, "INTERFACE="+interfaceExpression(selector.Interfaces))
	}
	if selector.Vendor != "" {
		conditions = append(conditions, "ID_VENDOR_ID=0x"+string(selector.Vendor))
	}
	if len(selector.Devices) > 0 {
		conditions = append(conditions, "ID_MODEL_ID="+anyOf(selector.Devices, func(id v1alpha1.PCIID) string { return "0x" + string(id) }))
	}
	if len(selector.Drivers) > 0 {
		conditions = append(conditions, "ID_NET_DRIVER="+anyOf(selector.Drivers, quoted))
	}
	if len(selector.PCIAddresses) > 0 {
		// A virtio device stands between the PCI function and the interface.
		conditions = append(conditions, `DEVPATH=.*/`+anyOf(selector.PCIAddresses, quoted)+`/(?:virtio\d+/)?net/.*`)
	}
	return conditions
}

// interfaceExpression matches the names that one pattern includes, or all when there is none, and no pattern excludes.
func interfaceExpression(patterns []v1alpha1.InterfacePattern) string {
	included, excluded := topology.SplitPatterns(patterns)
	expression := ".*"
	if len(included) > 0 {
		expression = anyOf(included, wildcardExpression)
	}
	if len(excluded) > 0 {
		expression = "(?!" + anyOf(excluded, wildcardExpression) + "$)" + expression
	}
	return expression
}

// anyOf matches each of the items.
func anyOf[T any](items []T, expression func(T) string) string {
	expressions := make([]string, len(items))
	for i, item := range items {
		expressions[i] = expression(item)
	}
	if len(expressions) == 1 {
		return expressions[0]
	}
	return "(?:" + strings.Join(expressions, "|") + ")"
}

func quoted[T ~string](text T) string { return regexp.QuoteMeta(string(text)) }

// wildcardExpression translates the shell wildcards * and ?. Several * in a row are one, which keeps a regular expression
// from trying each way to divide a name among them.
func wildcardExpression(pattern string) string {
	expression := strings.NewReplacer(`\*`, "*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`\*+`).ReplaceAllString(expression, ".*")
}
