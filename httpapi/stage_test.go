package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// stage is a Server over a namespace, and a client of it.
type stage struct {
	t      *testing.T
	q      *queue.Queue
	server *Server
	web    *httptest.Server
	log    *harness.Logs
	base   string
}

// newStage starts a Server over a new namespace of the shared Redis. Without Auth in config it is Public.
func newStage(t *testing.T, config Config) *stage {
	t.Helper()
	return newStageOf(t, queue.Config{}, config)
}

func newStageOn(t *testing.T, rdb redis.UniversalClient, namespace string, config Config) *stage {
	t.Helper()
	return stageOf(t, queuetest.Open(t, rdb, queue.Config{Namespace: namespace}), config)
}

// newStageOf is newStage with a namespace that is opened as of says.
func newStageOf(t *testing.T, of queue.Config, config Config) *stage {
	t.Helper()
	of.Namespace = redistest.Namespace(t)
	return stageOf(t, queuetest.Open(t, redistest.Shared(t).Client(t), of), config)
}

// another starts a second Server over the same namespace.
func (s *stage) another(config Config) *stage {
	s.t.Helper()
	return stageOf(s.t, s.q, config)
}

// awaySilence is Config.Silence for tests in which Redis is away: long enough for a busy machine.
const awaySilence = 1500 * time.Millisecond

// stageOf starts a Server over a namespace.
func stageOf(t *testing.T, q *queue.Queue, config Config) *stage {
	t.Helper()
	config.Silence = cmp.Or(config.Silence, time.Minute) // on a busy machine a server that works can be silent for longer than usual
	s := &stage{t: t, log: &harness.Logs{}, q: q}
	config.Queues = []*queue.Queue{s.q}
	config.Public = config.Auth == nil
	config.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	var err error
	if s.server, err = New(config); err != nil {
		t.Fatal(err)
	}
	s.listen(s.server.HTTPServer())
	t.Cleanup(func() {
		if text := s.log.String(); t.Failed() && text != "" {
			t.Logf("the log:\n%s", text)
		}
	})
	return s
}

// listen starts an HTTP server, to which the requests of the stage go from now on.
func (s *stage) listen(server *http.Server) {
	web := httptest.NewUnstartedServer(s.server)
	web.Config = server
	web.Start()
	s.t.Cleanup(func() {
		s.server.Drain()
		web.Close()
	})
	s.web, s.base = web, web.URL+"/api/v1/"+s.q.Namespace()+"/"
}

// answered is an answer to a request.
type answered struct {
	status int
	header http.Header
	body   string
	json   map[string]any
}

// word returns the word of an error.
func (a answered) word() string {
	p, _ := a.json["error"].(map[string]any)
	word, _ := p["word"].(string)
	return word
}

func (a answered) sentence() string {
	p, _ := a.json["error"].(map[string]any)
	text, _ := p["sentence"].(string)
	return text
}

func (a answered) field() string {
	p, _ := a.json["error"].(map[string]any)
	text, _ := p["field"].(string)
	return text
}

func (a answered) text(name string) string { s, _ := a.json[name].(string); return s }

// do makes a request. path is below the namespace unless it begins with a slash. The answer must be JSON, and fit the schema of the
// route.
func (s *stage) do(method, path, body string, change ...func(*http.Request)) answered {
	s.t.Helper()
	url := s.base + path
	if strings.HasPrefix(path, "/") {
		url = s.web.URL + path
	}
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	a, err := s.send(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (s *stage) send(r *http.Request) (answered, error) {
	response, err := s.web.Client().Do(r)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	a := answered{status: response.StatusCode, header: response.Header, body: string(text)}
	if err != nil || r.Method == http.MethodHead || a.status == http.StatusNoContent {
		return a, err
	}
	if err := json.Unmarshal(text, &a.json); err != nil {
		s.t.Errorf("%s %s is answered with %d %q, which is no JSON object: %v", r.Method, r.URL, a.status, text, err)
	}
	if strings.Contains(a.sentence(), "Config.") {
		s.t.Errorf("%s %s is answered with advice for a program in Go: %s", r.Method, r.URL, a.sentence())
	}
	if route := routeOf(r.Method, r.URL.Path); route != nil {
		a.check(s.t, route)
	}
	return a, nil
}

// routeOf returns the route of a request, or nil.
func routeOf(method, path string) *route {
	all := table()
	var found *route
	for i, r := range all {
		want, got := strings.Split("/api/v1/{namespace}/"+r.Path, "/"), strings.Split(path, "/")
		fit := r.Method == method && len(want) == len(got)
		for n := 0; fit && n < len(want); n++ {
			fit = strings.HasPrefix(want[n], "{") || want[n] == got[n]
		}
		if fit && (found == nil || strings.Count(r.Path, "{") < strings.Count(found.Path, "{")) {
			found = &all[i]
		}
	}
	return found
}

// want makes a request, and fails the test if the status is another one.
func (s *stage) want(status int, method, path, body string, change ...func(*http.Request)) answered {
	s.t.Helper()
	a := s.do(method, path, body, change...)
	if a.status != status {
		s.t.Fatalf("%s %s %.200s: %d %s, want %d", method, path, body, a.status, a.body, status)
	}
	return a
}
