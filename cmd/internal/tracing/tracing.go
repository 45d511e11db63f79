// Package tracing sends the spans of a command to a collector, by OTLP over HTTP. The environment
// variables of OpenTelemetry name the collector. Without them the package does nothing.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/curfew-dev/curfew/queue"
)

// flushFor bounds how long the end of a command waits for the collector.
const flushFor = time.Second

// Export is the spans of a command on their way to a collector.
type Export struct {
	provider *sdk.TracerProvider
	config   queue.Tracing
}

// Start returns nil if the environment names no collector. endless is for a command that runs until it is interrupted: it
// sends spans again that the collector did not take. A variable that it cannot use is an error. Trouble with the collector
// is logged once.
func Start(ctx context.Context, endless bool, logger *slog.Logger) (*Export, error) {
	if wanted, err := wanted(); !wanted || err != nil {
		return nil, err
	}
	parent, err := boolean("CURFEW_TRACE_PARENT")
	if err != nil {
		return nil, err
	}
	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		once.Do(func() {
			logger.Warn("Spans are lost: the collector did not take them; tasks are not affected", "error", err)
		})
	}))
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: endless, InitialInterval: time.Second,
		MaxInterval: 10 * time.Second, MaxElapsedTime: 30 * time.Second}))
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", "curfew")), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return &Export{provider: provider, config: queue.Tracing{Provider: provider, Parent: parent}}, nil
}

// wanted reports whether the environment asks for spans.
func wanted() (bool, error) {
	if off, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); off {
		return false, nil
	}
	switch kind := os.Getenv("OTEL_TRACES_EXPORTER"); kind {
	case "otlp":
	case "none":
		return false, nil
	case "":
		if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
			return false, nil
		}
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: set it to otlp or none", kind)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return false, fmt.Errorf("%s is %q: set it to http/protobuf, and the endpoint to the port of OTLP over HTTP, usually 4318", name, protocol)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		if to, err := url.Parse(text); err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
			return false, errors.New(name + " is not a URL: write one such as http://127.0.0.1:4318") // it is not quoted: it can have a password
		}
	}
	return true, nil
}

func boolean(name string) (bool, error) {
	text := os.Getenv(name)
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s is %q: set it to true or false", name, text)
	}
	return value, nil
}

// Tracing returns the setting of a namespace whose spans are sent.
func (e *Export) Tracing() queue.Tracing {
	if e == nil {
		return queue.Tracing{}
	}
	return e.config
}

// Context returns ctx with the span that the environment names, as curfew work does for the commands that it runs.
func (e *Export) Context(ctx context.Context) context.Context {
	if e == nil {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	for _, name := range []string{"traceparent", "tracestate"} {
		carrier[name] = os.Getenv(strings.ToUpper(name))
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// End sends the remaining spans, and waits a second for that at most.
func (e *Export) End() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushFor)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}
