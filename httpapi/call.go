package httpapi

import (
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/queue"
)

// call is a request to a route, read and allowed.
type call struct {
	context.Context // ends when the client is gone, when Redis is silent, and when the request takes too long
	server          *Server
	space           *space
	q               *queue.Queue
	route           *route
	request         *http.Request
	writer          http.ResponseWriter
	who             Identity
	query           values
	raw             []byte // the body
	status          int    // of the answer; 0: the first of the route
	task            string // the task that a change was about, for the log
	queue, kind     string // those that the body names, for the log
	renews          bool   // the request has changed nothing that lasts, so its log line is for debugging
	changed         atomic.Bool
}

// client returns the name under which the limits of a client are counted.
func (c *call) client() string { return c.server.clientName(c.request, c.who) }

// path returns a part of the path, such as the id.
func (c *call) path(name string) string { return c.request.PathValue(name) }

// id returns the id of a task in the path.
func (c *call) id() string {
	c.task = c.path("id")
	return c.task
}

// hides reports whether the answer must leave out payloads and other texts of users.
func (c *call) hides() bool { return c.server.config.HidePayloads || c.query.flag("hide_payloads") }

// await returns a context that ends when the wait of the request is over, or the server stops. over reports whether one of the two has
// ended it.
func (c *call) await() (ctx context.Context, over func() bool, stop func()) {
	ctx, cancel := context.WithCancelCause(c.Context)
	ctx, stopWait := context.WithTimeoutCause(ctx, c.query.span("wait"), errWaitOver)
	drained := context.AfterFunc(c.server.draining, func() { cancel(errWaitOver) })
	return ctx, func() bool { return errors.Is(context.Cause(ctx), errWaitOver) && c.Context.Err() == nil }, func() {
		drained()
		stopWait()
		cancel(nil)
	}
}

// api returns the handler for a path, with its routes by method.
func (s *Server) api(path string, methods map[string]*route) http.Handler {
	allowed := slices.Sorted(maps.Keys(methods))
	if methods[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, span := s.tracer.Serve(r, path)
		status := http.StatusInternalServerError // of a panic
		defer func() { span.Served(status) }()
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		route := methods[method]
		if route == nil {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			status = http.StatusMethodNotAllowed
			s.answerError(w, fail(status, "no_method", "%q cannot be used here: use %s", r.Method, strings.Join(allowed, " or ")))
			return
		}
		status = s.serve(w, r, route)
	})
}

// serve answers a request to a route. It returns the status of the answer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, route *route) (status int) {
	c := &call{server: s, route: route, request: r, writer: w}
	start := time.Now()
	status = http.StatusInternalServerError // of a panic
	var answer any
	defer func() {
		if route.Method != http.MethodGet && c.who.Name != "" {
			c.logChange(status, answer, start)
		}
	}()
	answer, err := s.perform(c)
	switch {
	case err != nil:
		f := c.unknownIfChanged(failureOf(err))
		if f.status == http.StatusInternalServerError {
			s.log.Error("HTTP request failed", "method", r.Method, "route", route.Path, "error", f.cause)
		}
		c.noteOutage(f)
		status = f.status
		s.answerError(w, f)
	case answer == nil: // it is written already
		status = c.status
		c.noteOutage(nil)
	default:
		status = c.status
		if status == 0 {
			status = route.Status[0]
		}
		s.answer(w, status, answer)
		c.noteOutage(nil)
	}
	return status
}

func (c *call) noteOutage(f *failure) {
	if c.space != nil {
		c.space.note(f)
	}
}

// perform checks a request, the cheapest checks first, and does it.
func (s *Server) perform(c *call) (any, error) {
	r := c.request
	identity, f := s.admit(c.writer, r, c.route.Role)
	if f == nil || f.status == http.StatusForbidden { // a forbidden change is logged, and one of too many is not
		c.who = identity
	}
	if f != nil {
		return nil, f
	}
	space, f := s.find(r.PathValue("namespace"))
	if f != nil {
		return nil, f
	}
	if c.query, f = readQuery(r.URL.RawQuery, c.route.Query); f != nil {
		return nil, f
	}
	if limit := s.config.MaxWait; c.route.Poll && c.query.span("wait") > limit {
		return nil, wrong("wait", "must not be longer than %v", limit)
	}
	f = c.readBody()
	defer func() { s.memory.free(c.client(), c.raw) }()
	if f != nil {
		return nil, f
	}
	free, f := s.enter(c.waits())
	if f != nil {
		return nil, f
	}
	defer free()
	patient := http.NewResponseController(c.writer)
	patient.SetReadDeadline(time.Time{}) // the request is complete; the next byte belongs to the next request
	patient.SetWriteDeadline(time.Now().Add(c.longest() + 30*time.Second))
	// With a deadline, the calls of Redis return at once when the context ends.
	ctx, stop := context.WithTimeoutCause(traceContext(r), c.longest(), errTooLong)
	defer stop()
	ctx, unwatch := c.whileValid(ctx)
	defer unwatch()
	c.space = space
	var err error
	if c.q, err = space.queue(ctx); err != nil {
		return nil, err
	}
	ctx, leave := space.watch(ctx, c.partition(), c.route.Method != http.MethodGet)
	defer leave()
	c.Context = ctx
	if c.route.Method != http.MethodGet {
		c.Context = context.WithValue(ctx, changedKey{}, &c.changed)
	}
	answer, err := c.route.Serve(c)
	switch cause := context.Cause(ctx); { // whatever the call made of it
	case err != nil && errors.Is(cause, errAway) && c.route.Method == http.MethodGet:
		err = errAway
	case err != nil && errors.Is(cause, errRevoked):
		err = revoked()
	}
	return answer, err
}

// traceContext returns the context of a request. It has the trace that the header traceparent names, unless the program that mounts the
// server has begun a span of its own.
func traceContext(r *http.Request) context.Context {
	ctx := r.Context()
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
}

// withTrace returns the headers of a task. If the namespace makes no spans, which would carry the trace of the request, the headers of the
// task do.
func (c *call) withTrace(headers map[string]string) map[string]string {
	if c.q.Tracer() != nil {
		return headers
	}
	return spans.PassOn(c, headers, c.q.MaxBytes())
}

// waits reports whether the request may wait for long.
func (c *call) waits() bool { return c.streams() || c.route.Poll && c.query.span("wait") > 0 }

// partition returns the partition of the only task that the request waits for, or -1.
func (c *call) partition() int {
	number, _, ok := strings.Cut(c.path("id"), "-")
	if p, err := strconv.Atoi(number); ok && err == nil && c.waits() {
		return p
	}
	return -1
}

// longest returns how long the request may take.
func (c *call) longest() time.Duration {
	if c.streams() {
		return longestSpan
	}
	return c.query.span("wait") + c.server.config.RequestTime
}

// readBody reads the body, and checks that the route has one.
func (c *call) readBody() *failure {
	r := c.request
	if c.route.Body == nil {
		if r.ContentLength != 0 {
			return fail(http.StatusBadRequest, "invalid", "this request takes no body: leave it out").of("body")
		}
		return nil
	}
	if r.ContentLength == 0 && c.route.Bare {
		return nil
	}
	kind, parameters, notMedia := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(parameters["charset"])
	if _, ok := c.route.Body.(definition); ok && kind == "application/yaml" {
		kind = "application/json"
	}
	if notMedia != nil || kind != "application/json" || charset != "" && charset != "utf-8" || r.Header.Get("Content-Encoding") != "" {
		return fail(http.StatusUnsupportedMediaType, "not_json", "the body must be JSON in UTF-8, not compressed: send Content-Type: application/json")
	}
	limit := c.server.config.MaxBody
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	http.NewResponseController(c.writer).SetReadDeadline(time.Now().Add(c.server.config.BodyTime))
	var err error
	c.raw, err = c.server.memory.read(c.client(), http.MaxBytesReader(c.writer, r.Body, limit))
	var full *failure
	switch {
	case errors.As(err, &full):
		return full.unread()
	case errors.As(err, new(*http.MaxBytesError)):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fail(http.StatusRequestTimeout, "slow_body", "the body did not arrive in %v: send it faster, or send less", c.server.config.BodyTime).unread()
	case err != nil:
		return fail(http.StatusBadRequest, "invalid", "the body is not complete: its length is not what Content-Length says").of("body")
	}
	return nil
}

func tooLarge(most int64) *failure {
	return fail(http.StatusRequestEntityTooLarge, "too_large", "the body is larger than %d bytes: send less at once", most).unread()
}
