package history

import (
	"encoding/binary"
	"slices"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// A replayed commit's directory differs from that of the commit before by a few entries,
// and both come into one pack: there the second is a delta of the first, or a directory of
// a thousand entries would be written anew with each commit below it.
const (
	// maxDeltas is how many deltas of deltas there are, as many as git itself makes:
	// who reads the last reads all of them.
	maxDeltas = 50
	maxCopy   = 0x10000 // Bytes that one command of a delta copies, in a pack of any version.
	maxInsert = 0x7f    // Bytes that one holds.
)

// putTreeOver is putTree of a directory that was made from another one, whose id and
// entries are given. Until it is flushed it is better not read, which flushes it.
func (r *Repository) putTreeOver(nodes []node, base object.ID, of []node) (object.ID, error) {
	nodes, of = inTreeOrder(nodes), inTreeOrder(of)
	content := treeContent(nodes)
	// Its entries were looked at when they were committed or fetched, see verify.
	id := sumOf(git.ObjectTree, content)
	there, err := r.makeRoom(id, len(content))
	if err != nil || there {
		return id, err
	}
	// Another one than that of these entries, as a stranger's that has a name twice, is
	// not of their size.
	if e, ok := r.pending.objects[base]; ok && e.deltas < maxDeltas && e.size == rawSize(of) {
		if delta := treeDelta(of, nodes); len(delta) < len(content)/2 {
			return id, r.pending.addDelta(id, git.ObjectTree, len(content), e, delta)
		}
	}
	return id, r.pending.add(id, git.ObjectTree, content)
}

// treeDelta is how a tree's content is made of another's, in git's format: of copies of
// parts of it, and of bytes. Both are in the order of a tree.
func treeDelta(from, to []node) []byte {
	d := delta{out: binary.AppendUvarint(binary.AppendUvarint(nil, uint64(rawSize(from))), uint64(rawSize(to)))}
	at := 0 // Where the next of from stands.
	for _, n := range to {
		for len(from) > 0 && compareNodes(from[0], n) < 0 {
			at, from = at+len(from[0].raw), from[1:]
		}
		if len(from) == 0 || string(from[0].raw) != string(n.raw) {
			d.insert(n.raw)
			continue
		}
		d.copy(at, len(n.raw))
		at, from = at+len(n.raw), from[1:]
	}
	d.end()
	return d.out
}

// delta is a delta that is being made.
type delta struct {
	out       []byte
	at, count int    // What is to be copied next,
	literal   []byte // or to be inserted.
}

func (d *delta) copy(at, count int) {
	if len(d.literal) > 0 || d.at+d.count != at {
		d.end()
		d.at = at
	}
	d.count += count
}

func (d *delta) insert(content []byte) {
	if d.count > 0 {
		d.end()
	}
	d.literal = append(d.literal, content...)
}

// end writes what was collected.
func (d *delta) end() {
	for part := range slices.Chunk(d.literal, maxInsert) {
		d.out = append(append(d.out, byte(len(part))), part...)
	}
	for d.count > 0 {
		n := min(d.count, maxCopy)
		d.command(d.at, n)
		d.at, d.count = d.at+n, d.count-n
	}
	d.literal = d.literal[:0]
}

// command writes a copy: those bytes of its place and of its size, the lowest first, that
// are not zero, after one that tells which they are. The size without any is the greatest.
func (d *delta) command(at, count int) {
	which := len(d.out)
	d.out = append(d.out, 0x80)
	for i := range 6 {
		b := byte(at >> (8 * i))
		if i >= 4 {
			b = byte(count & (maxCopy - 1) >> (8 * (i - 4)))
		}
		if b != 0 {
			d.out[which] |= 1 << i
			d.out = append(d.out, b)
		}
	}
}
