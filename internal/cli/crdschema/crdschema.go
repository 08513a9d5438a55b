// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package crdschema judges objects by the CustomResourceDefinitions of this project as an API server
// does, without one: structure, bounds, list keys and the CEL rules, with the API server's own sentences.
package crdschema

import (
	"context"
	"fmt"
	"io/fs"
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
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/config/crd"
)

// Schemas are CustomResourceDefinitions, ready to judge objects of their kinds.
type Schemas struct {
	kinds map[schema.GroupVersionKind]*kind
}

// kind is one served version of one CustomResourceDefinition.
type kind struct {
	namespaced bool
	structural *structuralschema.Structural
	validator  schemavalidation.SchemaValidator
	// rules is nil for a schema without CEL rules.
	rules *cel.Validator
}

// Load reads the CustomResourceDefinitions that this binary was built with.
func Load() (*Schemas, error) {
	return load(crd.Bases())
}

func load(files fs.FS) (*Schemas, error) {
	names, err := fs.Glob(files, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	schemas := &Schemas{kinds: map[schema.GroupVersionKind]*kind{}}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading a CustomResourceDefinition: %w", err)
		}
		if err := schemas.add(data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return schemas, nil
}

// add compiles all served versions of one CustomResourceDefinition.
func (s *Schemas) add(data []byte) error {
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &external); err != nil {
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
	return &kind{
		structural: structural,
		validator:  validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Knows tells whether there is a CustomResourceDefinition for the kind.
func (s *Schemas) Knows(gvk schema.GroupVersionKind) bool {
	_, ok := s.kinds[gvk]
	return ok
}

// Validate judges an object as a create request with strict field validation is judged. Each error has
// the path of the field and the sentence of the API server; they are sorted by path. The object must be of
// a known kind.
func (s *Schemas) Validate(ctx context.Context, object *unstructured.Unstructured) field.ErrorList {
	known, ok := s.kinds[object.GroupVersionKind()]
	if !ok {
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
	if blocksRules(errs) || k.rules == nil {
		return errs
	}
	broken, _ := k.rules.Validate(ctx, nil, k.structural, object.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// unknownFields are the fields that the schema does not have; an API server drops them, or refuses the
// object when field validation is strict, as kubectl asks for.
func (k *kind) unknownFields(object *unstructured.Unstructured) field.ErrorList {
	paths := pruning.PruneWithOptions(object.DeepCopy().Object, k.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	errs := make(field.ErrorList, 0, len(paths))
	for _, path := range paths {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	return errs
}

func (s *Schemas) kindNames() []string {
	names := make([]string, 0, len(s.kinds))
	for gvk := range s.kinds {
		names = append(names, gvk.Kind)
	}
	slices.Sort(names)
	return names
}

// blocksRules tells whether an object is so broken that the API server skips the CEL rules, which
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
