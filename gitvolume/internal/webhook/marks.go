package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"liken.sh/csicommon/apiclient"
)

const (
	// spacing is the least time between two marks of one volume. What is asked for in
	// between shares the next, so that a burst costs two.
	spacing = time.Second
	// atOnce is how many are made together.
	atOnce = 8
	// markTimeout bounds one.
	markTimeout = 10 * time.Second
)

// marks annotates volumes, so that their nodes pull.
type marks struct {
	client     rest.Interface
	annotation string
	made       func() // Told of each.

	slots   chan struct{}
	working sync.WaitGroup
	ending  chan struct{} // Closed: nothing waits for its spacing any more.

	mu sync.Mutex
	// next has, of each volume with a goroutine, the mark that it makes next, nil when none
	// is asked for yet.
	next map[string]*mark
}

// mark is one annotation of one volume, made after everything that asked for it.
type mark struct {
	target target
	// done is closed when err is set, nil too when there is no such volume any more.
	done chan struct{}
	err  error
}

func newMarks(client rest.Interface, annotation string, made func()) *marks {
	return &marks{
		client: client, annotation: annotation, made: made,
		slots: make(chan struct{}, atOnce), ending: make(chan struct{}), next: map[string]*mark{},
	}
}

// ask has a volume be marked, after the call. The mark may be shared.
func (m *marks) ask(t target) *mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked, isWorked := m.next[t.volume]
	if asked == nil {
		asked = &mark{target: t, done: make(chan struct{})}
		m.next[t.volume] = asked
	}
	// A volume that was made again with the name since the first was asked for is the one.
	asked.target = t
	if !isWorked {
		m.working.Go(func() { m.work(t.volume) })
	}
	return asked
}

// work makes the marks of a volume until none is asked for.
func (m *marks) work(volume string) {
	for m.isAsked(volume) {
		m.slots <- struct{}{}
		asked := m.take(volume)
		asked.err = m.make(asked.target)
		<-m.slots
		close(asked.done)
		select {
		case <-time.After(spacing):
		case <-m.ending:
		}
	}
}

// isAsked gives the volume's goroutine up when it has nothing to do.
func (m *marks) isAsked(volume string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next[volume] == nil {
		delete(m.next, volume)
		return false
	}
	return true
}

// take is the last moment to share the mark: who asks from then on shares the next.
func (m *marks) take(volume string) *mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.next[volume]
	m.next[volume] = nil
	return asked
}

// make annotates the volume with a value that it never had. The UID keeps one from being
// marked that was made again with the name, and perhaps for somebody else.
func (m *marks) make(t target) error {
	ctx, cancel := context.WithTimeout(context.Background(), markTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         t.uid,
		"annotations": map[string]string{m.annotation: time.Now().UTC().Format(time.RFC3339Nano)},
	}})
	if err != nil {
		return fmt.Errorf("mark PersistentVolume %q: %w", t.volume, err)
	}
	_, err = apiclient.Body(m.client.Patch(types.MergePatchType).Resource("persistentvolumes").Name(t.volume).Body(patch).Do(ctx))
	switch {
	case apiclient.IsAbsence(err), apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return nil // It is gone, or another by now.
	case err != nil:
		return fmt.Errorf("mark PersistentVolume %q: %w", t.volume, err)
	}
	m.made()
	return nil
}

// end waits until what was asked for is made, without any spacing, for so long at most.
func (m *marks) end(bound time.Duration) {
	close(m.ending)
	ended := make(chan struct{})
	go func() { m.working.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(bound):
	}
}
