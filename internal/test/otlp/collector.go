// Package otlp has an OTLP collector for tests.
package otlp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector takes spans by OTLP over HTTP, and keeps them.
type Collector struct {
	*httptest.Server
	t     *testing.T
	mu    sync.Mutex
	spans []*tracepb.Span
}

// New starts a Collector, which is closed at the end of the test.
func New(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{t: t}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

func (c *Collector) take(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil { // of a process that was killed
		return
	}
	var request collect.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil || r.URL.Path != "/v1/traces" {
		c.t.Errorf("a request to %s: %v", r.URL.Path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// Spans returns the spans so far.
func (c *Collector) Spans() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Named returns the first span with a name, which must have come.
func (c *Collector) Named(name string) *tracepb.Span {
	c.t.Helper()
	var names []string
	for _, span := range c.Spans() {
		if span.Name == name {
			return span
		}
		names = append(names, span.Name)
	}
	c.t.Fatalf("the collector has %q, and no %q", names, name)
	return nil
}
