// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/samples"
)

// fencedYAML is a block of YAML in a Markdown document.
func fencedYAML() *regexp.Regexp { return regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$") }

// wholeObjects returns the objects of a YAML file or Markdown document. A part of an object, which shows a single
// field, is left out, and so is a Kustomization, which kustomize reads and no API server: the suite of config builds it.
func wholeObjects(file string) []*unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	text := string(content)
	if filepath.Ext(file) == ".md" {
		text = fencedText(text)
	}
	text = withPublicKey(text)
	var objects []*unstructured.Unstructured
	for part := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(part), &object.Object)).To(Succeed(), "%s:\n%s", file, part)
		if object.GetKind() != "" && object.GroupVersionKind().Group != "kustomize.config.k8s.io" {
			objects = append(objects, object)
		}
	}
	return objects
}

// withPublicKey puts a key in the places that policies of images leave for one.
func withPublicKey(text string) string {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	Expect(err).NotTo(HaveOccurred())
	key := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	text = strings.ReplaceAll(text, "        <public.pem>\n", regexp.MustCompile("(?m)^(.)").ReplaceAllString(string(key), "        $1"))
	return strings.ReplaceAll(text, "<base64 -w0 public.pem>", base64.StdEncoding.EncodeToString(key))
}

// imagePolicies are the definitions of both kinds ClusterImagePolicy, OpenShift's and sigstore's. The latter is in a file of its own
// without the webhook that converts its versions: nothing runs it here.
func imagePolicies() []string {
	GinkgoHelper()
	openShift, err := apiserver.OpenShiftImagePolicyCRD()
	Expect(err).NotTo(HaveOccurred())
	sigstore, err := apiserver.SigstoreImagePolicyCRD()
	Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(sigstore)
	Expect(err).NotTo(HaveOccurred())
	definition := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(content, &definition.Object)).To(Succeed())
	unstructured.RemoveNestedField(definition.Object, "spec", "conversion")
	content, err = yaml.Marshal(definition.Object)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), "policies.yaml")
	Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	return []string{openShift, file}
}

// fencedText is the YAML of a Markdown document, as one text of several documents.
func fencedText(markdown string) string {
	var text strings.Builder
	for _, block := range fencedYAML().FindAllStringSubmatch(markdown, -1) {
		text.WriteString(block[1] + "\n---\n")
	}
	return text.String()
}

// documents are all files that show whole objects to users, but for a rule of the node readiness controller: its CustomResourceDefinition
// cannot be had, because the Go module proxy does not give its module out (403).
func documents() []string {
	GinkgoHelper()
	files := slices.DeleteFunc(originalFiles(), func(file string) bool { return strings.Contains(file, "readiness") })
	for _, pattern := range []string{"../../docs/*.md", "../../docs/guides/*.md", "../../*.md"} {
		found, err := filepath.Glob(pattern)
		Expect(err).NotTo(HaveOccurred())
		files = append(files, found...)
	}
	return files
}

// surroundings are the namespaces and runtime classes that the documents name, besides the namespace of the agents.
func surroundings() []client.Object {
	namespaces := []string{"trading", "market-data", "orders", "order-entry", "order-entry-host", "dataplane", "real-time"}
	profiles := []string{"trading", "marketdata", "orders", "orderentry", "dataplane", "realtime"}
	objects := make([]client.Object, 0, len(namespaces)+len(profiles))
	for _, name := range namespaces {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, profile := range profiles {
		objects = append(objects, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "lowlatency-" + profile}, Handler: "high-performance"})
	}
	return objects
}

// describeDocuments shows that users can apply what the documents tell them to.
func describeDocuments(admin func() client.Client) {
	It("apply unchanged, in the namespace and with the runtime class that they name", func(ctx SpecContext) {
		for _, object := range surroundings() {
			Expect(admin().Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(admin().Delete(ctx, object)).To(Succeed()) })
		}
		kinds := map[string]int{}
		for _, file := range documents() {
			for _, object := range wholeObjects(file) {
				kinds[object.GroupVersionKind().GroupKind().String()]++
				err := admin().Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict"))
				if object.GetKind() == "Namespace" {
					err = client.IgnoreAlreadyExists(err) // one of the surroundings
				}
				Expect(err).NotTo(HaveOccurred(), "%s in %s", object.GetName(), file)
			}
		}
		Expect(kinds).To(And(HaveKey("LowLatencyNodeProfile.lowlatency.dev"), HaveKey("BypassNICPool.lowlatency.dev"), HaveKey("Pod"),
			HaveKey("ClusterImagePolicy.config.openshift.io"), HaveKey("ClusterImagePolicy.policy.sigstore.dev")))
	})

	It("show a sample or example that has a file of its own as it is there", func() {
		originals := originalObjects()
		Expect(originals).To(And(HaveKey("BypassNICPool x2-onload"), HaveKey("Pod feed-handler")))
		for _, file := range documents() {
			for _, object := range wholeObjects(file) {
				if original, found := originals[nameOf(object)]; found {
					Expect(object.Object).To(Equal(original), "%s in %s", nameOf(object), file)
				}
			}
		}
	})

	It("show a pod for the resource of a sample pool, Guaranteed and with the hugepages of its stack", func() {
		pools := samplePools()
		pods := 0
		for _, file := range documents() {
			objects := wholeObjects(file)
			known := withPoolsOf(pools, objects)
			for _, object := range objects {
				if object.GetKind() == "Pod" {
					pods++
					pod := podOf(object)
					checkPod(pod, poolOf(pod, objects, known))
				}
			}
		}
		Expect(pods).To(BeNumerically(">=", len(pools)))
	})
}

func nameOf(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// originalFiles are those that hold nothing but objects.
func originalFiles() []string {
	GinkgoHelper()
	var files []string
	for _, folder := range []string{"../../config/samples", "../../docs/examples"} {
		found, err := samples.Files(folder)
		Expect(err).NotTo(HaveOccurred())
		files = append(files, found...)
	}
	return files
}

// originalObjects are those that have a file of their own, by kind and name. Profiles are left out: a document may show
// a shorter one under the same name.
func originalObjects() map[string]map[string]any {
	GinkgoHelper()
	originals := map[string]map[string]any{}
	for _, file := range originalFiles() {
		for _, object := range wholeObjects(file) {
			if object.GetKind() != "LowLatencyNodeProfile" {
				originals[nameOf(object)] = object.Object
			}
		}
	}
	return originals
}

// samplePools are the pools of config/samples by the name of their resource.
func samplePools() map[string]*nicPool {
	GinkgoHelper()
	pools := map[string]*nicPool{}
	for _, file := range originalFiles() {
		pools = withPoolsOf(pools, wholeObjects(file))
	}
	stacks := map[v1alpha1.StackType]bool{}
	for _, pool := range pools {
		stacks[pool.Spec.Stack.Type] = true
	}
	Expect(stacks).To(HaveLen(5), "stacks of the samples: %v", stacks)
	return pools
}

// withPoolsOf are the pools with those among the objects of a document, which its pods may ask, too.
func withPoolsOf(pools map[string]*nicPool, objects []*unstructured.Unstructured) map[string]*nicPool {
	GinkgoHelper()
	all := maps.Clone(pools)
	for _, object := range objects {
		if object.GetKind() != "BypassNICPool" {
			continue
		}
		content, err := object.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		pool := &nicPool{}
		Expect(yaml.UnmarshalStrict(content, pool)).To(Succeed(), object.GetName())
		all[pool.Spec.ResourceName] = pool
	}
	return all
}

func podOf(object *unstructured.Unstructured) *corev1.Pod {
	GinkgoHelper()
	content, err := object.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	pod := &corev1.Pod{}
	Expect(yaml.UnmarshalStrict(content, pod)).To(Succeed(), object.GetName())
	return pod
}

// checkPod expects that a pod asks for a NIC of a pool, and that the kubelet would align it: whole CPUs, memory and
// hugepages, each with a limit, in every container.
func checkPod(pod *corev1.Pod, pool *nicPool) {
	GinkgoHelper()
	Expect(pod.Spec.Containers).To(HaveLen(1), pod.Name)
	Expect(pod.Spec.InitContainers).To(BeEmpty(), pod.Name)
	container := pod.Spec.Containers[0]
	limits := container.Resources.Limits
	Expect(container.Resources.Requests).To(Or(BeEmpty(), Equal(limits)), pod.Name)
	Expect(limits.Cpu().MilliValue()).To(And(BeNumerically(">", 0), WithTransform(wholeCPUs, BeTrue())), pod.Name)
	Expect(limits.Memory().Value()).To(BeNumerically(">", 0), pod.Name)

	Expect(pool).NotTo(BeNil(), "pod %s asks for no resource of the sample pools", pod.Name)
	for _, pages := range pool.Spec.Hugepages {
		Expect(limits).To(HaveKey(corev1.ResourceName("hugepages-"+string(pages.Size))), pod.Name)
	}
	attached := strings.Contains(pod.Annotations["k8s.v1.cni.cncf.io/networks"], fmt.Sprintf("%q", pool.Name))
	Expect(attached).To(Equal(pool.Spec.NetworkAttachment != nil), "networks of pod %s", pod.Name)
	if attached {
		Expect(slices.Contains(pool.Spec.NetworkAttachment.Namespaces, pod.Namespace)).To(BeTrue(), pod.Name)
	}
}

func wholeCPUs(milli int64) bool { return milli%1000 == 0 }

// poolOf is the pool of which a pod gets a NIC: by the name of its resource, or by the class of a claim whose template is
// beside the pod.
func poolOf(pod *corev1.Pod, objects []*unstructured.Unstructured, pools map[string]*nicPool) *nicPool {
	GinkgoHelper()
	for name := range pod.Spec.Containers[0].Resources.Limits {
		if pool, found := pools[string(name)]; found {
			Expect(pool.Spec.Allocation).NotTo(Equal(v1alpha1.AllocationDynamic), pod.Name)
			return pool
		}
	}
	for _, claim := range pod.Spec.Containers[0].Resources.Claims {
		Expect(pod.Spec.ResourceClaims).To(ContainElement(HaveField("Name", claim.Name)), pod.Name)
	}
	for _, pool := range pools {
		for _, claim := range pod.Spec.ResourceClaims {
			if pool.Spec.Allocation == v1alpha1.AllocationDynamic &&
				slices.Contains(classesOf(*claim.ResourceClaimTemplateName, objects), pool.Name+".bypass.lowlatency.dev") {
				return pool
			}
		}
	}
	return nil
}

// classesOf are the classes that a template of a claim asks for.
func classesOf(template string, objects []*unstructured.Unstructured) []string {
	GinkgoHelper()
	var classes []string
	for _, object := range objects {
		if nameOf(object) != "ResourceClaimTemplate "+template {
			continue
		}
		typed := &resourcev1.ResourceClaimTemplate{}
		content, err := object.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.UnmarshalStrict(content, typed)).To(Succeed(), template)
		for _, request := range typed.Spec.Spec.Devices.Requests {
			classes = append(classes, request.Exactly.DeviceClassName)
		}
	}
	return classes
}
