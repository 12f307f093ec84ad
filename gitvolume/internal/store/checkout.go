package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/storedir"
)

// checkoutKeyLength is how many hexadecimal digits a checkout's key has.
const checkoutKeyLength = 2 * nameBytes

// CheckoutKey is the key of the checkout that a sum stands for: its first digits.
func CheckoutKey(sum [32]byte) string { return fmt.Sprintf("%x", sum[:nameBytes]) }

func isCheckoutKey(key string) bool {
	return len(key) == checkoutKeyLength && strings.Trim(key, "0123456789abcdef") == ""
}

// CheckoutDir is the path of a checkout's directory, whether or not it exists. What is in
// it is its user's.
func (s *Store) CheckoutDir(key string) string { return s.path(checkoutsDir, key) }

// MakeCheckout makes a checkout's directory, if there is none. The volume whose record
// names it has that saved before.
func (s *Store) MakeCheckout(key string) error {
	parent := s.dir.Part(checkoutsDir)
	// A disk mounted over the store since would hide the checkout at the next start.
	if err := storedir.StillAt(parent); err != nil {
		return fmt.Errorf("make the checkout %s: %w: %w", key, ErrStore, err)
	}
	s.step("make checkout")
	err := unix.Mkdirat(int(parent.Fd()), key, storedir.Mode)
	if err == nil {
		err = parent.Sync()
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make the checkout %s: %w", key, err)
	}
	return nil
}

// Checkouts are the keys of all checkouts.
func (s *Store) Checkouts() ([]string, error) {
	names, err := storedir.Names(s.dir.Part(checkoutsDir))
	if err != nil {
		return nil, fmt.Errorf("list the checkouts: %w", err)
	}
	var keys []string
	for _, name := range names {
		if isCheckoutKey(name) {
			keys = append(keys, name)
		}
	}
	return keys, nil
}

// RemoveCheckout has a checkout deleted in the background. The caller knows that nobody
// needs it. That there is none is no error.
func (s *Store) RemoveCheckout(key string) error {
	s.step("trash checkout")
	err := s.now.Put(s.dir.Part(checkoutsDir), key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the checkout %s: %w", key, err)
	}
	s.AskTidy()
	return nil
}
