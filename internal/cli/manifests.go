// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/crdschema"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/inputfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/nearname"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
)

// maximumManifest is how much of one file is read: far above any list of profiles, far below what would
// exhaust memory.
const maximumManifest = 64 << 20

// manifests are the objects of the files given with -f.
type manifests struct {
	profiles []*v1alpha1.LowLatencyNodeProfile
	pools    []*v1alpha1.BypassNICPool
	nodes    []*v1alpha1.LowLatencyNode
	tests    []*v1alpha1.LatencyTest
}

// manifestReader reads and judges manifests.
type manifestReader struct {
	in      io.Reader
	schemas *crdschema.Schemas
	// passed counts the objects that are none of ours, by their kinds.
	passed map[string]int
	// seen says where each object was found, by kind and name.
	seen map[string]string
}

// origin is where an object was found.
type origin struct {
	// where names the file, and the place in it.
	where string
	// inFolder tells that the file was not named itself: what import does not know there is passed over.
	inFolder bool
}

// part is one of several objects of the same origin.
func (o origin) part(what string, index int) origin {
	o.where = fmt.Sprintf("%s, %s %d", o.where, what, index+1)
	return o
}

// readManifests reads YAML or JSON files, each with any number of documents and lists; "-" is the
// standard input. Of a folder the files that kubectl takes are read. Objects of others are passed over, wherever they are: they do not
// change a plan, and a file that is applied to a cluster may hold a workload beside its profile.
func (a *app) readManifests(ctx context.Context, files []string) (*manifests, error) {
	if len(files) == 0 {
		return nil, errors.New("give the file with what is wanted: -f FILE, or -f - for the standard input")
	}
	schemas, err := crdschema.Load()
	if err != nil {
		return nil, err
	}
	reader := &manifestReader{in: a.In, schemas: schemas, passed: map[string]int{}, seen: map[string]string{}}
	var all manifests
	for _, file := range files {
		if err := reader.readFileOrFolder(ctx, file, &all); err != nil {
			return nil, err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(reader.passed)) {
		a.complain("passed over: %d of kind %s", reader.passed[kind], kind)
	}
	return &all, nil
}

func (r *manifestReader) readFileOrFolder(ctx context.Context, name string, into *manifests) error {
	files, isFolder, err := manifestFiles(name)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := r.readFile(ctx, origin{where: file, inFolder: isFolder}, into); err != nil {
			return err
		}
	}
	return nil
}

// manifestFiles are the files that a value of -f stands for: itself, or those of a folder that kubectl takes.
func manifestFiles(name string) (files []string, isFolder bool, err error) {
	if !isFolderName(name) {
		return []string{name}, false, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, true, err
	}
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains(manifestEndings(), filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, true, fmt.Errorf("folder %s holds no .yaml, .yml or .json file; folders in it are not looked into", name)
	}
	return files, true, nil
}

// isFolderName reports whether a value of -f names a folder. Of a name that does not exist, whoever opens it says so.
func isFolderName(name string) bool {
	about, err := os.Stat(name)
	return name != "-" && err == nil && about.IsDir()
}

// manifestEndings are those of the files that are read of a folder.
func manifestEndings() []string { return []string{".yaml", ".yml", ".json"} }

func (r *manifestReader) readFile(ctx context.Context, file origin, into *manifests) error {
	documents, err := readDocuments(r.in, file.where)
	if err != nil {
		return err
	}
	for i, document := range documents {
		from := file
		if len(documents) > 1 {
			from = file.part("document", i)
		}
		if err := r.readDocument(ctx, from, document, into); err != nil {
			return err
		}
	}
	return nil
}

// readDocuments splits a file into its documents, empty ones left out.
func readDocuments(in io.Reader, file string) ([][]byte, error) {
	data, err := readAll(in, file)
	if err != nil {
		return nil, err
	}
	var documents [][]byte
	for reader := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if hasContent(document) {
			documents = append(documents, document)
		}
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("%s holds no object", file)
	}
	return documents, nil
}

func readAll(in io.Reader, file string) (data []byte, err error) {
	if file == "-" {
		return inputfile.ReadFrom(in, file, maximumManifest)
	}
	data, err = inputfile.Read(file, maximumManifest)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%s is a folder; name each of its files with -f", file)
	}
	return data, err
}

// hasContent reports whether a document holds anything but blanks, comments and markers.
func hasContent(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return true
		}
	}
	return false
}

func (r *manifestReader) readDocument(ctx context.Context, from origin, document []byte, into *manifests) error {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return fmt.Errorf("%s: %w", from.where, err)
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return fmt.Errorf("%s: this is no object with apiVersion and kind", from.where)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("%s: %w", from.where, err)
	}
	if !object.IsList() {
		return r.addObject(ctx, from, &object, into)
	}
	list, err := object.ToList()
	if err != nil {
		return fmt.Errorf("%s: %w", from.where, err)
	}
	for i := range list.Items {
		if err := r.addObject(ctx, from.part("item", i), &list.Items[i], into); err != nil {
			return err
		}
	}
	return nil
}

// addObject judges one object by its CRD and decodes it.
func (r *manifestReader) addObject(ctx context.Context, from origin, object *unstructured.Unstructured, into *manifests) error {
	where := fmt.Sprintf("%s, %s %q", from.where, object.GetKind(), object.GetName())
	known, err := r.schemas.Knows(object.GroupVersionKind())
	switch {
	case err != nil:
		return err
	case !known && isOfOthers(object):
		r.passed[object.GetKind()]++
		return nil
	case !known:
		return unknownKind(where, object)
	}
	if err := r.judge(ctx, from, where, object); err != nil {
		return err
	}
	if err := into.take(object); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// kindsRead are the kinds that are read from manifests.
func kindsRead() []string {
	return []string{"LowLatencyNodeProfile", "BypassNICPool", "LatencyTest", "LowLatencyNode"}
}

// isOfOthers reports whether an object is meant for somebody else: neither its group nor its kind is ours. One of our kinds in another
// group is a mistake, and passing over it would plan without it.
func isOfOthers(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group != v1alpha1.GroupVersion.Group && !slices.Contains(kindsRead(), object.GetKind())
}

// take decodes an object that was judged.
func (m *manifests) take(object *unstructured.Unstructured) (err error) {
	switch object.GetKind() {
	case "LowLatencyNodeProfile":
		m.profiles, err = decodeInto(m.profiles, object)
	case "BypassNICPool":
		m.pools, err = decodeInto(m.pools, object)
	case "LowLatencyNode":
		m.nodes, err = decodeInto(m.nodes, object)
	case "LatencyTest":
		m.tests, err = decodeInto(m.tests, object)
	}
	return err
}

// judge holds an object against its CRD, and refuses one that was there before.
func (r *manifestReader) judge(ctx context.Context, from origin, where string, object *unstructured.Unstructured) error {
	if errs := r.schemas.Validate(ctx, object); len(errs) > 0 {
		return fmt.Errorf("%s:%s", where, sentences(errs))
	}
	key := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
	if before, twice := r.seen[key]; twice {
		return fmt.Errorf("%s: the same object is in %s; a cluster would keep the last one, so leave one of them out", where, before)
	}
	r.seen[key] = from.where
	return nil
}

// unknownKind refuses an object that is not read here.
func unknownKind(where string, object *unstructured.Unstructured) error {
	kinds := kindsRead()
	near := ""
	if kind := object.GetKind(); !slices.Contains(kinds, kind) {
		near = nearname.Of(kind, kinds)
	}
	return fmt.Errorf("%s: only %s and %s of %s are read here, not %s of %s%s", where, strings.Join(kinds[:3], ", "), kinds[3], v1alpha1.GroupVersion,
		object.GetKind(), object.GroupVersionKind().GroupVersion(), usage.DidYouMean(near))
}

// decodeInto appends the object as a typed one. Fields that the type does not have are an error.
func decodeInto[T any](list []*T, object *unstructured.Unstructured) ([]*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		return list, err
	}
	return append(list, typed), nil
}

// sentences puts the errors of an object behind a colon: on the same line, or on one each when there are
// several.
func sentences(errs field.ErrorList) string {
	lines := make([]string, 0, len(errs))
	for _, err := range errs {
		lines = append(lines, strings.TrimPrefix(err.Error(), "<nil>: ")+unquoted(err))
	}
	if len(lines) == 1 {
		return " " + lines[0]
	}
	return "\n  " + strings.Join(lines, "\n  ")
}

// unquoted is the way out where YAML reads a text as something else: 1924 as a number, on as a boolean. The name of the
// type that was found is the value that the API server complains about.
func unquoted(err *field.Error) string {
	scalar := slices.Contains([]any{"integer", "number", "boolean"}, err.BadValue)
	if err.Type == field.ErrorTypeTypeInvalid && scalar && strings.Contains(err.Detail, "must be of type string") {
		return "; put the value in quotes"
	}
	return ""
}

// hasProfile reports whether there is a profile with the name.
func (m *manifests) hasProfile(name string) bool {
	return slices.ContainsFunc(m.profiles, func(profile *v1alpha1.LowLatencyNodeProfile) bool { return profile.Name == name })
}

// profile returns the profile with the name, or the only one when the name is empty.
func (m *manifests) profile(name string) (*v1alpha1.LowLatencyNodeProfile, error) {
	names := make([]string, 0, len(m.profiles))
	for _, profile := range m.profiles {
		if profile.Name == name || name == "" && len(m.profiles) == 1 {
			return profile, nil
		}
		names = append(names, profile.Name)
	}
	switch {
	case len(names) == 0:
		return nil, errors.New("the files hold no LowLatencyNodeProfile")
	case name == "":
		return nil, fmt.Errorf("the files hold %d profiles, %s; choose one with --profile", len(names), strings.Join(names, ", "))
	default:
		return nil, fmt.Errorf("the files hold no profile %q, but %s", name, strings.Join(names, ", "))
	}
}
