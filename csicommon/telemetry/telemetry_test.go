package telemetry_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"

	"liken.sh/csicommon/httplistener"
	"liken.sh/csicommon/telemetry"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func newTelemetry(t *testing.T, endpoint string) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(), telemetry.Config{Service: "test.liken.sh", OTLPEndpoint: endpoint, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

func TestAScrapeShowsNamesAsWritten(t *testing.T) {
	tel := newTelemetry(t, "")
	counter, err := tel.Meter().Int64Counter("test_removed_total", metric.WithUnit("By"))
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 3)
	gauge, err := tel.Meter().Int64ObservableGauge("test_copy_bytes")
	if err != nil {
		t.Fatal(err)
	}
	volumes := 3000 // beyond the SDK's default limit of 2,000 sets
	if _, err := tel.Meter().RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i := range volumes {
			o.ObserveInt64(gauge, 1, metric.WithAttributes(attribute.Int("volume", i)))
		}
		return nil
	}, gauge); err != nil {
		t.Fatal(err)
	}
	listener, err := telemetry.Listen("127.0.0.1:0", tel.Handler(), healthy, healthy)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = listener.Serve(t.Context()) }()
	_, body := get(t, "http://"+listener.Address()+"/metrics")
	if !strings.Contains(body, "\ntest_removed_total 3\n") {
		t.Errorf("no series test_removed_total without labels:\n%.500s", body)
	}
	if n := strings.Count(body, "\ntest_copy_bytes{volume="); n != volumes {
		t.Errorf("%d series of %d volumes", n, volumes)
	}
	for _, added := range []string{"otel_scope", "target_info", "overflow"} {
		if strings.Contains(body, added) {
			t.Errorf("%q is in the scrape", added)
		}
	}
	volumes = 1
	if _, body := get(t, "http://"+listener.Address()+"/metrics"); strings.Count(body, "\ntest_copy_bytes{volume=") != 1 {
		t.Error("series of volumes that are gone are still exposed")
	}
}

// stuckTelemetry has a figure that cannot be found out before release is closed.
func stuckTelemetry(t *testing.T) (tel *telemetry.Telemetry, release chan struct{}) {
	t.Helper()
	tel, release = newTelemetry(t, ""), make(chan struct{})
	_, err := tel.Meter().Int64ObservableGauge("test_free_bytes", metric.WithInt64Callback(
		func(context.Context, metric.Int64Observer) error { <-release; return nil }))
	if err != nil {
		t.Fatal(err)
	}
	return tel, release
}

func TestScrapesAreBounded(t *testing.T) {
	tel, release := stuckTelemetry(t)
	scrape, answers := tel.Handler(), make(chan *httptest.ResponseRecorder)
	const scrapes = 20
	var scraping sync.WaitGroup
	for range scrapes {
		scraping.Go(func() {
			answer := httptest.NewRecorder()
			scrape.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			answers <- answer
		})
	}
	for range scrapes - 4 { // four may run
		answer := <-answers
		if body := answer.Body.String(); answer.Code != http.StatusServiceUnavailable || !strings.Contains(body, "concurrent") {
			t.Errorf("a scrape beyond the bound was answered %d %q", answer.Code, body)
		}
	}
	close(release)
	go func() { scraping.Wait(); close(answers) }()
	for answer := range answers {
		if answer.Code != http.StatusOK {
			t.Errorf("a scrape within the bound was answered %d", answer.Code)
		}
	}
}

func TestAStuckFigureEndsTheScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel, release := stuckTelemetry(t)
		start, answer := time.Now(), httptest.NewRecorder()
		tel.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if took := time.Since(start); answer.Code != http.StatusServiceUnavailable || took > 10*time.Second {
			t.Errorf("answered %d after %v", answer.Code, took)
		}
		close(release)
	})
}

func healthy(context.Context) error { return nil }

func TestChecks(t *testing.T) {
	tel := newTelemetry(t, "")
	listener, err := telemetry.Listen("127.0.0.1:0", tel.Handler(), healthy,
		func(context.Context) error { return errors.New("the kubelet refused the plugin: why") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- listener.Serve(ctx) }()
	if code, body := get(t, "http://"+listener.Address()+"/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz = %d %q", code, body)
	}
	if code, body := get(t, "http://"+listener.Address()+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "refused the plugin: why") {
		t.Errorf("/readyz = %d %q", code, body)
	}
	if _, err := telemetry.Listen(listener.Address(), tel.Handler(), healthy, healthy); !errors.Is(err, httplistener.ErrListen) {
		t.Errorf("a taken port: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

// receiver is an OTLP collector.
type receiver struct {
	collector.UnimplementedMetricsServiceServer
	mu    sync.Mutex
	names []string
}

func (r *receiver) Export(_ context.Context, request *collector.ExportMetricsServiceRequest) (*collector.ExportMetricsServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range request.GetResourceMetrics() {
		for _, scope := range resource.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				r.names = append(r.names, m.GetName())
			}
		}
	}
	return &collector.ExportMetricsServiceResponse{}, nil
}

func TestOTLPIsPushed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, sink := grpc.NewServer(), &receiver{}
	collector.RegisterMetricsServiceServer(server, sink)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	for _, endpoint := range []string{listener.Addr().String(), "http://" + listener.Addr().String()} {
		tel := newTelemetry(t, endpoint)
		counter, err := tel.Meter().Int64Counter("test_removed_total")
		if err != nil {
			t.Fatal(err)
		}
		counter.Add(t.Context(), 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := tel.Shutdown(ctx); err != nil { // pushes what is pending
			t.Errorf("push to %q: %v", endpoint, err)
		}
		cancel()
	}
	if got := strings.Join(sink.names, " "); got != "test_removed_total test_removed_total" {
		t.Errorf("the collector got %q", got)
	}
}

func TestBadOTLPEndpoint(t *testing.T) {
	for _, endpoint := range []string{"collector", "ftp://collector:4317", "ftp://x", "host:", "host:grpc", "http://"} {
		_, err := telemetry.New(t.Context(), telemetry.Config{OTLPEndpoint: endpoint})
		if !errors.Is(err, telemetry.ErrEndpoint) {
			t.Errorf("%q: %v, want ErrEndpoint", endpoint, err)
		}
	}
}
