package event

import (
	"container/list"
	"crypto/sha256"
	"time"
)

// postedMost bounds the Events remembered. A sum stands for the key, so that
// each costs some hundred bytes, not its message.
const postedMost = 1000

// record is an Event the API server has.
type record struct {
	name  string
	count int
	last  time.Time
}

// posted remembers the Events posted last.
type posted struct {
	order   *list.List // of *remembered, the latest first
	records map[[sha256.Size]byte]*list.Element
}

type remembered struct {
	sum    [sha256.Size]byte
	record record
}

func newPosted() *posted {
	return &posted{order: list.New(), records: map[[sha256.Size]byte]*list.Element{}}
}

func (p *posted) get(k key) (record, bool) {
	element := p.records[k.sum()]
	if element == nil {
		return record{}, false
	}
	return element.Value.(*remembered).record, true
}

// put remembers r, and returns the record it had to forget for it when it is full.
func (p *posted) put(k key, r record) (forgotten record, full bool) {
	sum := k.sum()
	if element := p.records[sum]; element != nil {
		element.Value.(*remembered).record = r
		p.order.MoveToFront(element)
		return record{}, false
	}
	p.records[sum] = p.order.PushFront(&remembered{sum: sum, record: r})
	if p.order.Len() <= postedMost {
		return record{}, false
	}
	oldest := p.order.Remove(p.order.Back()).(*remembered)
	delete(p.records, oldest.sum)
	return oldest.record, true
}

// sum is equal for equal keys only: no part of a key holds a zero byte but an
// invalid name, which the API server refuses.
func (k key) sum() [sha256.Size]byte {
	hash := sha256.New()
	for _, part := range []string{
		k.about.Kind, k.about.APIVersion, k.about.Namespace, k.about.Name, k.about.UID,
		string(k.kind), k.reason, k.message,
	} {
		hash.Write([]byte(part))
		hash.Write([]byte{0})
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
