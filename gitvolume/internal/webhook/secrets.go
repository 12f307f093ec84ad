package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/keyedmutex"
)

const (
	// secretKey is the Secret's key.
	secretKey = "secret"
	// kept is how long what was read of a Secret counts, and keptFailure how long that it
	// could not be read: senders must not decide how often the API server is asked.
	kept        = time.Minute
	keptFailure = 5 * time.Second
)

// errNoSecret is wrapped when nobody can have signed with a Secret.
var errNoSecret = errors.New("nothing can be signed with it")

// isOutage tells that an error of get is over some time, by itself: the Secret may well be
// there. One that must not be read stays so until somebody grants it.
func isOutage(err error) bool {
	return err != nil && !errors.Is(err, errNoSecret) && !apierrors.IsForbidden(err)
}

// secrets reads Secrets one at a time by their names, and keeps them in memory for a while.
type secrets struct {
	client rest.Interface
	asking keyedmutex.Mutex // one reads a Secret, however many wait for it

	mu   sync.Mutex
	read map[secretName]readSecret
}

type readSecret struct {
	value []byte
	err   error
	until time.Time
}

// get gives what is signed with, never empty without an error. An error wraps errNoSecret
// when it is what the Secret is, or is not; another says nothing about it.
func (s *secrets) get(ctx context.Context, name secretName) ([]byte, error) {
	unlock, err := s.asking.Lock(ctx, name.String())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if had, is := s.had(name); is {
		return had.value, had.err
	}
	value, err := s.ask(ctx, name)
	lasts := kept
	if err != nil && !errors.Is(err, errNoSecret) {
		lasts = keptFailure
	}
	s.keep(name, readSecret{value: value, err: err, until: time.Now().Add(lasts)})
	return value, err
}

func (s *secrets) had(name secretName) (readSecret, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	had, is := s.read[name]
	return had, is && time.Now().Before(had.until)
}

// keep forgets what no longer counts, too: what is kept of a Secret that no volume names any
// more must go.
func (s *secrets) keep(name secretName, r readSecret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for other, had := range s.read {
		if !now.Before(had.until) {
			delete(s.read, other)
		}
	}
	if s.read == nil {
		s.read = map[secretName]readSecret{}
	}
	s.read[name] = r
}

func (s *secrets) ask(ctx context.Context, name secretName) ([]byte, error) {
	body, err := apiclient.Body(s.client.Get().Namespace(name.namespace).Resource("secrets").Name(name.name).Do(ctx))
	if apiclient.IsAbsence(err) {
		return nil, fmt.Errorf("the Secret is not there: %w", errNoSecret)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret: %w", err)
	}
	var answer struct {
		Kind string            `json:"kind"`
		Data map[string][]byte `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errors.New("read the Secret: the answer is none") // The error could repeat what is in it.
	}
	if answer.Kind != "Secret" {
		return nil, fmt.Errorf("read the Secret: the answer is a %q", answer.Kind)
	}
	value := strings.TrimSuffix(string(answer.Data[secretKey]), "\n") // As an editor leaves one.
	if value == "" {
		return nil, fmt.Errorf("the Secret's key %q is missing or empty: %w", secretKey, errNoSecret)
	}
	return []byte(value), nil
}
