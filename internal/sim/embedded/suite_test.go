// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// cluster is the API server of the suite.
//
//nolint:gochecknoglobals // Ginkgo hands state from BeforeSuite to specs through variables of the package.
var cluster client.Client

func TestEmbedded(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "embedded platform")
}

var _ = BeforeSuite(func() {
	environment, err := apiserver.Start(apiserver.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	cluster = environment.Client()
})
