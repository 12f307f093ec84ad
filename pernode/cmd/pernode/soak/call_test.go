//go:build soak

package soak

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
)

// undisturbed remembers whether the plugin runs, and the disk has room.
type undisturbed struct{ upset, full int64 }

func (v *volume) now() undisturbed { return undisturbed{v.s.upset.Load(), v.s.full.Load()} }

// ran is true when the plugin has run all the time since.
func (u undisturbed) ran(v *volume) bool { return u.upset%2 == 0 && u.upset == v.s.upset.Load() }

// hadRoom is true when the disk has had room all the time since.
func (u undisturbed) hadRoom(v *volume) bool { return u.full%2 == 0 && u.full == v.s.full.Load() }

// of is the volume as the i-th pod uses it.
func (v *volume) of(i int, readOnly bool) kubelet.Volume {
	return kubelet.Volume{PV: v.names[i%len(v.names)], Handle: v.handle, AccessMode: corev1.ReadWriteOnce, ReadOnly: readOnly}
}

func (v *volume) target(i int) string {
	return (&kubelet.Kubelet{Root: v.s.KubeletDir}).Target(v.pod(i).UID, v.of(i, false).PV)
}

func (v *volume) call(patience time.Duration, do func(context.Context, *kubelet.Kubelet) error) codes.Code {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return status.Code(do(ctx, v.s.connected.Load()))
}

func (v *volume) callPublish(i int, readOnly bool, patience time.Duration) codes.Code {
	code := v.call(patience, func(ctx context.Context, k *kubelet.Kubelet) error {
		_, err := k.Publish(ctx, v.of(i, readOnly), v.pod(i))
		return err
	})
	v.note("publish for pod %d, read-only %t: %v", i, readOnly, code)
	return code
}

func (v *volume) callUnpublish(i int, patience time.Duration) codes.Code {
	code := v.call(patience, func(ctx context.Context, k *kubelet.Kubelet) error {
		return k.Unpublish(ctx, v.of(i, false), v.pod(i))
	})
	v.note("unpublish from pod %d: %v", i, code)
	return code
}

func (v *volume) callStats(i int, patience time.Duration) codes.Code {
	return v.call(patience, func(ctx context.Context, k *kubelet.Kubelet) error {
		_, err := k.Node().NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: v.handle, VolumePath: v.target(i)})
		return err
	})
}

func (v *volume) callHealth(patience time.Duration) (reasons []string, code codes.Code) {
	code = v.call(patience, func(ctx context.Context, k *kubelet.Kubelet) error {
		answer, err := k.Node().NodeGetVolumeHealth(ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: v.handle})
		for _, s := range answer.GetVolumeHealth().GetHealthStatuses() {
			reasons = append(reasons, s.GetReason())
		}
		return err
	})
	return reasons, code
}

// publish has the i-th pod be given the volume, and wants the answer that is right.
func (v *volume) publish(i int, readOnly bool) {
	before, hadCopy, isWanted := v.now(), v.copied && !v.condemned, len(v.exists) > 0
	code := v.callPublish(i, readOnly, process.Patience)
	want := codes.OK
	switch {
	case v.holder != nobody && v.holder != i:
		want = codes.FailedPrecondition
	case v.holder == i && v.readOnly != readOnly:
		want = codes.AlreadyExists
	}
	isMaking := want == codes.OK && v.holder == nobody && !hadCopy
	switch {
	case !before.ran(v), code == want:
	case isMaking && !before.hadRoom(v) && code == codes.Internal: // A full disk has no room for a copy.
	default:
		v.wrong("publish for pod %d, read-only %t, while pod %d has it: %v, want %v", i, readOnly, v.holder, code, want)
	}
	v.find(before)
	if code == codes.OK && v.holder == i {
		v.stale = false
		// No removal can have been decided on that does not hear of this pod.
		v.condemned = v.condemned && !isWanted
	}
	if before.ran(v) && code == codes.OK && (v.holder != i || v.readOnly != readOnly) {
		v.wrong("pod %d was given it, read-only %t, and pod %d has it, read-only %t", i, readOnly, v.holder, v.readOnly)
	}
}

// unpublish takes the volume from the i-th pod, which always works.
func (v *volume) unpublish(i int) {
	before, holder := v.now(), v.holder
	code := v.callUnpublish(i, process.Patience)
	if before.ran(v) && code != codes.OK {
		v.wrong("unpublish from pod %d, while pod %d has it: %v", i, v.holder, code)
	}
	v.find(before)
	if before.ran(v) && holder != i && v.holder != holder {
		v.wrong("unpublish from pod %d took it from pod %d", i, holder)
	}
	if before.ran(v) && v.holder == i {
		v.wrong("it was unpublished from pod %d, which still has it", i)
	}
}

func (v *volume) askStats() {
	before, i := v.now(), v.random.IntN(podsPerVolume)
	code := v.callStats(i, process.Patience)
	want := []codes.Code{codes.NotFound}
	if v.holder == i {
		want = []codes.Code{codes.OK, codes.Unavailable} // A first look may take a while.
	}
	if before.ran(v) && !slices.Contains(want, code) {
		v.wrong("stats for pod %d, while pod %d has it: %v, want %v", i, v.holder, code, want)
	}
}

func (v *volume) askHealth() {
	before := v.now()
	if _, code := v.callHealth(process.Patience); before.ran(v) && code != codes.OK {
		v.wrong("health: %v", code)
	}
}

// together has calls meet that the kubelet makes one after the other at best, some of which
// it gives up on at once.
func (v *volume) together() {
	before, holder, readOnly := v.now(), v.holder, v.readOnly
	isTaken := false
	given := make([]bool, podsPerVolume)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 2 + v.random.IntN(5) {
		i, asReader, patience := v.random.IntN(podsPerVolume), v.random.IntN(8) == 0, process.Patience
		if v.random.IntN(4) == 0 {
			patience = time.Duration(v.random.IntN(3000)) * time.Microsecond
		}
		switch v.random.IntN(8) {
		case 0:
			all.Go(func() { v.callStats(i, patience) })
		case 1:
			all.Go(func() { v.callHealth(patience) })
		case 2, 3:
			isTaken = isTaken || i == holder
			all.Go(func() { v.callUnpublish(i, patience) })
		default:
			all.Go(func() {
				code := v.callPublish(i, asReader, patience)
				mu.Lock()
				defer mu.Unlock()
				given[i] = given[i] || code == codes.OK
			})
		}
	}
	all.Wait()
	v.find(undisturbed{upset: 1}) // What was given up on may still be at work.
	if !before.ran(v) || isTaken || holder == nobody {
		return
	}
	if v.holder != holder || v.readOnly != readOnly {
		v.wrong("pod %d had it, read-only %t, nobody took it, and pod %d has it, read-only %t", holder, readOnly, v.holder, v.readOnly)
	}
	for i, was := range given {
		if was && i != holder {
			v.wrong("pod %d was given it while pod %d had it", i, holder)
		}
	}
}

// find finds out who has the copy, by the mount table, and which copy it is. Unless nothing
// happened meanwhile, calls may still be at work in the plugin, or it is at its end.
func (v *volume) find(before undisturbed) {
	for !before.ran(v) {
		if before = v.now(); before.upset%2 == 1 {
			time.Sleep(time.Millisecond)
			continue
		}
		// Waits for what else there is to do with the volume.
		if code := v.call(process.Patience, func(ctx context.Context, k *kubelet.Kubelet) error {
			return k.Unpublish(ctx, v.of(podsPerVolume, false), v.pod(podsPerVolume))
		}); code != codes.OK {
			if before.ran(v) {
				v.wrong("unpublish from a pod that never had it: %v", code)
				return
			}
			before.upset = 1
		}
	}
	v.look()
}

// look takes the mount table's word for who has the copy.
func (v *volume) look() {
	v.holder, v.readOnly = nobody, false
	shown := v.s.shown()[v.handle]
	for i := range podsPerVolume {
		for _, m := range shown {
			if m.point != v.target(i) {
				continue
			}
			if v.holder != nobody {
				v.wrong("pod %d has it, and pod %d, or it is mounted twice: %+v", i, v.holder, shown)
			}
			v.holder, v.readOnly = i, m.readOnly
			if m.isGone {
				v.wrong("pod %d has a copy that is not in the store any more", i)
			}
		}
	}
	if len(shown) > 1 {
		v.wrong("it is mounted more than once: %+v", shown)
	}
	if v.holder != nobody {
		v.recognise()
	}
}
