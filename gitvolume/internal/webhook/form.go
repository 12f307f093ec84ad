package webhook

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
)

// formPayload is the field of a form that has the JSON.
const formPayload = "payload"

var errNoPayload = errors.New("it is neither JSON nor a form with a payload")

// payloadOf gives the JSON of a request as it comes, which GitHub and Gitea can also send in
// a form, as its payload. What only says that it is a form, as curl and wget do of all that
// they post, is taken as it is.
func payloadOf(header http.Header, body io.Reader) (io.Reader, error) {
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		return body, nil
	}
	in := bufio.NewReader(body)
	for {
		c, err := in.ReadByte()
		if err != nil {
			return nil, errors.Join(errNoPayload, notEOF(err))
		}
		if isSpace(c) {
			continue
		}
		if err := in.UnreadByte(); err != nil {
			return nil, err
		}
		if c == '{' {
			return in, nil
		}
		return fieldOf(in)
	}
}

// fieldOf gives the value of the field that has the JSON.
func fieldOf(in *bufio.Reader) (io.Reader, error) {
	for {
		name, end, err := fieldName(in)
		switch {
		case err != nil:
			return nil, errors.Join(errNoPayload, notEOF(err))
		case end == '&':
			continue
		case name == formPayload:
			return &formValue{in}, nil
		}
		if _, err := io.Copy(io.Discard, &formValue{in}); err != nil {
			return nil, err
		}
	}
}

// fieldName reads a name and what ends it. Of a long name only the start is kept.
func fieldName(in *bufio.Reader) (name string, end byte, err error) {
	for {
		c, err := in.ReadByte()
		if err != nil || c == '=' || c == '&' {
			return name, c, err
		}
		if len(name) <= len(formPayload) {
			name += string(rune(c))
		}
	}
}

// formValue decodes the value of a field as it comes, to its end.
type formValue struct{ in *bufio.Reader }

func (f *formValue) Read(p []byte) (int, error) {
	for n := range p {
		c, err := f.in.ReadByte()
		switch {
		case err != nil:
			return n, err
		case c == '&':
			// It stays, for who reads the next field.
			if err := f.in.UnreadByte(); err != nil {
				return n, err
			}
			return n, io.EOF
		case c == '+':
			c = ' '
		case c == '%':
			if c, err = f.escaped(); err != nil {
				return n, err
			}
		}
		p[n] = c
	}
	return len(p), nil
}

// escaped reads the two digits of an escape.
func (f *formValue) escaped() (byte, error) {
	digits := make([]byte, 2)
	if _, err := io.ReadFull(f.in, digits); err != nil {
		return 0, errors.Join(errors.New("the form ends in an escape"), notEOF(err))
	}
	c, err := strconv.ParseUint(string(digits), 16, 8)
	if err != nil {
		return 0, errors.New("the form has an escape that is none")
	}
	return byte(c), nil
}

// notEOF is nil for an end, which is told in other words.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
