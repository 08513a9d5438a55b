// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/crdschema"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/importer"
)

func (a *app) importCommand() *cobra.Command {
	var files []string
	format := &usage.Choice{Value: "yaml", Allowed: []string{"yaml", "json"}}
	command := &cobra.Command{
		Use:   "import -f PERFORMANCEPROFILE",
		Short: "Turn a PerformanceProfile into a LowLatencyNodeProfile that means the same",
		Long: `Print the LowLatencyNodeProfile that means the same as a PerformanceProfile of OpenShift
(performance.openshift.io/v2, v1 or v1alpha1): the same CPU sets, hugepages, kernel arguments and kubelet
behaviour. Whatever has no exact counterpart is a comment above the object; with -o json, it is a line on
the standard error.`,
		Example: "  oc get performanceprofile performance -o yaml | kubectl lowlatency import -f - > trading.yaml",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.importProfiles(cmd.Context(), files, format.Value)
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil, "`FILE` with PerformanceProfiles, or a folder; - for the standard input; repeatable")
	command.Flags().VarP(format, "output", "o", "output format")
	return command
}

func (a *app) importProfiles(ctx context.Context, files []string, format string) error {
	if len(files) == 0 {
		return errors.New("give the file with the PerformanceProfile: -f FILE, or -f - for the standard input")
	}
	schemas, err := crdschema.Load()
	if err != nil {
		return err
	}
	for _, name := range files {
		files, isFolder, err := manifestFiles(name)
		if err != nil {
			return err
		}
		found := false
		for _, file := range files {
			imported, err := a.importFile(ctx, schemas, origin{where: file, inFolder: isFolder}, format)
			if err != nil {
				return err
			}
			found = found || imported
		}
		if !found {
			return fmt.Errorf("folder %s holds no PerformanceProfile", name)
		}
	}
	return nil
}

// importFile converts the PerformanceProfiles of a file, also those in lists. In the file of a folder, what is of another kind is passed
// over; it reports whether there was any.
func (a *app) importFile(ctx context.Context, schemas *crdschema.Schemas, file origin, format string) (bool, error) {
	documents, err := readDocuments(a.In, file.where)
	if err != nil {
		return false, err
	}
	found := false
	for _, document := range documents {
		items, isList := itemsOf(document)
		if isList && len(items) == 0 {
			return false, fmt.Errorf("%s: the list is empty: there is no PerformanceProfile in it", file.where)
		}
		for _, item := range items {
			if file.inFolder && !importer.IsPerformanceProfile(item) {
				continue
			}
			found = true
			if err := a.importProfile(ctx, schemas, item, format); err != nil {
				return false, fmt.Errorf("%s: %w", file.where, err)
			}
		}
	}
	return found, nil
}

// itemsOf are the objects of a list, as kubectl get prints several; another document is its only item. What is wrong with a document, the
// importer says.
func itemsOf(document []byte) (items [][]byte, isList bool) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if yaml.Unmarshal(document, &list) != nil || !strings.HasSuffix(list.Kind, "List") {
		return [][]byte{document}, false
	}
	for _, item := range list.Items {
		items = append(items, item)
	}
	return items, true
}

// importProfile converts one document and judges the result as the API server will.
func (a *app) importProfile(ctx context.Context, schemas *crdschema.Schemas, document []byte, format string) error {
	profile, remarks, err := importer.FromPerformanceProfile(document)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(profile)
	if err != nil {
		return fmt.Errorf("writing the profile %q: %w", profile.Name, err)
	}
	if errs := schemas.Validate(ctx, &unstructured.Unstructured{Object: content}); len(errs) > 0 {
		return fmt.Errorf("the PerformanceProfile %q cannot be expressed:%s", profile.Name, sentences(errs))
	}
	if format == "json" {
		for _, remark := range remarks {
			a.complain("remark: %s", remark)
		}
		return writeJSON(a.Out, profile)
	}
	return writeProfile(a.Out, profile, remarks)
}

// writeProfile writes the remarks as comments and the profile in the order of its API, as people write it.
func writeProfile(out io.Writer, profile *v1alpha1.LowLatencyNodeProfile, remarks []string) error {
	data, err := orderedYAML(struct {
		APIVersion string                             `json:"apiVersion"`
		Kind       string                             `json:"kind"`
		Metadata   metav1.ObjectMeta                  `json:"metadata"`
		Spec       v1alpha1.LowLatencyNodeProfileSpec `json:"spec"`
	}{profile.APIVersion, profile.Kind, profile.ObjectMeta, profile.Spec})
	if err != nil {
		return fmt.Errorf("writing the profile %q: %w", profile.Name, err)
	}
	var b strings.Builder
	b.WriteString("---\n")
	if len(remarks) > 0 {
		b.WriteString("# What has no exact counterpart:\n")
	}
	for _, remark := range remarks {
		b.WriteString(comment(remark))
	}
	b.Write(data)
	_, err = io.WriteString(out, b.String())
	return err
}

// comment writes a remark as an item of a list in YAML comments. Line breaks in it would end the comment.
func comment(remark string) string {
	var b strings.Builder
	line := "# -"
	for word := range strings.FieldsSeq(remark) {
		if len(line)+1+len(word) > defaultWidth && line != "# -" {
			b.WriteString(line + "\n")
			line = "#  "
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	return b.String()
}
