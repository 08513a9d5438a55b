// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package dradriver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	specs "tags.cncf.io/container-device-interface/specs-go"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/cdi"
)

// prepared is what a claim has got.
type prepared struct {
	uid types.UID
	// claim is NAMESPACE/NAME.
	claim string
	// requests in the order of the claim's allocation.
	requests []preparedRequest
}

// preparedRequest is what one request of a claim has got.
type preparedRequest struct {
	// name of the request, without that of a subrequest.
	name string
	// devices are names in ResourceSlices.
	devices []string
	edits   bypass.Edits
}

// sameDevices reports whether two claims have the same devices for the same requests.
func (p *prepared) sameDevices(other *prepared) bool {
	return slices.EqualFunc(p.requests, other.requests, func(a, b preparedRequest) bool {
		return a.name == b.name && slices.Equal(a.devices, b.devices)
	})
}

// claimFolder is the folder of CDI specifications, with one file for each prepared claim of a driver.
type claimFolder struct {
	path, driver string
}

// cdiName is the name of the CDI device for a request. It has the claim's UID in it, because runtimes may remember a
// device by its name.
func cdiName(uid types.UID, request string) string { return string(uid) + "-" + request }

// cdiID is the full name of a CDI device.
func cdiID(resource string, uid types.UID, request string) string {
	return cdi.Kind(resource) + "=" + cdiName(uid, request)
}

func (f *claimFolder) file(uid types.UID) string {
	return filepath.Join(f.path, f.driver+"-"+string(uid)+".json")
}

// write writes the specification of a claim.
func (f *claimFolder) write(resource string, claim *prepared) error {
	spec := &specs.Spec{
		Kind: cdi.Kind(resource), Annotations: map[string]string{v1alpha1.AnnotationClaim: claim.claim},
	}
	for _, request := range claim.requests {
		edits := cdi.Edits(request.edits)
		for _, variable := range request.edits.Environment {
			edits.Env = append(edits.Env, variable.Name+"="+variable.Value)
		}
		spec.Devices = append(spec.Devices, specs.Device{
			Name: cdiName(claim.uid, request.name), ContainerEdits: edits,
			Annotations: map[string]string{v1alpha1.AnnotationRequest: request.name, v1alpha1.AnnotationDevices: strings.Join(request.devices, ",")},
		})
	}
	content, err := cdi.Encode(spec, "claim "+claim.claim)
	if err != nil {
		return err
	}
	return cdi.Replace(f.file(claim.uid), content)
}

// removeLeftovers removes what a driver that was killed has left of files that it was writing.
func (f *claimFolder) removeLeftovers() error { return cdi.RemoveLeftovers(f.path, f.driver+"-*.json") }

// remove removes the specification of a claim, if there is one.
func (f *claimFolder) remove(uid types.UID) error { return cdi.Remove(f.file(uid)) }

// list reads what is prepared, in ascending order of UID.
func (f *claimFolder) list() ([]prepared, error) {
	files, err := filepath.Glob(filepath.Join(f.path, f.driver+"-*.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for CDI specifications in %s: %w", f.path, err)
	}
	claims := make([]prepared, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a CDI specification: %w", err)
		}
		uid := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), f.driver+"-"), ".json")
		claim, err := parseClaim(types.UID(uid), text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; remove the file when no pod holds the claim", file, err)
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// parseClaim reads a specification that write has written. Of the edits it reads nothing.
func parseClaim(uid types.UID, text []byte) (prepared, error) {
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return prepared{}, fmt.Errorf("the CDI specification of a claim cannot be read: %w", err)
	}
	claim := prepared{uid: uid, claim: spec.Annotations[v1alpha1.AnnotationClaim]}
	for _, device := range spec.Devices {
		name, devices := device.Annotations[v1alpha1.AnnotationRequest], device.Annotations[v1alpha1.AnnotationDevices]
		if device.Name != cdiName(uid, name) || devices == "" {
			return prepared{}, fmt.Errorf("the CDI specification of a claim has device %q, which is not of claim %s", device.Name, uid)
		}
		claim.requests = append(claim.requests, preparedRequest{name: name, devices: strings.Split(devices, ",")})
	}
	if claim.claim == "" || len(claim.requests) == 0 {
		return prepared{}, errors.New("the CDI specification of a claim does not say what it is for")
	}
	return claim, nil
}
