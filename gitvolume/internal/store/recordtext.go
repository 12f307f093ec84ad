package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"liken.sh/csicommon/handle"
)

// recordVersion is of the form that this code writes. A higher one says things that this
// code would drop when it writes the record again.
const recordVersion = 1

var (
	// ErrNoRecord says that there is no record of the volume.
	ErrNoRecord = errors.New("the store has no record of the volume")
	// ErrDamagedRecord says that a record cannot be used. It was set aside, and the volume
	// has none.
	ErrDamagedRecord = errors.New("the volume's record is damaged")
	// ErrNewerRecord says that a later release wrote the record, which is left alone.
	ErrNewerRecord = errors.New("the volume's record is of a later release")
	// ErrRecord says that a record says what none can.
	ErrRecord = errors.New("no record can say that")
)

// recordText is a record as it is written.
type recordText struct {
	Version int `json:"version"`
	Record
}

func formatRecord(r Record) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false) // A person reads it.
	to.SetIndent("", "  ")
	if err := to.Encode(recordText{Version: recordVersion, Record: r}); err != nil {
		return nil, fmt.Errorf("write the record: %w", err)
	}
	return text.Bytes(), nil
}

// parseRecord reads what formatRecord wrote for the volume. The error is ErrNewerRecord
// or ErrDamagedRecord.
func parseRecord(volume string, text []byte) (Record, error) {
	var versioned struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &versioned); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrDamagedRecord, err)
	}
	if versioned.Version > recordVersion {
		return Record{}, fmt.Errorf("%w: it has version %d, this one knows versions up to %d: run the release that wrote it, or a later one",
			ErrNewerRecord, versioned.Version, recordVersion)
	}
	var read recordText
	err := json.Unmarshal(text, &read)
	switch {
	case err != nil:
	case read.Version < 1:
		err = fmt.Errorf("its version is %d", read.Version)
	case read.Handle != volume:
		err = fmt.Errorf("it is that of volume %.300q", read.Handle)
	default:
		err = read.check()
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrDamagedRecord, err)
	}
	return read.Record, nil
}

// check tells what is wrong with a record, before it is written and after it was read.
func (r Record) check() error {
	if err := handle.Check(r.Handle); err != nil {
		return err
	}
	var rule string
	switch {
	case r.Kind != Inline && r.Kind != ReadOnly && r.Kind != Writeable:
		rule = fmt.Sprintf("its kind is %.60q, not %s, %s or %s", string(r.Kind), Inline, ReadOnly, Writeable)
	case r.URL.IsZero():
		rule = "it has no URL"
	case r.Ref == "":
		rule = "it has no ref"
	case r.Depth < 0, r.Depth > 0 && r.Kind == Writeable:
		rule = fmt.Sprintf("its depth is %d", r.Depth)
	case !utf8.ValidString(r.URL.String() + r.Ref + r.PV + r.Claim.text() + r.Reclaim + r.Class.Name):
		rule = "it has bytes that are no UTF-8"
	default:
		rule = cmp.Or(r.brokenTargetRule(), r.Position.brokenRule(), r.brokenReadingRule())
	}
	if rule != "" {
		return fmt.Errorf("record of volume %q: %s: %w", r.Handle, rule, ErrRecord)
	}
	return nil
}

func (r Record) brokenTargetRule() string {
	seen := make(map[string]bool, len(r.Targets))
	for _, target := range r.Targets {
		switch {
		case !filepath.IsAbs(target.Path):
			return fmt.Sprintf("its target %q is no absolute path", target.Path)
		case seen[target.Path]:
			return fmt.Sprintf("its target %q is there twice", target.Path)
		case !utf8.ValidString(target.Path + target.Pod.text()):
			return "a target of it has bytes that are no UTF-8"
		}
		seen[target.Path] = true
	}
	return ""
}

func (p Position) brokenRule() string {
	switch {
	case p.Move == nil:
	case p.Move.Token == "" || !utf8.ValidString(p.Move.Token):
		return "its move has no token"
	case p.Move.Then.Move != nil:
		return "its move ends with another move"
	}
	return ""
}

func (r Record) brokenReadingRule() string {
	switch {
	case r.Reading == nil:
	case r.Kind == Writeable:
		return "it is writeable and shows a checkout"
	case !isCheckoutKey(r.Reading.Checkout):
		return fmt.Sprintf("its checkout is %.60q", r.Reading.Checkout)
	case r.Reading.Commit.IsZero():
		return "it shows no commit"
	case !utf8.ValidString(r.Reading.Pull + r.Reading.Offline + r.Reading.Scope):
		return "what it shows has bytes that are no UTF-8"
	}
	return ""
}

func (o Object) text() string { return o.Namespace + o.Name + o.UID }
