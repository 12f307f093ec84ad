package usage

import (
	"context"
	"fmt"

	"liken.sh/csicommon/keyedmutex"
)

// Questions are those about the space of file systems whose disks may hang. The kubelet
// asks every minute: while a disk hangs, one question about each volume on it waits. The
// zero Questions are none.
type Questions struct{ asked keyedmutex.Mutex }

// Space gives what ask returns for a volume, which may hang. The error wraps ctx's own when
// that ends before the disk has answered, this question or the one before.
func (q *Questions) Space(ctx context.Context, volume string, ask func() (Space, error)) (Space, error) {
	unlock, err := q.asked.Lock(ctx, volume)
	if err != nil {
		return Space{}, err
	}
	type answer struct {
		space Space
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		defer unlock()
		space, err := ask()
		answered <- answer{space, err}
	}()
	select {
	case a := <-answered:
		return a.space, a.err
	case <-ctx.Done():
		return Space{}, fmt.Errorf("the disk of volume %q does not answer: %w", volume, ctx.Err())
	}
}
