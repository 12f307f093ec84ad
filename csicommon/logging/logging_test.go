package logging_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"liken.sh/csicommon/logging"
)

func TestNew(t *testing.T) {
	var out bytes.Buffer
	log, err := logging.New(&out, "warn", "json")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("too quiet")
	log.Warn("heard", "volume", "h1")
	klog.Background().Error(nil, "from a library")
	got := out.String()
	if strings.Contains(got, "too quiet") || !strings.Contains(got, `"volume":"h1"`) || !strings.Contains(got, "from a library") {
		t.Errorf("log:\n%s", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, row := range []struct {
		level, format string
		want          error
	}{
		{"loud", "text", logging.ErrLevel},
		{"", "text", logging.ErrLevel},
		{"info+1", "text", logging.ErrLevel},
		{"info", "xml", logging.ErrFormat},
	} {
		if _, err := logging.New(&bytes.Buffer{}, row.level, row.format); !errors.Is(err, row.want) {
			t.Errorf("New(%q, %q) = %v, want %v", row.level, row.format, err, row.want)
		}
	}
}
