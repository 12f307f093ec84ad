package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/storedir"
)

func (f *fixture) key() []byte {
	f.t.Helper()
	key, err := f.store.Key()
	f.must(err)
	if len(key) != keyLength {
		f.t.Errorf("the key has %d bytes", len(key))
	}
	return key
}

func TestTheKeyIsAsOldAsTheStore(t *testing.T) {
	f := newFixture(t)
	first := f.key()
	if bytes.Equal(first, make([]byte, keyLength)) {
		t.Error("the key is no secret")
	}
	info, err := os.Lstat(filepath.Join(f.dir, keyFile))
	f.must(err)
	if info.Mode() != 0o600 {
		t.Errorf("its file has mode %v", info.Mode())
	}
	f.restart()
	if !bytes.Equal(f.key(), first) {
		t.Error("it is another after a restart")
	}
	if other := newFixture(t).key(); bytes.Equal(other, first) {
		t.Error("two stores have one key")
	}
}

func TestADamagedKeyIsMadeAnew(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "short": "k", "long": string(make([]byte, keyLength+1))} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			first := f.key()
			f.write(content, keyFile)
			second := f.key()
			if bytes.Equal(second, first) || !bytes.Equal(f.key(), second) {
				t.Errorf("the keys are %x, %x", first, second)
			}
		})
	}
}

func TestAKeyIsReadThroughNoLink(t *testing.T) {
	f := newFixture(t)
	target := filepath.Join(t.TempDir(), "theirs")
	f.must(os.WriteFile(target, make([]byte, keyLength), 0o600))
	f.must(os.Symlink(target, filepath.Join(f.dir, keyFile)))
	_, err := f.store.Key()
	f.wants(err, storedir.ErrNotAFile)
}
