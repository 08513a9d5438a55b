// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	// MaximumRestorations is how often the operator restores an object to the same content within RestorationWindow. Then
	// it lets the other writer have its way until the time is over, and says so.
	MaximumRestorations = 5
	// RestorationWindow is for how long a restoration counts.
	RestorationWindow = 10 * time.Minute

	// rememberedObjects is of how many objects a Keeper remembers what it has seen before it looks for those that nobody asks
	// about any more. Forgetting costs one read or write for each object.
	rememberedObjects = 256
)

// Keeper sees to it that the objects which the operator renders have the content that was rendered, and no other. It
// remembers what it has restored and how often, so that it never fights another writer without end, and what stays in an
// object although it was taken out: defaults of the API server, and what an admission webhook adds.
type Keeper struct {
	// Reader answers from the API server. It is asked about objects that are not in the cache or differ from what is
	// wanted in a way that applying does not mend.
	Reader client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock

	mutex   sync.Mutex
	objects map[types.UID]*history
	// limit is the number of objects at which those that nobody asks about any more are looked for.
	limit int
}

// history is what is remembered of an object.
type history struct {
	// settled are additions, with their values, that are not to be taken out.
	settled map[string]bool
	// desired is the digest of the content to which the object was restored, and times are when that was.
	desired [sha256.Size]byte
	times   []time.Time
	// seen is the version of the object that was restored last.
	seen string
	// asked is when anybody asked about the object last.
	asked time.Time
}

// Inspection is what a Keeper has found out about one object.
type Inspection struct {
	// Live is the object as the API server has it, where it was asked; else as it was given. Nil when it does not exist.
	Live *unstructured.Unstructured
	// Conflict says why the object must not be written; "" when it may.
	Conflict string

	desired *unstructured.Unstructured
	foreign []addition
	// within are the fields of the spec that are the operator's as a whole; empty means the whole content.
	within []string
}

// additions are those of an object in what is the operator's.
func (i *Inspection) additions(live *unstructured.Unstructured) []addition {
	return slices.DeleteFunc(additions(live, i.desired), func(one addition) bool {
		return len(i.within) > 0 && (len(one.path) < specField || !slices.Contains(i.within, one.path[specField-1]))
	})
}

// HasForeign reports whether the object has content that somebody else has added and that is to be taken out.
func (i *Inspection) HasForeign() bool { return i != nil && len(i.foreign) > 0 }

// Inspect compares an object, as the cache has it, with the wanted one. Where others may write other fields of its spec, as
// in a machine config pool, the fields that are the operator's as a whole are named.
func (k *Keeper) Inspect(ctx context.Context, cached, desired *unstructured.Unstructured, within ...string) (*Inspection, error) {
	found := &Inspection{Live: cached, desired: desired, within: within}
	if cached == nil || len(k.unsettled(cached, found.additions(cached))) > 0 {
		if mayWrite, err := k.look(ctx, found); !mayWrite || err != nil {
			return found, err
		}
	}
	if len(found.foreign) == 0 && Compare(found.Live, desired) == Same {
		return found, nil
	}
	if !k.isFought(found.Live, desired) {
		return found, nil
	}
	if len(found.Live.GetManagedFields()) == 0 {
		// The cache does not hold who has written what.
		if mayWrite, err := k.look(ctx, found); !mayWrite || err != nil {
			return found, err
		}
	}
	found.Conflict = conflictOf(found)
	return found, nil
}

// look asks the API server, and reports whether there is an object of the operator's.
func (k *Keeper) look(ctx context.Context, found *Inspection) (bool, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(found.desired.GroupVersionKind())
	err := k.Reader.Get(ctx, client.ObjectKeyFromObject(found.desired), live)
	switch {
	case apierrors.IsNotFound(err):
		found.Live = nil
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", Describe(found.desired), err)
	}
	found.Live = live
	if !IsOurs(live) {
		found.Conflict = fmt.Sprintf("%s exists and was not made by the operator, which does not overwrite it: delete it, or take "+
			"another name", Describe(live))
		return false, nil
	}
	found.foreign = foreignTo(live, k.unsettled(live, found.additions(live)))
	k.settle(live, found.additions(live), func(one addition) bool {
		return !slices.ContainsFunc(found.foreign, func(other addition) bool { return one.id() == other.id() })
	})
	return true, nil
}

// IsOurs reports whether the operator has made the object: it says so itself, or the API server's record does.
func IsOurs(object *unstructured.Unstructured) bool {
	return object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ProjectName ||
		slices.ContainsFunc(object.GetManagedFields(), IsOwnApply)
}

// IsOwnApply reports whether an entry of the API server's record is about what the operator has applied to the object itself.
func IsOwnApply(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == v1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// Write makes an object what is wanted: it takes out what others have added, and applies the rest. The first fails with a
// conflict when the object has changed since it was read.
func (k *Keeper) Write(ctx context.Context, writer client.Client, found *Inspection) error {
	if found.Live != nil {
		k.note(found.Live, found.desired)
	}
	live := found.Live
	if found.HasForeign() {
		live = found.Live.DeepCopy()
		if err := remove(ctx, writer, live, found.foreign); err != nil {
			return err
		}
		k.settle(live, found.additions(live), func(one addition) bool {
			return slices.ContainsFunc(found.foreign, func(other addition) bool { return isWithin(one.id(), other.id()) })
		})
	}
	if live != nil && Compare(live, found.desired) == Same {
		return nil
	}
	return Apply(ctx, writer, found.desired)
}

// conflictOf says who keeps changing the object.
func conflictOf(found *Inspection) string {
	who, what := "another writer", "its content"
	if managers := otherManagers(found.Live); len(managers) > 0 {
		who = strings.Join(managers, " or ")
	}
	if len(found.foreign) > 0 {
		what = listed(found.foreign)
	}
	return fmt.Sprintf("%s was restored %d times within %d minutes, and %s keeps changing %s: make it leave the object alone",
		Describe(found.desired), MaximumRestorations, int(RestorationWindow.Minutes()), who, what)
}

// listed names fields as people do, some of them.
func listed(found []addition) string {
	const shown = 3
	names := make([]string, 0, len(found))
	for _, one := range found {
		names = append(names, one.String())
	}
	slices.Sort(names)
	if more := len(names) - shown; more > 0 {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// of is what is remembered of an object. The mutex must be held.
func (k *Keeper) of(object *unstructured.Unstructured) *history {
	now := k.Clock.Now()
	known := k.objects[object.GetUID()]
	if known == nil {
		k.forget(now)
		known = &history{settled: map[string]bool{}}
		k.objects[object.GetUID()] = known
	}
	known.asked = now
	return known
}

// forget makes room for another object: it forgets those of which nothing counts any more because nobody asks about them.
func (k *Keeper) forget(now time.Time) {
	if k.objects == nil {
		k.objects, k.limit = map[types.UID]*history{}, rememberedObjects
	}
	if len(k.objects) < k.limit {
		return
	}
	maps.DeleteFunc(k.objects, func(_ types.UID, h *history) bool { return now.Sub(h.asked) >= RestorationWindow })
	k.limit = max(rememberedObjects, 2*len(k.objects))
}

// unsettled leaves the additions that are not known to be there to stay.
func (k *Keeper) unsettled(object *unstructured.Unstructured, found []addition) []addition {
	if len(found) == 0 {
		return nil
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	known := k.of(object)
	return slices.DeleteFunc(found, func(one addition) bool { return known.settled[one.fingerprint(object)] })
}

// settle remembers which of the additions that an object has now are there to stay: those that were before, and those that are
// settled now. Former ones are forgotten.
func (k *Keeper) settle(object *unstructured.Unstructured, present []addition, isSettled func(addition) bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	known := k.of(object)
	former := known.settled
	known.settled = map[string]bool{}
	for _, one := range present {
		if id := one.fingerprint(object); former[id] || isSettled(one) {
			known.settled[id] = true
		}
	}
}

// note counts a restoration. The same version of an object counts once: the cache may be behind.
func (k *Keeper) note(live, desired *unstructured.Unstructured) {
	content := digestOf(desired)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	known := k.of(live)
	if known.desired != content {
		known.desired, known.times = content, nil
		known.seen = live.GetResourceVersion()
		return
	}
	if known.seen == live.GetResourceVersion() {
		return
	}
	known.seen = live.GetResourceVersion()
	known.times = append(known.times, k.Clock.Now())
}

// isFought reports whether the object was restored to the wanted content as often as is allowed.
func (k *Keeper) isFought(live, desired *unstructured.Unstructured) bool {
	content := digestOf(desired)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	known := k.of(live)
	now := k.Clock.Now()
	known.times = slices.DeleteFunc(known.times, func(at time.Time) bool { return now.Sub(at) >= RestorationWindow })
	return known.desired == content && len(known.times) >= MaximumRestorations
}

// digestOf identifies the content of an object.
func digestOf(object *unstructured.Unstructured) [sha256.Size]byte {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(text)
}
