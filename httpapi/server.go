package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Config configures a Server. It needs Queues or Namespaces, and Auth or Public.
type Config struct {
	// Queues are the namespaces that are served.
	Queues []*queue.Queue
	// Namespaces are further ones. Each is opened by Open when it is needed, so that the server can start while Redis is away.
	Namespaces []string
	Open       func(ctx context.Context, namespace string) (*queue.Queue, error)

	// Auth identifies clients. The first Authenticator that knows a client counts. New refuses an empty list, unless Public is set.
	Auth []Authenticator
	// Public lets everybody who can reach the server do everything.
	Public bool
	// Hosts are the names that clients may use for the server, without port. Any other one is refused, which protects against DNS
	// rebinding. "*" allows all. Defaults to localhost, 127.0.0.1 and [::1].
	Hosts []string
	// Origins are origins of other sites, such as https://ops.example.com, whose pages may send changes. Without them, only pages of
	// the same origin may.
	Origins []string
	// HidePayloads leaves payloads, results, headers and errors out of all answers, except those to workers and agents, who need them.
	HidePayloads bool

	// Traces makes a span of each request to a route of the API. Its parent is the trace that the header traceparent of the request
	// names. Nil: no span is made. A request for which the program has begun a span gets no other one.
	Traces trace.TracerProvider

	// Metrics answers /metrics. Without it, there is no such path.
	Metrics http.Handler

	// MaxBody bounds the body of a request in bytes. Defaults to 8 MiB. The bodies of all requests together take up to
	// MaxBody × MaxRequests bytes, and the bodies of one client an eighth of this.
	MaxBody int64
	// MaxRequests bounds how many requests are served at once, without those that wait and those whose body has not arrived yet.
	// Defaults to 256.
	MaxRequests int
	// MaxWaiting bounds how many requests wait at once. Defaults to 2,000.
	MaxWaiting int
	// MaxWait bounds how long a request can wait. Defaults to 1 minute.
	MaxWait time.Duration
	// Rate is the number of requests that a client can make in a second, on average. 0 means no limit. Clients are distinguished by
	// the names that the Authenticator gives them, and by their addresses without an Authenticator. Burst is the number of requests
	// that a client can make at once. It defaults to twice the rate.
	Rate, Burst int
	// HeaderTime bounds how long the header of a request may take to arrive. Defaults to 5 s. A server in which this handler is
	// mounted has its own limit.
	HeaderTime time.Duration
	// BodyTime bounds how long the body of a request may take to arrive. Defaults to 10 s.
	BodyTime time.Duration
	// RequestTime bounds how long a request may take, without its wait. Defaults to 30 s.
	RequestTime time.Duration
	// Silence is how long Redis may be silent until requests are answered with 503. Time in which this process waits for a
	// processor does not count. Defaults to 600 ms.
	Silence time.Duration

	// Logger gets a line for each change. Defaults to slog.Default.
	Logger *slog.Logger
}

// Server is an http.Handler. It starts no goroutine before the first request. Goroutines that requests share can outlive them by some
// seconds.
type Server struct {
	config   Config
	mux      *http.ServeMux
	spaces   map[string]*space
	origins  *http.CrossOriginProtection
	requests chan struct{} // a place for each request
	waiting  chan struct{} // a place for each request that waits
	compiles chan struct{} // a place for each definition that is checked
	memory   *bodyMemory
	rates    *rates
	checks   checks
	tracer   *spans.Tracer // nil: no tracing
	log      *slog.Logger

	commentAfter time.Duration // a comment is sent so often to a stream that has no events
	writeTimeout time.Duration // how long the client of a stream may take to receive a part

	draining context.Context // ends when the server stops
	drain    context.CancelFunc
	stopping atomic.Bool
}

// New returns a Server. It does not call Redis. It returns [refusal.ErrInvalid] if Config is not valid.
func New(config Config) (*Server, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	s := &Server{config: config, mux: http.NewServeMux(), spaces: map[string]*space{}, origins: http.NewCrossOriginProtection(),
		requests: make(chan struct{}, config.MaxRequests), waiting: make(chan struct{}, config.MaxWaiting), compiles: make(chan struct{}, 2),
		memory: newBodyMemory(config.MaxBody, config.MaxRequests), rates: newRates(config.Rate, config.Burst), tracer: spans.New(spans.Config{Provider: config.Traces}), log: config.Logger,
		commentAfter: 15 * time.Second, writeTimeout: 10 * time.Second}
	s.draining, s.drain = context.WithCancel(context.Background())
	for _, origin := range config.Origins {
		if err := s.origins.AddTrustedOrigin(origin); err != nil {
			return nil, refusal.Invalid("origins", "is not valid: %v", err)
		}
	}
	for _, q := range config.Queues {
		if err := q.Ready(context.Background()); err != nil {
			return nil, err
		}
		s.spaces[q.Namespace()] = &space{server: s, name: q.Namespace()}
		s.spaces[q.Namespace()].serve(q)
	}
	for _, name := range config.Namespaces {
		if s.spaces[name] == nil {
			s.spaces[name] = &space{server: s, name: name}
		}
	}
	s.register()
	return s, nil
}

func (c *Config) complete() error {
	switch {
	case len(c.Queues)+len(c.Namespaces) == 0:
		return refusal.Invalid("queues", "is empty: name what to serve")
	case len(c.Namespaces) > 0 && c.Open == nil:
		return refusal.Invalid("open", "is nil: Namespaces need it")
	case len(c.Auth) == 0 && !c.Public:
		return refusal.Invalid("auth", "is empty: give one, or set Public, and everybody who reaches the server can do everything")
	case len(c.Auth) > 0 && c.Public:
		return refusal.Invalid("public", "must not be set with Auth: leave one of them out")
	case c.MaxBody < 0 || c.MaxRequests < 0 || c.MaxWaiting < 0 || c.MaxWait < 0 || c.Rate < 0 || c.Burst < 0 || c.HeaderTime < 0 || c.BodyTime < 0 || c.RequestTime < 0 || c.Silence < 0:
		return refusal.Invalid("limits", "must not be negative")
	case slices.ContainsFunc(c.Auth, func(a Authenticator) bool { return a == nil }):
		return refusal.Invalid("auth", "must not be nil")
	}
	if c.Hosts == nil {
		c.Hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	c.Hosts = slices.Clone(c.Hosts)
	for i, host := range c.Hosts {
		plain := strings.ToLower(strings.Trim(host, "[]"))
		if net.ParseIP(plain) == nil && plain != "*" && strings.ContainsAny(plain, ":/ ") || plain == "" {
			return refusal.Invalid("hosts", "%q must be a name or an address, without a port", refusal.Clip(host))
		}
		c.Hosts[i] = plain
	}
	c.MaxBody = cmp.Or(c.MaxBody, 8<<20)
	c.MaxRequests = cmp.Or(c.MaxRequests, 256)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 2000)
	c.MaxWait = cmp.Or(c.MaxWait, time.Minute)
	c.Burst = cmp.Or(c.Burst, 2*c.Rate)
	c.HeaderTime = cmp.Or(c.HeaderTime, 5*time.Second)
	c.BodyTime = cmp.Or(c.BodyTime, 10*time.Second)
	c.RequestTime = cmp.Or(c.RequestTime, 30*time.Second)
	c.Silence = cmp.Or(c.Silence, 600*time.Millisecond)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return nil
}

// register makes the mux from the table. A path is registered once for all methods, so that another method is answered with 405 and
// JSON.
func (s *Server) register() {
	byPath := map[string]map[string]*route{}
	routes := table()
	for i := range routes {
		r := &routes[i]
		path := "/api/v1/{namespace}/" + r.Path
		if byPath[path] == nil {
			byPath[path] = map[string]*route{}
		}
		byPath[path][r.Method] = r
	}
	for path, methods := range byPath {
		s.mux.Handle(path, s.api(path, methods))
	}
	s.mux.HandleFunc("/healthz", s.healthz)
	s.mux.HandleFunc("/readyz", s.readyz)
	if s.config.Metrics != nil {
		s.mux.HandleFunc("/metrics", s.metrics)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.answerError(w, fail(http.StatusNotFound, "no_route", "there is no such path: docs/reference/http.md lists the routes"))
	})
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(writer http.ResponseWriter, r *http.Request) {
	w := &answering{ResponseWriter: writer}
	defer func() {
		if v := recover(); v != nil {
			s.afterPanic(w, r, v)
		}
	}()
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if f := s.checkAddress(r); f != nil {
		s.answerError(w, f)
		return
	}
	if s.allowOrigin(w, r) {
		return
	}
	s.mux.ServeHTTP(w, r)
}

// HTTPServer returns an http.Server for s, with limits against clients that send slowly or too much.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{Handler: s, MaxHeaderBytes: 16 << 10, ReadHeaderTimeout: s.config.HeaderTime, ReadTimeout: s.config.HeaderTime + s.config.BodyTime,
		WriteTimeout: s.config.RequestTime + 30*time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
}

// Drain makes /readyz answer with 503, and ends all waits: a request that waits is answered as if its time were over. Requests that
// come later do not wait.
func (s *Server) Drain() {
	s.stopping.Store(true)
	s.drain()
}

// Serve serves on a listener until ctx ends. Then /readyz answers with 503 for a tenth of grace, at most a second, before Serve closes the
// listener. Requests that are under way have grace to be answered.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	web := s.HTTPServer()
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.Drain()
	select { // still listening, so that whoever looks at /readyz sends nothing more
	case err := <-served:
		return err
	case <-time.After(min(grace/10, time.Second)):
	}
	patience, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	if err := web.Shutdown(patience); err != nil {
		web.Close()
	}
	<-served
	return nil
}

// answering notes whether an answer has begun.
type answering struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader writes the status. One below 200 is not the answer yet.
func (a *answering) WriteHeader(status int) {
	a.begun = a.begun || status >= http.StatusOK
	a.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (a *answering) Write(text []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(text)
}

// Unwrap lets http.ResponseController set deadlines and flush.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// afterPanic answers with 500. If the answer has begun, or a handler wants the connection to end, the connection ends instead: the client
// then sees that the answer is not whole.
func (s *Server) afterPanic(w *answering, r *http.Request, v any) {
	if v != http.ErrAbortHandler {
		s.log.Error("HTTP request failed", "method", r.Method, "path", r.URL.Path, "error", fmt.Sprint(v))
	}
	if v == http.ErrAbortHandler || w.begun {
		panic(http.ErrAbortHandler)
	}
	s.answerError(w, failureOf(errors.New("panic")))
}
