package main

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/otlp"
	"github.com/curfew-dev/curfew/queue"
)

// command runs a command of this stage as a process, and returns its output and its log.
func (s *workStage) command(environment []string, args ...string) (string, string) {
	s.Helper()
	cmd := exec.Command(os.Args[0], append(args, "--namespace", s.q.Namespace())...)
	cmd.Env = append(append(os.Environ(), commandVariable+"=yes", "REDIS_URL="+s.url), environment...)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("%v: %v\n%s", args, err, &log)
	}
	return strings.TrimSpace(string(out)), log.String()
}

func TestATraceLeadsThroughCommands(t *testing.T) {
	t.Parallel()
	s, c := newWorkStage(t), otlp.New(t)
	environment := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "CURFEW_TRACE_PARENT=true",
		"TRACEPARENT=00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"}
	id, _ := s.command(environment, "enqueue", "show")
	p := s.startWith(environment[:2], "--kind", "show", "--", "sh", "-c", "echo $TRACEPARENT")
	result := strings.TrimSpace(s.result(id))
	p.Process.Signal(syscall.SIGTERM)
	if code := p.exit(t); code != 0 {
		t.Errorf("work exits with %d", code)
	}
	send, process := c.Named("send default"), c.Named("process default")
	c.Named("ack default")
	if hex.EncodeToString(send.ParentSpanId) != "0123456789abcdef" {
		t.Errorf("the parent of send is %x, want that of TRACEPARENT", send.ParentSpanId)
	}
	if string(process.ParentSpanId) != string(send.SpanId) {
		t.Errorf("the parent of process is %x, want send, %x", process.ParentSpanId, send.SpanId)
	}
	if want := "00-0123456789abcdef0123456789abcdef-" + hex.EncodeToString(process.SpanId) + "-01"; result != want {
		t.Errorf("the command got TRACEPARENT %q, want the span of its attempt, %s", result, want)
	}
}

func TestACollectorThatIsAwayDelaysNothing(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.CloseClientConnections)
	for name, url := range map[string]string{"refuses": "http://" + nobody, "is silent": silent.URL} {
		t.Run(name, func(t *testing.T) {
			s := newWorkStage(t)
			environment := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_EXPORTER_OTLP_TIMEOUT=100"}
			id, log := s.command(environment, "enqueue", "show")
			if n := strings.Count(log, "Spans are lost"); n != 1 {
				t.Errorf("enqueue logs %d times that spans are lost, want once:\n%s", n, log)
			}
			p := s.startWith(environment, "--kind", "show", "--", "echo", "done")
			for range 20 {
				s.enqueue(queue.Task{Kind: "show"})
			}
			if result := s.result(id); result != "done\n" {
				t.Errorf("the result is %q", result)
			}
			p.Process.Signal(syscall.SIGTERM)
			if code := p.exit(t); code != 0 {
				t.Errorf("work exits with %d", code)
			}
			if n := strings.Count(p.log.String(), "Spans are lost"); n != 1 {
				t.Errorf("work logs %d times that spans are lost, want once", n)
			}
		})
	}
}

func TestWrongVariablesOfTracingAreUsageErrors(t *testing.T) {
	s := newWorkStage(t)
	for _, row := range []struct{ variable, want string }{
		{"OTEL_TRACES_EXPORTER=zipkin", "set it to otlp or none"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318", "http://127.0.0.1:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:secret@", "is not a URL"},
		{"CURFEW_TRACE_PARENT=maybe", "set it to true or false"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "set it to http/protobuf"},
	} {
		name, value, _ := strings.Cut(row.variable, "=")
		t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
		t.Setenv(name, value)
		var out, log strings.Builder
		code := run(t.Context(), []string{"curfew", "enqueue", "k", "--redis", s.url, "--namespace", s.q.Namespace()}, &out, &log)
		if code != 2 || !strings.Contains(log.String(), name) || !strings.Contains(log.String(), row.want) || strings.Contains(log.String(), "secret") {
			t.Errorf("%s: exit code %d, %s", row.variable, code, &log)
		}
		os.Unsetenv(name)
	}
}
