package server

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// observer stands around every call: it recovers a panic, translates the error,
// times the call and logs it once.
type observer struct {
	driver  string
	codes   []Code
	seconds metric.Float64Histogram
	hide    func(value string) string
	log     *slog.Logger
}

func newObserver(config Config) (*observer, error) {
	seconds, err := config.Meter.Float64Histogram("csi_plugin_operations_seconds",
		metric.WithDescription("Time a CSI call took, in seconds."),
		metric.WithExplicitBucketBoundaries(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300))
	if err != nil {
		return nil, fmt.Errorf("make the histogram of CSI calls: %w", err)
	}
	return &observer{
		driver:  config.Driver,
		codes:   append(append([]Code{}, config.Codes...), common()...),
		seconds: seconds,
		hide:    config.Hide,
		log:     config.Log,
	}, nil
}

func (o *observer) intercept(ctx context.Context, request any, call *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	start := time.Now()
	response, err := o.recovered(ctx, request, call, handler)
	err = toStatus(o.codes, err)
	took := time.Since(start)
	code := status.Code(err)
	// The context may have ended with the call; the figure counts all the same.
	o.seconds.Record(context.WithoutCancel(ctx), took.Seconds(), metric.WithAttributes(
		attribute.String("driver_name", o.driver),
		attribute.String("method_name", call.FullMethod),
		attribute.String("grpc_status_code", code.String())))
	o.logCall(ctx, request, call.FullMethod, err, took)
	return response, err
}

func (o *observer) recovered(ctx context.Context, request any, call *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			o.log.ErrorContext(ctx, "a call panicked", "method", call.FullMethod, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			response, err = nil, status.Errorf(codes.Internal, "%s panicked, the plugin's log has the stack", path.Base(call.FullMethod))
		}
	}()
	return handler(ctx, request)
}

func (o *observer) logCall(ctx context.Context, request any, method string, err error, took time.Duration) {
	level := successLevel(path.Base(method))
	attributes := []slog.Attr{
		slog.String("method", method),
		slog.String("code", status.Code(err).String()),
		slog.Duration("duration", took),
	}
	if err != nil {
		level = slog.LevelWarn
		attributes = append(attributes, slog.String("error", status.Convert(err).Message()))
	}
	if !o.log.Enabled(ctx, level) {
		return
	}
	attributes = append(attributes, slog.String("request", protosanitizer.StripSecrets(o.hidden(request)).String()))
	o.log.LogAttrs(ctx, level, "served a call", attributes...)
}

// hidden is a request without what its author wrote where no secret belongs: the volume
// context is no secret to CSI, and somebody's URL has a password in it.
func (o *observer) hidden(request any) any {
	type withContext interface {
		proto.Message
		GetVolumeContext() map[string]string
	}
	given, has := request.(withContext)
	if !has || o.hide == nil {
		return request
	}
	shown := proto.CloneOf(given)
	context := shown.GetVolumeContext()
	for key, value := range context {
		context[key] = o.hide(value)
	}
	return shown
}

// successLevel keeps what is polled out of the log: probes and capabilities, and
// the kubelet's round of every volume each minute.
func successLevel(method string) slog.Level {
	switch method {
	case "Probe", "GetPluginInfo", "GetPluginCapabilities",
		"NodeGetCapabilities", "ControllerGetCapabilities",
		"NodeGetVolumeStats", "NodeGetVolumeHealth":
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
