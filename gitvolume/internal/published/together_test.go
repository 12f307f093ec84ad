package published_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Calls for pods of the same volumes and what the node looks after by itself, all at
// once: the kubelet repeats what fails, and in the end nothing is left.
func TestAllAtOnce(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	var pods []*pod
	for i := range 8 {
		pods = append(pods, n.claimed("pv-"+strconv.Itoa(i%3), strconv.Itoa(i), urlOf(b)))
	}
	stop := make(chan struct{})
	var beside, kubelet sync.WaitGroup
	beside.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			n.demand("pv-"+strconv.Itoa(i%3), strconv.Itoa(i))
			n.volumes.LookAtTargets(t.Context())
			n.volumes.DropGone(t.Context())
		}
	})
	for _, p := range pods {
		kubelet.Go(func() {
			for range 6 {
				if rand.IntN(3) == 0 {
					_ = p.publishWithin(10*time.Second + time.Duration(rand.IntN(50))*time.Millisecond)
				} else if err := p.publish(); err == nil {
					p.shows("f", "1")
				}
				if rand.IntN(2) == 0 {
					_ = p.publish()
				}
				if err := n.volumes.Unpublish(t.Context(), p.wish.Handle, p.target); err != nil {
					t.Errorf("unpublish: %v", err)
				}
			}
		})
	}
	kubelet.Wait()
	if len(n.posts.all) > 0 {
		t.Errorf("nothing was wrong, and there are Events: %q", n.posts.all)
	}
	close(stop)
	beside.Wait()
	for _, p := range pods {
		p.unpublish()
	}
	n.isEmpty()
	n.volumes.Tire()
	n.volumes.LookAtTargets(t.Context())
	if len(n.cluster.followed) > 0 {
		t.Errorf("still followed: %v", n.cluster.followed)
	}
}
