package published_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/attributesclass"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/remote"
)

// classes are the VolumeAttributesClasses of a cluster.
type classes struct {
	mu    sync.Mutex
	known map[string]policy.Class
	away  error
}

func (c *classes) Read(_ context.Context, name string) (policy.Class, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	class, found := c.known[name]
	switch {
	case c.away != nil:
		return policy.Class{}, c.away
	case !found:
		return policy.Class{}, fmt.Errorf("class %s: %w", name, attributesclass.ErrNone)
	}
	return class, nil
}

func (c *classes) has(name, driver string, parameters ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	class := policy.Class{Name: name, Driver: driver, Parameters: map[string]string{}}
	for i := 0; i < len(parameters); i += 2 {
		class.Parameters[parameters[i]] = parameters[i+1]
	}
	c.known[name] = class
}

func (c *classes) isAway(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = err
}

// names has the PersistentVolume name a class, as the resizer does.
func (n *node) names(pv, class string) {
	n.t.Helper()
	n.cluster.tells(pv, func(v *persistentvolume.Volume) { v.AttributesClass = class })
}

// inForce waits until the record has the class as the one that arms the volume; empty: none
// does.
func (p *pod) inForce(class string) {
	p.n.t.Helper()
	until(p.n.t, "the class in force is "+class, func() bool {
		kept := p.record().Class
		return kept.Policy != nil && kept.Name == class || kept.Policy == nil && class == ""
	})
}

// The class that the PersistentVolume names counts, from the first publish on, and each
// other one without a restart; one that cannot be used is told of and unarms, and counts as
// soon as it can be used.
func TestClass(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	n.classes = &classes{known: map[string]policy.Class{}}
	n.restart()
	stop := running(t, n)
	n.classes.has("first", driverName, "push.quiesce", "5s")
	n.classes.has("second", driverName, "push.quiesce", "6s")
	n.classes.has("paused", driverName, "armed", "false")
	n.classes.has("foreign", "other.example", "armed", "true")
	n.classes.has("wrong", driverName, "push.quiesce", "1s", "zone", "x")

	p := n.writer("pv", "a", urlOf(b)).staged(nil)
	n.names("pv", "first")
	p.published()
	if got := n.posts.has("Pod/pod-a GitVolumeUnarmed"); got > 0 {
		t.Errorf("%d Events tell that a volume with a class is unarmed", got)
	}
	p.inForce("first")
	p.write("g", "1")
	arrives(t, b, "g", "1")
	n.names("pv", "second")
	p.inForce("second")
	p.becomes("")

	for class, words := range map[string]string{
		"foreign": "another driver's", "wrong": "parameter push.quiesce", "missing": "there is no such VolumeAttributesClass",
	} {
		n.names("pv", class)
		p.inForce("")
		until(t, "it is told of "+class, func() bool { return hasWords(n.volumes.Abnormal("pv"), "ClassUnusable", words) })
	}
	n.names("pv", "paused")
	p.inForce("")
	p.becomes("")
	n.names("pv", "late")
	p.becomes("ClassUnusable")
	n.classes.has("late", driverName, "armed", "true")
	n.volumes.PokeClasses()
	p.inForce("late")
	p.becomes("")

	// The API server is away: what was in force stays, over a restart too.
	n.classes.isAway(errors.New("the API server is away"))
	n.names("pv", "second")
	n.cluster.isAway("pv")
	stop()
	n.restart()
	p.published()
	p.inForce("late")
	n.classes.isAway(nil)
	n.cluster.knows("pv")
	n.names("pv", "second")
	n.volumes.PokeClasses()
	p.inForce("late") // Nothing runs that reads it yet.
	running(t, n)
	p.inForce("second")

	n.names("pv", "")
	p.inForce("")
	p.unpublish()
}

// A claim whose ref was wrong is made anew with a right one. The pods that waited for the
// first are remembered, so that the volume is; its class counts for the second all the same.
func TestClassOfAVolumeThatIsMadeAnew(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	n.classes = &classes{known: map[string]policy.Class{}}
	n.restart()
	n.classes.has("soon", driverName, "push.quiesce", "5s")
	named := func(v *persistentvolume.Volume) { v.AttributesClass, v.ReclaimPolicy = "soon", "Delete" }

	wrong := n.writer("pv", "a", urlOf(b), "ref", "mian").staged(nil)
	n.cluster.tells("pv", named)
	wrong.refused(remote.ErrNoRef, "mian")
	wrong.unstage()
	n.must(n.volumes.Reclaim(t.Context()))
	n.cluster.deletes("pv")
	n.must(n.volumes.Reclaim(t.Context()))
	if wrong.isKept() {
		t.Error("the record of the first is kept")
	}
	if !n.volumes.Holds("pv") {
		t.Error("the volume is forgotten, and this test tests nothing")
	}

	n.cluster.tells("pv", named)
	n.writer("pv", "b", urlOf(b)).staged(nil).published().inForce("soon")
}
