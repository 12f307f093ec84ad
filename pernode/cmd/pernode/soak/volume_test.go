//go:build soak

package soak

import (
	"math/rand/v2"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/pernode/internal/driver"
)

// nobody is the holder of a copy that no pod has.
const nobody = -1

// volume is one handle and what is known of it. Its goroutine alone acts on it and changes
// what is known; the weather only takes its mounts away, while no goroutine relies on them.
type volume struct {
	s      *soak
	random *rand.Rand
	number int
	handle string
	names  [2]string       // Its PersistentVolumes'. The i-th pod uses one of them.
	exists map[string]bool // Which there are.

	// condemned is true when, since it was last known which copy there is, all of its
	// PersistentVolumes were gone at some time: the copy may go, or be there still.
	condemned bool
	copied    bool   // A copy was seen, and must be there unless condemned.
	mark      string // What is written in it that tells it from another one, empty for nothing.
	marks     int    // How many there were.
	stirred   bool   // What is in it was renamed at random.
	tree             // What pods wrote into the copy.

	holder   int // Index of its pod, or nobody.
	readOnly bool
	stale    bool // Somebody took the mount away, and no call has heard of it yet.
}

// live acts on the volume until the round is over.
func (v *volume) live(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
		}
		if v.s.upset.Load()%2 == 1 && v.random.IntN(4) > 0 {
			time.Sleep(time.Millisecond) // Too many refused connections say nothing more.
			continue
		}
		v.act()
		if v.s.T.Failed() {
			return
		}
	}
}

// act does one thing at random, and compares what is answered with what must be.
func (v *volume) act() {
	v.s.calm.RLock()
	defer v.s.calm.RUnlock()
	v.s.operations.Add(1)
	v.oneOf([]choice{
		{16, func() { v.publish(v.random.IntN(podsPerVolume), v.random.IntN(8) == 0) }},
		{10, func() { v.unpublish(v.random.IntN(podsPerVolume)) }},
		{8, func() { v.unpublish(max(v.holder, 0)) }},
		{6, v.askStats},
		{4, v.askHealth},
		{14, v.together},
		{24, v.write},
		{3, v.writeHostile},
		{4, v.verify},
		{5, func() { v.unmade(v.names[v.random.IntN(len(v.names))]) }},
		{2, func() { v.unmade(v.names[:]...) }},
		{2, v.stirWhileRemoved},
		{8, func() { v.made(v.names[v.random.IntN(len(v.names))]) }},
		{2, v.loseMount},
	})
}

// choice is something to do, and how often, compared with the others.
type choice struct {
	weight int
	do     func()
}

func (v *volume) oneOf(choices []choice) {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	at := v.random.IntN(total)
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			c.do()
			return
		}
	}
}

// made has the PersistentVolume be there.
func (v *volume) made(pv string) {
	v.note("PersistentVolume %s is made", pv)
	v.s.API.PutVolume(apiserver.Volume(pv, driver.Name, v.handle))
	v.exists[pv] = true
}

// unmade deletes PersistentVolumes. When none is left the copy may go.
func (v *volume) unmade(pvs ...string) {
	for _, pv := range pvs {
		if v.exists[pv] {
			v.note("PersistentVolume %s is deleted", pv)
			v.s.API.DeleteVolume(pv)
			v.s.deletions.Add(1)
			delete(v.exists, pv)
		}
	}
	v.condemned = v.condemned || len(v.exists) == 0
}

func (v *volume) note(format string, arguments ...any) { v.s.note(v.handle+": "+format, arguments...) }

// wrong fails the test: something is not as it must be.
func (v *volume) wrong(format string, arguments ...any) {
	v.s.T.Helper()
	v.note("WRONG "+format, arguments...)
	v.s.T.Errorf(v.handle+": "+format, arguments...)
}

// pod is the i-th of the volume's pods.
func (v *volume) pod(i int) kubelet.Pod { return rig.Pod(v.number*100 + i) }
