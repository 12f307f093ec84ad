package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"liken.sh/csicommon/durable"
	"liken.sh/csicommon/storedir"
)

const (
	keyFile = "key"
	// keyLength is in bytes.
	keyLength = 32
)

// Key is the store's secret, made of random bytes when it is first asked for: by it
// digests of credentials are made, which then tell nothing to whoever reads the records.
// It is as old as the store, so that a digest of an earlier process is known again.
func (s *Store) Key() ([]byte, error) {
	key, err := storedir.ReadFile(s.dir.Dir(), keyFile, keyLength)
	isWrong := err == nil && len(key) != keyLength || errors.Is(err, storedir.ErrTooLong)
	switch {
	case isWrong:
		// What was shown by the old one is fetched again before it is shown.
		s.settings.Log.Warn("the store's key is damaged and is made anew", "path", s.path(keyFile))
	case err == nil:
		return key, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the store's key: %w", err)
	}
	return s.makeKey()
}

func (s *Store) makeKey() ([]byte, error) {
	key := make([]byte, keyLength)
	_, _ = rand.Read(key) // It never fails.
	if err := durable.Replace(s.path(keyFile), key, 0o600); err != nil {
		return nil, fmt.Errorf("make the store's key: %w", err)
	}
	return key, nil
}
