package telemetry

import (
	"encoding/hex"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// attribute returns a text of a span.
func attribute(s *tracepb.Span, name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// ofSpans counts timeouts by the spans "expire" and attempts by the spans "process".
func ofSpans(spans []*tracepb.Span) ledger {
	l := ledger{}
	for _, s := range spans {
		id, queue, kind := attribute(s, "messaging.message.id"), attribute(s, "messaging.destination.name"), attribute(s, "curfew.task.kind")
		switch attribute(s, "messaging.operation.name") {
		case "expire":
			l.add(1, "timeout", queue, kind, attribute(s, "curfew.timeout.type"))
			l.add(1, "timeout-of", id)
		case "process":
			l.add(1, "ran", queue, kind)
			l.add(1, "ran-of", id)
		}
	}
	return l
}

// checkLinks checks that the parent of each span and the spans that it is linked with have been collected, and that an attempt
// and a timeout are connected with the sender of their task. It returns the number of links.
func checkLinks(t *testing.T, spans []*tracepb.Span) (links int) {
	t.Helper()
	type place struct{ trace, span string }
	names := map[place]string{}
	for _, s := range spans {
		names[place{string(s.TraceId), string(s.SpanId)}] = s.Name
	}
	if len(names) != len(spans) {
		t.Errorf("%d spans have only %d ids: some were collected twice", len(spans), len(names))
	}
	for _, s := range spans {
		at := place{string(s.TraceId), string(s.ParentSpanId)}
		if _, found := names[at]; !found && at.span != "" {
			t.Errorf("the parent of %q of %s does not exist: %s", s.Name, attribute(s, "messaging.message.id"), hex.EncodeToString(s.ParentSpanId))
		}
		for _, l := range s.Links {
			links++
			if _, found := names[place{string(l.TraceId), string(l.SpanId)}]; !found {
				t.Errorf("%q of %s is linked with a span that does not exist: %s", s.Name, attribute(s, "messaging.message.id"), hex.EncodeToString(l.SpanId))
			}
		}
		switch attribute(s, "messaging.operation.name") {
		case "expire", "process":
			if len(s.Links) == 0 {
				t.Errorf("%q of %s has no link", s.Name, attribute(s, "messaging.message.id"))
			}
		}
	}
	return links
}
