// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/installer"
)

// parts are the objects of a deployment by who installs them.
type parts struct {
	// definitions and bundled are files of the bundle, deployments a part of the ClusterServiceVersion.
	definitions, bundled, deployments []*unstructured.Unstructured
	// clusterRules and rules are the rights of the service accounts of these deployments, by name.
	clusterRules, rules map[string][]rbacv1.PolicyRule
	// trafficImage measures over the network.
	trafficImage string
	// namespace is that of the operator, which whoever installs it makes.
	namespace *unstructured.Unstructured
	// installed is what the installer installs.
	installed []*unstructured.Unstructured
}

// installerAccount is the service account of the installer.
const installerAccount = "lowlatency-operator-installer"

// divide decides for each object who installs it.
func divide(objects []*unstructured.Unstructured) (*parts, error) {
	p := &parts{clusterRules: map[string][]rbacv1.PolicyRule{}, rules: map[string][]rbacv1.PolicyRule{}}
	accounts, err := accountsOf(objects)
	if err != nil {
		return nil, err
	}
	// What Operator Lifecycle Manager makes from what the ClusterServiceVersion says.
	made, err := p.grant(objects, accounts)
	if err != nil {
		return nil, err
	}
	for account := range accounts {
		made["ServiceAccount/"+installer.SourceNamespace+"/"+account] = true
	}
	for _, object := range objects {
		if !made[key(object)] {
			p.add(object)
		}
	}
	p.clusterRules[installerAccount] = append(p.clusterRules[installerAccount], rightsToInstall(p.installed)...)
	return p, nil
}

// add puts an object to those of whoever installs it.
func (p *parts) add(object *unstructured.Unstructured) {
	switch kind := object.GetKind(); {
	case key(object) == "Namespace//"+installer.SourceNamespace:
		p.namespace = object
	case kind == "CustomResourceDefinition":
		p.definitions = append(p.definitions, object)
	case kind == "Deployment":
		p.deployments = append(p.deployments, object)
	case kind == "PodTemplate":
		// Operator Lifecycle Manager takes none: of a bundle the manager reads the image from its environment.
		p.trafficImage = imageOf(object)
	case kind == "Service", kind == "PodDisruptionBudget":
		object.SetNamespace("")
		p.bundled = append(p.bundled, object)
	default:
		p.installed = append(p.installed, object)
	}
}

// imageOf is the image of the first container of a PodTemplate; "" where there is none.
func imageOf(object *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(object.Object, "template", "spec", "containers")
	for _, one := range containers {
		if container, ok := one.(map[string]any); ok {
			image, _ := container["image"].(string)
			return image
		}
	}
	return ""
}

// accountsOf are the service accounts of the deployments.
func accountsOf(objects []*unstructured.Unstructured) (map[string]bool, error) {
	accounts := map[string]bool{}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		account, _, err := unstructured.NestedString(object.Object, "spec", "template", "spec", "serviceAccountName")
		if err != nil {
			return nil, err
		}
		accounts[account] = true
	}
	return accounts, nil
}

// grant collects the rights of accounts that Operator Lifecycle Manager gives them: all but those in other namespaces. It
// returns the roles and bindings that say so.
func (p *parts) grant(objects []*unstructured.Unstructured, accounts map[string]bool) (map[string]bool, error) {
	granted := map[string]bool{}
	for _, object := range objects {
		namespace := object.GetNamespace()
		if !strings.HasSuffix(object.GetKind(), "RoleBinding") || namespace != "" && namespace != installer.SourceNamespace {
			continue
		}
		var binding rbacv1.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
			return nil, err
		}
		if len(binding.Subjects) != 1 || !accounts[binding.Subjects[0].Name] {
			continue
		}
		role, name, err := roleOf(&binding, objects)
		if err != nil {
			return nil, err
		}
		rules := p.rules
		if namespace == "" {
			rules = p.clusterRules
		}
		account := binding.Subjects[0].Name
		rules[account] = append(rules[account], role.Rules...)
		granted[key(object)], granted[name] = true, true
	}
	return granted, nil
}

// roleOf is the role that a binding names, and its key.
func roleOf(binding *rbacv1.RoleBinding, objects []*unstructured.Unstructured) (*rbacv1.Role, string, error) {
	name := strings.Join([]string{binding.RoleRef.Kind, binding.Namespace, binding.RoleRef.Name}, "/")
	for _, object := range objects {
		if key(object) == name {
			role := &rbacv1.Role{}
			return role, name, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role)
		}
	}
	return nil, "", fmt.Errorf("the binding %s names a role that is not there: %s", binding.Name, name)
}

func key(object *unstructured.Unstructured) string {
	return strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, "/")
}

// rightsToInstall are the rights to apply objects, each by its name. Whoever grants rights needs the verbs escalate and bind.
func rightsToInstall(objects []*unstructured.Unstructured) []rbacv1.PolicyRule {
	type kind struct{ group, resource string }
	names := map[kind][]string{}
	for _, object := range objects {
		one := kind{object.GroupVersionKind().Group, resourceOf(object)}
		names[one] = append(names[one], object.GetName())
	}
	rules := make([]rbacv1.PolicyRule, 0, 1+len(names))
	rules = append(rules, rbacv1.PolicyRule{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
		ResourceNames: []string{installer.OwnerCRD}, Verbs: []string{"get"},
	})
	for one, named := range names {
		verbs := []string{"create", "patch"}
		if one.resource == "clusterroles" || one.resource == "roles" {
			verbs = append(verbs, "bind", "escalate")
		}
		slices.Sort(named)
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{one.group}, Resources: []string{one.resource}, ResourceNames: slices.Compact(named), Verbs: verbs,
		})
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), cmp.Compare(a.Resources[0], b.Resources[0]))
	})
	return rules
}

// resourceOf is the resource of an object's kind.
func resourceOf(object *unstructured.Unstructured) string {
	if object.GetKind() == "SecurityContextConstraints" {
		return "securitycontextconstraints"
	}
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return plural.Resource
}
