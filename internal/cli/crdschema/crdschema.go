// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package crdschema judges objects by the CustomResourceDefinitions of this project as an API server
// does, without one: structure, bounds, list keys and the CEL rules, with the API server's own sentences.
package crdschema

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/json"

	"github.com/lowlatency-dev/lowlatency-operator/config/crd"
)

// Schemas are CustomResourceDefinitions, by which objects of their kinds are judged. A definition is read when the first
// object of its kind is judged. The methods must not be called concurrently.
type Schemas struct {
	files fs.FS
	// unread are the files of definitions that nobody has asked for, by their kind.
	unread map[string]string
	kinds  map[schema.GroupVersionKind]*kind
}

// kind is one served version of one CustomResourceDefinition.
type kind struct {
	namespaced bool
	structural *structuralschema.Structural
	validator  schemavalidation.SchemaValidator
}

// Load finds the CustomResourceDefinitions that this binary was built with.
func Load() (*Schemas, error) {
	return load(crd.Schemas())
}

// load finds the definitions in a folder "schemas"; a file has the name of its kind.
func load(files fs.FS) (*Schemas, error) {
	names, err := fs.Glob(files, "schemas/*.json")
	if err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	schemas := &Schemas{files: files, unread: map[string]string{}, kinds: map[schema.GroupVersionKind]*kind{}}
	for _, name := range names {
		schemas.unread[strings.TrimSuffix(path.Base(name), ".json")] = name
	}
	return schemas, nil
}

// find returns the kind, or nil when no definition has it.
func (s *Schemas) find(gvk schema.GroupVersionKind) (*kind, error) {
	if name, ok := s.unread[gvk.Kind]; ok {
		if err := s.add(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		delete(s.unread, gvk.Kind)
	}
	return s.kinds[gvk], nil
}

// add reads all served versions of one CustomResourceDefinition.
func (s *Schemas) add(name string) error {
	data, err := fs.ReadFile(s.files, name)
	if err != nil {
		return fmt.Errorf("reading a CustomResourceDefinition: %w", err)
	}
	var external apiextensionsv1.CustomResourceDefinition
	mistakes, err := json.UnmarshalStrict(data, &external)
	if err := errors.Join(append(mistakes, err)...); err != nil {
		return fmt.Errorf("decoding a CustomResourceDefinition: %w", err)
	}
	for _, version := range external.Spec.Versions {
		if !version.Served || version.Schema == nil {
			continue
		}
		compiled, err := compile(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return fmt.Errorf("version %s: %w", version.Name, err)
		}
		compiled.namespaced = external.Spec.Scope == apiextensionsv1.NamespaceScoped
		s.kinds[schema.GroupVersionKind{
			Group: external.Spec.Group, Version: version.Name, Kind: external.Spec.Names.Kind,
		}] = compiled
	}
	return nil
}

func compile(external *apiextensionsv1.JSONSchemaProps) (*kind, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, &internal, nil); err != nil {
		return nil, fmt.Errorf("converting the schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, fmt.Errorf("the schema is not structural: %w", err)
	}
	validator, _, err := schemavalidation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	return &kind{structural: structural, validator: validator}, nil
}

// Knows reports whether there is a CustomResourceDefinition for the kind. An error says that the definition makes no sense.
func (s *Schemas) Knows(gvk schema.GroupVersionKind) (bool, error) {
	known, err := s.find(gvk)
	return known != nil, err
}

// Validate judges an object as a create request with strict field validation is judged. Each error has
// the path of the field and the sentence of the API server; they are sorted by path. The object must be of
// a known kind.
func (s *Schemas) Validate(ctx context.Context, object *unstructured.Unstructured) field.ErrorList {
	known, err := s.find(object.GroupVersionKind())
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if known == nil {
		return field.ErrorList{field.NotSupported(field.NewPath("kind"), object.GetKind(), s.kindNames())}
	}
	if unknown := known.unknownFields(object); len(unknown) > 0 {
		return unknown
	}
	errs := known.validate(ctx, object)
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func (k *kind) validate(ctx context.Context, object *unstructured.Unstructured) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(object, k.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, object.Object, k.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object.Object)...)
	if blocksRules(errs) || obeysRules(k.structural, object.Object) {
		return errs
	}
	rules := cel.NewValidator(withRulesFor(k.structural, []any{object.Object}), true, celconfig.PerCallLimit)
	if rules == nil {
		return errs
	}
	broken, _ := rules.Validate(ctx, nil, k.structural, object.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// unknownFields are the fields that the schema does not have; an API server drops them, or refuses the
// object when field validation is strict, as kubectl asks for.
func (k *kind) unknownFields(object *unstructured.Unstructured) field.ErrorList {
	paths := pruning.PruneWithOptions(object.DeepCopy().Object, k.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	errs := make(field.ErrorList, 0, len(paths))
	for _, path := range paths {
		detail := "unknown field"
		if near := nearName(k.structural, path); near != "" {
			detail += "; did you mean " + near + "?"
		}
		errs = append(errs, field.Forbidden(field.NewPath(path), detail))
	}
	return errs
}

func (s *Schemas) kindNames() []string {
	names := make([]string, 0, len(s.kinds)+len(s.unread))
	for name := range s.unread {
		names = append(names, name)
	}
	for gvk := range s.kinds {
		names = append(names, gvk.Kind)
	}
	slices.Sort(names)
	return names
}

// blocksRules reports whether an object is so broken that the API server skips the CEL rules, which
// expect values of the right type and size.
func blocksRules(errs field.ErrorList) bool {
	blocking := map[field.ErrorType]bool{
		field.ErrorTypeNotSupported: true,
		field.ErrorTypeRequired:     true,
		field.ErrorTypeTooLong:      true,
		field.ErrorTypeTooMany:      true,
		field.ErrorTypeTypeInvalid:  true,
	}
	for _, err := range errs {
		if blocking[err.Type] {
			return true
		}
	}
	return false
}
