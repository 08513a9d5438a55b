// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/dradriver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

const (
	draPool   = "x2"
	draDriver = "x2.bypass.lowlatency.dev"
)

// dynamicPool is a pool that allocates dynamically, as render gets it.
func dynamicPool() manifests.PoolInput {
	pool := &v1alpha1.BypassNICPool{
		ObjectMeta: metav1.ObjectMeta{Name: draPool},
		Spec: v1alpha1.BypassNICPoolSpec{
			NodeSelector: v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"role": "trading"}},
			NICs:         []v1alpha1.NICSelector{{Vendor: "1924"}},
			Stack:        v1alpha1.BypassStack{Type: v1alpha1.StackEFVI, EFVI: &v1alpha1.EFVIStack{UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceApplication}}},
			ResourceName: "lowlatency.dev/x2", Allocation: v1alpha1.AllocationDynamic,
		},
	}
	return manifests.PoolInput{
		Pool: pool, Config: bypass.Pool{Name: pool.Name, Spec: pool.Spec}, Image: "operator:v1",
		OperatorNamespace: systemNamespace, AgentNamespace: agentNamespace,
	}
}

// draNIC is a port of a NIC on a NUMA node with one root complex.
func draNIC(address string, node int, health v1alpha1.NICHealth) bypass.Device {
	return bypass.Device{
		NIC: host.NIC{
			PCIAddress: address, NUMANode: host.Known(node, ""), PCIeRoot: host.Known("pci"+address[:7], ""),
			Driver: host.Known("sfc", ""), SpeedMegabits: host.Known[int64](25000, ""),
		},
		Series: "X2", Health: health, Units: 1,
	}
}

var _ = Describe("Dynamic Resource Allocation on a real API server", Ordered, ContinueOnFailure, func() {
	var (
		environment *apiserver.Environment
		template    corev1.PodTemplateSpec
	)

	BeforeAll(func(ctx SpecContext) {
		var err error
		environment, err = apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(environment.Stop()).To(Succeed()) })
		objects := build("default")
		rendered, err := manifests.PoolObjects(dynamicPool())
		Expect(err).NotTo(HaveOccurred())
		for _, object := range append(objects, rendered...) {
			apply := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
			Expect(environment.Client().Apply(ctx, apply, client.FieldOwner("kubectl"), client.ForceOwnership)).
				To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		template = find[appsv1.DaemonSet](rendered, "DaemonSet", "bypass-x2").Spec.Template
		for _, name := range []string{"node-1", "node-2"} {
			Expect(environment.Client().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		}
	})

	as := func(nodes ...string) client.Client {
		GinkgoHelper()
		return impersonate(environment, agentNamespace, template, nodes...)
	}
	slice := func(name, node, driver string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "0000-3b-00-0"}},
		}}
	}

	It("has an account with a token, and the command line of the binary", func(ctx SpecContext) {
		account := find[corev1.ServiceAccount](build("openshift"), "ServiceAccount", template.Spec.ServiceAccountName)
		Expect(account.Namespace).To(Equal(agentNamespace))
		Expect(createPod(ctx, environment.Client(), agentNamespace, template)).To(Succeed())
		expectCommand(ctx, template.Spec.Containers[0])
	})

	It("lets a driver write the slices of its own node and driver, and of no other", func(ctx SpecContext) {
		refused := "a ResourceSlice of a bypass NIC driver is written by the driver on its own node only; this token is bound to "
		Eventually(func() error { return as("node-1").Create(ctx, slice("a", "node-2", draDriver), client.DryRunAll) }).
			WithTimeout(policyDelay).Should(refusal(refused + "node node-1."))
		Expect(as().Create(ctx, slice("a", "node-2", draDriver), client.DryRunAll)).To(refusal(refused + "no node."))
		Expect(as("node-1").Create(ctx, slice("a", "node-1", "gpu.example.com"), client.DryRunAll)).To(refusal("that end with .bypass.lowlatency.dev only"))

		foreign := slice("foreign", "node-2", draDriver)
		Expect(as("node-2").Create(ctx, foreign)).To(Succeed())
		mine := foreign.DeepCopy()
		mine.Spec.Devices[0].Name = "0000-af-00-0"
		Expect(as("node-1").Update(ctx, mine)).To(refusal(refused + "node node-1."))
		Expect(as("node-1").Delete(ctx, foreign)).To(refusal(refused + "node node-1."))
		Expect(as("node-2").Update(ctx, mine)).To(Succeed())
		Expect(as("node-2").Delete(ctx, mine)).To(Succeed())
	})

	It("keeps other accounts from slices of our drivers, and leaves the slices of others alone", func(ctx SpecContext) {
		other := template.DeepCopy()
		other.Spec.ServiceAccountName = "gpu-driver"
		Expect(environment.Client().Create(ctx, grantSlices("gpu-driver"))).To(Succeed())
		gpu := impersonate(environment, agentNamespace, *other, "node-1")
		Eventually(func() error { return gpu.Create(ctx, slice("a", "node-1", "gpu.example.com"), client.DryRunAll) }).Should(Succeed())
		Expect(gpu.Create(ctx, slice("a", "node-2", draDriver), client.DryRunAll)).To(refusal("bypass NIC driver"))

		Expect(environment.Client().Create(ctx, slice("orphan", "node-2", draDriver))).To(Succeed())
		collector := environment.Config()
		collector.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:kube-system:generic-garbage-collector",
			Groups:   []string{"system:serviceaccounts", "system:authenticated", "system:masters"},
		}
		garbage, err := client.New(collector, client.Options{Scheme: environment.Client().Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(garbage.Delete(ctx, slice("orphan", "node-2", draDriver))).To(Succeed())
	})

	It("gives a driver no other right", func(ctx SpecContext) {
		driver := as("node-1")
		Expect(driver.List(ctx, &corev1.SecretList{})).To(refusal("secrets"))
		Expect(driver.List(ctx, &resourcev1.ResourceClaimList{})).To(refusal("resourceclaims"))
		Expect(driver.List(ctx, &corev1.NodeList{})).To(refusal("nodes"))
		Expect(driver.Create(ctx, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})).To(refusal("deviceclasses"))
	})

	It("lets the manager write classes", func(ctx SpecContext) {
		deployment := find[appsv1.Deployment](build("default"), "Deployment", "lowlatency-operator-controller-manager")
		manager := impersonate(environment, deployment.Namespace, deployment.Spec.Template, "node-1")
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{
			Name: "trial", Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ProjectName},
		}}
		Expect(manager.Create(ctx, class)).To(Succeed())
		Expect(manager.Delete(ctx, class)).To(Succeed())
		Expect(manager.Create(ctx, slice("a", "node-1", "gpu.example.com"))).To(refusal("resourceslices"))
	})

	It("publishes with these rights what the scheduler allocates by NUMA node and root complex", func(ctx SpecContext) {
		runDriver(environment, template, []bypass.Device{
			draNIC("0000:3b:00.0", 0, v1alpha1.NICHealthy), draNIC("0000:3b:00.1", 0, v1alpha1.NICUnhealthy),
			draNIC("0000:5e:00.0", 1, v1alpha1.NICHealthy), draNIC("0000:af:00.0", 1, v1alpha1.NICHealthy), draNIC("0000:af:00.1", 1, v1alpha1.NICHealthy),
		})
		var published resourcev1.ResourceSliceList
		Eventually(func(g Gomega) {
			g.Expect(environment.Client().List(ctx, &published)).To(Succeed())
			g.Expect(published.Items).To(HaveLen(1))
			g.Expect(published.Items[0].Spec.Devices).To(HaveLen(5))
		}).WithTimeout(policyDelay).Should(Succeed())
		stored := published.Items[0]
		Expect(*stored.Spec.NodeName).To(Equal("node-1"))
		Expect(stored.OwnerReferences).To(HaveExactElements(HaveField("Name", "node-1")))
		Expect(stored.Spec.Devices[1].Taints).To(HaveExactElements(HaveField("Effect", resourcev1.DeviceTaintEffectNoSchedule)))

		const numaNode, pcieRoot = "resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot"
		allocated := func(constraint resourcev1.FullyQualifiedName, count int64, expression string) []string {
			GinkgoHelper()
			claim := draClaim(constraint, count, expression)
			Expect(environment.Client().Create(ctx, claim)).To(Succeed())
			return allocate(ctx, environment.Client(), &stored, claim)
		}
		Expect(allocated("", 2, "")).To(HaveExactElements("0000-3b-00-0", "0000-5e-00-0"), "first fit, without the unhealthy one")
		Expect(allocated(numaNode, 2, "")).To(HaveExactElements("0000-5e-00-0", "0000-af-00-0"))
		Expect(allocated(numaNode, 3, "")).To(HaveExactElements("0000-5e-00-0", "0000-af-00-0", "0000-af-00-1"))
		Expect(allocated(pcieRoot, 2, "")).To(HaveExactElements("0000-af-00-0", "0000-af-00-1"))
		Expect(allocated(numaNode, 4, "")).To(BeEmpty(), "no NUMA node has four")
		Expect(allocated("", 1, `device.attributes["resource.kubernetes.io"].numaNode == 1 && device.attributes["lowlatency.dev"].series == "X2"`)).
			To(HaveExactElements("0000-5e-00-0"))
		Expect(allocated("", 1, `device.attributes["lowlatency.dev"].linkSpeedMegabits >= 100000`)).To(BeEmpty())
	})

	It("serves pods that ask for the resource of the device plugin", func(ctx SpecContext) {
		var class resourcev1.DeviceClass
		Expect(environment.Client().Get(ctx, client.ObjectKey{Name: draDriver}, &class)).To(Succeed())
		Expect(class.Spec.ExtendedResourceName).To(HaveValue(Equal("lowlatency.dev/x2")))
	})
})

// grantSlices binds an account of the agents' namespace to the role of DRA drivers.
func grantSlices(account string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": account},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lowlatency-operator-dra-driver"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": agentNamespace}},
	}}
}

// runDriver runs the driver of node-1 with the identity of its pods until the end of the spec.
func runDriver(environment *apiserver.Environment, template corev1.PodTemplateSpec, devices []bypass.Device) {
	GinkgoHelper()
	config := environment.Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + agentNamespace + ":" + template.Spec.ServiceAccountName,
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
		Extra:    map[string][]string{nodeNameExtra: {"node-1"}},
	}
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	kubelet, err := os.MkdirTemp("", "dra")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, kubelet)
	Expect(os.Mkdir(filepath.Join(kubelet, "plugins_registry"), 0o750)).To(Succeed())
	driver := &dradriver.Driver{
		Pool: draPool, NodeName: "node-1", Client: clientset, KubeletFolder: kubelet, CDIFolder: filepath.Join(kubelet, "cdi"),
		Interval: time.Hour,
		Evaluate: func(context.Context) (deviceplugin.Reading, error) {
			return deviceplugin.Reading{Pool: dynamicPool().Config, Devices: devices}, nil
		},
		Containers: func(context.Context) host.Fact[[]allocation.Container] {
			return host.Known([]allocation.Container{}, "")
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- driver.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).WithTimeout(policyDelay).Should(Receive(BeNil()))
	})
}

// draClaim asks for devices of the pool's class.
func draClaim(constraint resourcev1.FullyQualifiedName, count int64, expression string) *resourcev1.ResourceClaim {
	exactly := &resourcev1.ExactDeviceRequest{
		DeviceClassName: draDriver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
	}
	if expression != "" {
		exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "nics-"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "nics", Exactly: exactly}}
	if constraint != "" {
		claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &constraint}}
	}
	return claim
}

// classes reads classes from the API server, for the allocator.
type classes struct {
	context.Context
	client.Client
}

func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	var list resourcev1.DeviceClassList
	err := c.Client.List(c.Context, &list)
	all := make([]*resourcev1.DeviceClass, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, err
}

func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	var class resourcev1.DeviceClass
	err := c.Client.Get(c.Context, client.ObjectKey{Name: name}, &class)
	return &class, err
}

// allocate lets the allocator of kube-scheduler choose devices for a claim on node-1.
func allocate(ctx context.Context, reader client.Client, slice *resourcev1.ResourceSlice, claim *resourcev1.ResourceClaim) []string {
	GinkgoHelper()
	allocator, err := structured.NewAllocator(ctx, structured.Features{DeviceTaints: true},
		structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()},
		classes{ctx, reader}, []*resourcev1.ResourceSlice{slice}, dracel.NewCache(10, dracel.Features{}))
	Expect(err).NotTo(HaveOccurred())
	results, err := allocator.Allocate(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, []*resourcev1.ResourceClaim{claim})
	Expect(err).NotTo(HaveOccurred())
	var devices []string
	for _, result := range results {
		for _, device := range result.Devices.Results {
			devices = append(devices, device.Device)
		}
	}
	return devices
}
