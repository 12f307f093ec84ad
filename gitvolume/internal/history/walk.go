package history

import (
	"container/heap"
	"errors"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// The sides that a walk comes from, and whether what it found is below a common commit.
const (
	first side = 1 << iota
	second
	below

	both = first | second
)

type side uint8

// walk goes back from two commits until all that it could still come to is common to
// both. It takes the newest first, which is only for speed: dates may run backwards
// (C40). libgit2's own walk is not used, because it reads loose objects (see loose).
type walk struct {
	repository *Repository
	seen       map[object.ID]*met
	next       queue
	open       int         // How many in next are not below a common commit.
	bases      []object.ID // Common commits; some may be below others.
	cut        error       // ErrShallow, if the walk ended at commits that are not there.
}

// met is a commit that a walk has come to.
type met struct {
	id      object.ID
	when    time.Time
	parents []object.ID
	sides   side
	waiting int // How often it is in next.
	common  bool
}

// meet walks from two commits.
func (r *Repository) meet(a, b object.ID) (*walk, error) {
	w := &walk{repository: r, seen: map[object.ID]*met{}}
	if err := w.mark(a, first); err != nil {
		return nil, err
	}
	if err := w.mark(b, second); err != nil {
		return nil, err
	}
	for w.open > 0 {
		at, _ := heap.Pop(&w.next).(*met)
		at.waiting--
		if at.sides&below == 0 {
			w.open--
		}
		sides := at.sides
		if sides&both == both {
			if !at.common && sides&below == 0 {
				at.common = true
				w.bases = append(w.bases, at.id)
			}
			sides |= below
		}
		for _, parent := range at.parents {
			if err := w.follow(parent, sides); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// follow marks a parent. One that a shallow fetch left out ends the walk there, and may
// have been what was looked for unless it is below a common commit.
func (w *walk) follow(parent object.ID, sides side) error {
	err := w.mark(parent, sides)
	if err == nil {
		return nil
	}
	cut := w.repository.cutOff(err)
	if !errors.Is(cut, ErrShallow) {
		return err
	}
	if sides&below == 0 {
		w.cut = cut
	}
	return nil
}

// mark notes that a commit was come to from these sides, and has it walked from if
// that is news.
func (w *walk) mark(id object.ID, sides side) error {
	at := w.seen[id]
	if at == nil {
		d, err := w.repository.Describe(id)
		if err != nil {
			return err
		}
		at = &met{id: id, when: d.Committer.When, parents: d.Parents}
		w.seen[id] = at
	}
	if at.sides&sides == sides {
		return nil
	}
	if at.sides&below == 0 && sides&below != 0 {
		w.open -= at.waiting
	}
	at.sides |= sides
	if at.sides&below == 0 {
		w.open++
	}
	at.waiting++
	heap.Push(&w.next, at)
	return nil
}

// queue has the newest commit on top.
type queue []*met

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].when.After(q[j].when) }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { at, _ := x.(*met); *q = append(*q, at) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	at := (*q)[last]
	*q = (*q)[:last]
	return at
}
