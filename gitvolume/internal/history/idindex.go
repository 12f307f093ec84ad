package history

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"sort"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/object"
)

// idIndex is a pack's index, of version 2, in memory that the kernel can take back. Its
// zero value knows no object.
type idIndex struct{ mapped []byte }

// Where what is in an index.
const (
	indexFan = 8                 // 256 numbers: how many ids begin with a byte or a lower one.
	indexIDs = 8 + 256*4         // The ids, sorted.
	perID    = object.IDSize + 8 // With each a checksum and an offset.
)

// openIDs maps an index. One that cannot be read, as one emptied by a power cut, knows no
// objects.
func openIDs(path string) idIndex {
	file, err := os.Open(path)
	if err != nil {
		return idIndex{}
	}
	defer file.Close() // The mapping stays.
	info, err := file.Stat()
	if err != nil || info.Size() < indexIDs {
		return idIndex{}
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return idIndex{}
	}
	x := idIndex{mapped}
	// What is read beyond the end of a file ends the process.
	if string(mapped[:indexFan]) != indexMagic || info.Size() < indexIDs+int64(x.upTo(255))*perID {
		x.close()
		return idIndex{}
	}
	return x
}

// upTo is how many ids begin with the byte or a lower one.
func (x idIndex) upTo(first int) int {
	if first < 0 {
		return 0
	}
	return int(binary.BigEndian.Uint32(x.mapped[indexFan+4*first:]))
}

// offset is where the id's object stands in the pack.
func (x idIndex) offset(id object.ID) (offset int64, ok bool) {
	if x.mapped == nil {
		return 0, false
	}
	low, high, count := x.upTo(int(id[0])-1), x.upTo(int(id[0])), x.upTo(255)
	if low > high || high > count {
		return 0, false
	}
	at := func(i int) []byte { return x.mapped[indexIDs+(low+i)*object.IDSize:][:object.IDSize] }
	i := sort.Search(high-low, func(i int) bool { return bytes.Compare(at(i), id[:]) >= 0 })
	if i == high-low || !bytes.Equal(at(i), id[:]) {
		return 0, false
	}
	small := binary.BigEndian.Uint32(x.mapped[indexIDs+count*(object.IDSize+4)+(low+i)*4:])
	if small <= math.MaxInt32 {
		return int64(small), true
	}
	// Those above 2 GiB stand behind, and this is the place of one.
	large := indexIDs + count*perID + int(small&math.MaxInt32)*8
	if large+8 > len(x.mapped) {
		return 0, false
	}
	offset = int64(binary.BigEndian.Uint64(x.mapped[large:]))
	return offset, offset > 0
}

func (x idIndex) close() {
	if x.mapped != nil {
		_ = unix.Munmap(x.mapped) // It fails for what is no mapping.
	}
}
