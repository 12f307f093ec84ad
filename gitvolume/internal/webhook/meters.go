package webhook

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// result is what became of a request, as the label of its metric.
type result string

const (
	accepted result = "accepted"  // 202
	refused  result = "refused"   // 401 and 405
	heldBack result = "held"      // 401 too, and verified later
	notPush  result = "not_push"  // 400
	tooLarge result = "too_large" // 413
	tooSlow  result = "too_slow"  // 408
	unread   result = "failed"    // 500
)

// meters are the metrics of the webhook.
type meters struct {
	requests, marks metric.Int64Counter
}

func newMeters(meter metric.Meter) (*meters, error) {
	requests, err := meter.Int64Counter("git_csi_webhook_requests_total", metric.WithDescription("Requests of forges, and of others."))
	if err != nil {
		return nil, fmt.Errorf("make the instruments: %w", err)
	}
	marks, err := meter.Int64Counter("git_csi_webhook_marked_total", metric.WithDescription("Volumes that were marked to pull."))
	if err != nil {
		return nil, fmt.Errorf("make the instruments: %w", err)
	}
	m := &meters{requests: requests, marks: marks}
	// An alert on what never happened before needs the 0.
	for _, r := range []result{accepted, refused, heldBack, notPush, tooLarge, tooSlow, unread} {
		m.add(r, 0)
	}
	marks.Add(context.Background(), 0)
	return m, nil
}

func (m *meters) requested(r result) { m.add(r, 1) }

func (m *meters) add(r result, count int64) {
	m.requests.Add(context.Background(), count, metric.WithAttributes(attribute.String("result", string(r))))
}

func (m *meters) marked() { m.marks.Add(context.Background(), 1) }
