// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command etcd is the upstream etcd server, wrapped so that it can be built from the module proxy:
// the upstream main package lives in a module with local replace directives, which go install refuses.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
