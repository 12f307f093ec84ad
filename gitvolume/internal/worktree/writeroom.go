package worktree

import "io"

const (
	// askedEvery is how much is written between two questions for room, in bytes, and
	// perEntry what a file or directory takes besides its content, about.
	askedEvery = 1 << 20
	perEntry   = 4 << 10
)

// spend asks for room, if enough was written since it did the last time.
func (w *writer) spend(n int64) error {
	if w.spent += n; w.room == nil || w.spent < askedEvery {
		return nil
	}
	w.spent = 0
	return w.room()
}

// spender writes what there is room for.
type spender struct {
	*writer
	to io.Writer
}

// Write implements io.Writer.
func (s spender) Write(p []byte) (int, error) {
	if err := s.spend(int64(len(p))); err != nil {
		return 0, err
	}
	return s.to.Write(p)
}
