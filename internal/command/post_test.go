//go:build unix

package command_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/command"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// post returns a Post to a URL.
func (s *stage) post(to string) *command.Post {
	s.Helper()
	u, err := url.Parse(to)
	if err != nil {
		s.Fatal(err)
	}
	p := command.NewPost(u, 16)
	p.Log = s.logger()
	return p
}

func serve(t testing.TB, handle http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server
}

// Each answer is of a task of its own. All tasks run in one worker at the same time.
func TestWhatAServerAnswersIsTheOutcome(t *testing.T) {
	t.Parallel()
	status := func(code int, more ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for i := 1; i < len(more); i += 2 {
				w.Header().Set(more[i-1], more[i])
			}
			w.WriteHeader(code)
		}
	}
	// then answers with 200 to the second attempt.
	then := func(first http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Curfew-Attempt") == "2" {
				io.WriteString(w, "second")
				return
			}
			first(w, r)
		}
	}
	says := func(format string, names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var values []any
			for _, name := range names {
				values = append(values, r.Header.Get(name))
			}
			fmt.Fprintf(w, format, values...)
		}
	}
	failed := func(code int, reason queue.Reason, parts ...string) want {
		return want{status: queue.Failed, code: code, reason: reason, errors: parts}
	}
	three := queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}}
	late := queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, Timeout: time.Minute} // no time is left for a retry after an hour
	twice := want{result: "second", retries: 1}
	echo := func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }
	large := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { io.CopyN(w, zeros{}, int64(n)) }
	}
	rows := []struct {
		claim  string
		task   queue.Task
		handle http.HandlerFunc
		want   want
	}{
		{"the body of 200 is the result", queue.Task{Payload: []byte("in\x00\xff")}, echo, want{result: "in\x00\xff"}},
		{"a task without a payload", queue.Task{}, echo, want{}},
		{"201 is done", queue.Task{}, status(201), want{}},
		{"202 is done", queue.Task{}, status(202), want{}},
		{"204 is done, with an empty result", queue.Task{}, status(204), want{}},
		{"a payload of 1 MiB arrives and returns", queue.Task{Payload: []byte(strings.Repeat("x", megabyte))}, echo, want{result: strings.Repeat("x", megabyte)}},
		{"a payload of 1 MiB need not be read", queue.Task{Payload: []byte(strings.Repeat("x", megabyte))}, status(200), want{}},
		{"a body that is one byte too large fails for good", three, large(megabyte + 1), failed(0, queue.ReasonFailed, "more than the 1048576 bytes", "store the result elsewhere")},
		{"a body of 100 MB is not read", three, large(100e6), failed(0, queue.ReasonFailed, "more than the 1048576 bytes")},
		{"a large body with 500 is the status", queue.Task{}, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); large(3*megabyte)(w, r) }, failed(500, queue.ReasonError)},

		{"400 fails for good", three, status(400), failed(400, queue.ReasonFailed, "status 400 Bad Request")},
		{"401 fails for good", three, status(401), failed(401, queue.ReasonFailed)},
		{"404 fails for good", three, status(404), failed(404, queue.ReasonFailed)},
		{"409 fails for good", three, status(409), failed(409, queue.ReasonFailed)},
		{"422 says why", three, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no\x1b[31m width\x00", http.StatusUnprocessableEntity)
		}, failed(422, queue.ReasonFailed, "status 422 Unprocessable Entity: no width\uFFFD")},
		{"a status that nobody knows", three, status(499), failed(499, queue.ReasonFailed)},
		{"408 is retried", three, then(status(408)), twice},
		{"425 is retried", three, then(status(425)), twice},
		{"429 is retried", three, then(status(429)), twice},
		{"500 is retried", three, then(status(500)), twice},
		{"502 is retried", three, then(status(502)), twice},
		{"503 is retried", three, then(status(503)), twice},
		{"500 without a retry left", queue.Task{}, status(500), failed(500, queue.ReasonError, "status 500 Internal Server Error")},
		{"429 names the time", late, status(429, "Retry-After", "3600"), failed(429, queue.ReasonError)},
		{"503 names the time", late, status(503, "Retry-After", "3600"), failed(503, queue.ReasonError)},
		{"503 names a date", late, status(503, "Retry-After", "Fri, 31 Dec 2100 23:59:59 GMT"), failed(503, queue.ReasonError)},
		{"503 names a date that has passed", late, then(status(503, "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT")), twice},
		{"503 names a time that is too long for any clock", late, status(503, "Retry-After", "999999999999999"), failed(503, queue.ReasonError)},
		{"503 names a time that nobody can read", late, then(status(503, "Retry-After", "soon")), twice},
		{"500 names no time", late, then(status(500, "Retry-After", "3600")), twice},
		{"an expression reads the status", queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, Retry: "tasks.KIND.code == 404"}, then(status(404)), twice},

		{"a redirect is not followed", queue.Task{}, status(302, "Location", "/k0"), failed(302, queue.ReasonError, "a redirect, which is not followed")},
		{"a redirect that keeps the method is not either", queue.Task{}, status(307, "Location", "/k0"), failed(307, queue.ReasonError, "a redirect")},
		{"304 is no result", queue.Task{}, status(304), failed(304, queue.ReasonError)},
		{"the connection breaks before the answer", three, then(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }), twice},
		{"the connection breaks in the body", three, then(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "half")
		}), twice},
		{"the connection breaks in the body of a refusal", three, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(400)
			io.WriteString(w, "half")
		}, failed(400, queue.ReasonFailed, "status 400 Bad Request: half")},
		{"another protocol is no answer", three, then(func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack() // it stays open
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			go func() { io.Copy(io.Discard, c); c.Close() }()
		}), twice},
		{"a gzipped body is unpacked", queue.Task{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			io.WriteString(z, "unpacked")
		}, want{result: "unpacked"}},
		{"a gzipped body is too large when it is unpacked", three, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			io.CopyN(z, zeros{}, megabyte+1)
		}, failed(0, queue.ReasonFailed, "more than the 1048576 bytes")},
		{"the answer is no HTTP", queue.Task{}, func(w http.ResponseWriter, r *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(c, "SSH-2.0-OpenSSH\r\n")
			c.Close()
		}, failed(0, queue.ReasonError, "malformed HTTP response")},

		{"it is told its task", queue.Task{Queue: "other", MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}}, says("%s %s %s %s %s", "Curfew-Kind", "Curfew-Queue", "Curfew-Attempt", "Curfew-Max-Retries", "Curfew-Epoch"), want{result: "KIND other 1 2 1"}},
		{"it is told the deadline", queue.Task{Deadline: time.Date(2100, 6, 1, 0, 0, 0, 0, time.UTC)}, func(w http.ResponseWriter, r *http.Request) {
			ms, err := strconv.ParseInt(r.Header.Get("Curfew-Deadline-At"), 10, 64)
			fmt.Fprint(w, err, time.UnixMilli(ms).UTC(), r.Header.Get("Curfew-Left-Ms") != "")
		}, want{result: "<nil> 2100-06-01 00:00:00 +0000 UTC true"}},
		{"it is told no deadline that it does not have", queue.Task{}, says("%q %q", "Curfew-Deadline-At", "Curfew-Left-Ms"), want{result: `"" ""`}},
		{"it is a POST", queue.Task{}, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Method, " ", r.URL.RawQuery, " ", r.ContentLength)
		}, want{result: "POST a=1,2 0"}},
		{"JSON is said to be JSON", queue.Task{Payload: []byte(`{"a":1}`)}, says("%s", "Content-Type"), want{result: "application/json"}},
		{"everything else is not", queue.Task{Payload: []byte(`{"a":`)}, says("%s", "Content-Type"), want{result: "application/octet-stream"}},
		{"trace headers have their own names", queue.Task{Headers: map[string]string{"traceparent": "00-1-2-01"}}, says("%s", "Traceparent"), want{result: "00-1-2-01"}},
		{"other headers have a prefix", queue.Task{Headers: map[string]string{"tenant": "acme", "Authorization": "x", "Host": "evil"}}, says("%s %q", "Curfew-Header-Tenant", "Authorization"), want{result: `acme ""`}},
		{"headers that HTTP cannot hold are in the JSON", queue.Task{Headers: map[string]string{"a b": "1", "é": "2", "split": "x\r\nCurfew-Epoch: 99"}}, says("%s %q %s", "Curfew-Headers", "Curfew-Header-Split", "Curfew-Epoch"),
			want{result: `{"a b":"1","split":"x\r\nCurfew-Epoch: 99","\u00e9":"2"} "" 1`}},
		{"headers that are too large fail for good", queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, Headers: map[string]string{"a": strings.Repeat("x", 70<<10)}}, status(200), failed(0, queue.ReasonFailed, "into the payload")},
	}
	s := newStage(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		i, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/k"))
		rows[i].handle(w, r)
	})
	server.Config.ErrorLog = quietLog
	w := worker.New(s.q, worker.Config{Concurrency: 16, Queues: map[string]int{"default": 1, "other": 1}})
	ids := make([]string, len(rows))
	for i, row := range rows {
		kind := "k" + strconv.Itoa(i)
		w.HandleRaw(kind, s.post(server.URL+"/"+kind+"?a=1,2").Handle)
		row.task.Kind, row.task.Retry = kind, strings.ReplaceAll(row.task.Retry, "KIND", kind)
		ids[i] = s.enqueue(row.task)
	}
	s.run(w)
	for i, row := range rows {
		t.Run(row.claim, func(t *testing.T) {
			row.want.result = strings.ReplaceAll(row.want.result, "KIND", "k"+strconv.Itoa(i))
			row.want.not = "a=1,2" // a query can have a secret
			row.want.compare(t, s.ended(ids[i]))
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestServersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://user:secret@" + free.Addr().String() + "/x?token=secret"
	free.Close()
	for _, row := range []struct{ claim, url, err string }{
		{"nothing listens there", refused, "connection refused"},
		{"the name does not exist", "http://curfew.invalid/x?token=secret", "curfew.invalid"},
		{"the port is not valid", "http://127.0.0.1:99999/x?token=secret", "invalid port"},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.work(s.post(row.url).Handle)
			want{status: queue.Failed, reason: queue.ReasonError, retries: 1, errors: []string{"POST http://", row.err}, not: "secret"}.compare(t, s.ended(s.enqueue(queue.Task{MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})))
			if s.logs.Count("secret") > 0 {
				t.Error("the log has the secret of the URL")
			}
		})
	}
}

// A request is cancelled when its task must stop: the server sees the connection end, before or in its answer.
func TestARequestIsCancelled(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		claim       string
		task        queue.Task
		taskTimeout time.Duration
		body        bool // the server has begun its answer
		cancel      bool
		want        want
	}{
		{claim: "at the limit of the attempt", task: queue.Task{AttemptTimeout: time.Second}, want: want{status: queue.Failed, reason: queue.ReasonTimeout}},
		{claim: "at the deadline", task: queue.Task{Timeout: time.Second}, want: want{status: queue.Failed, reason: queue.ReasonTimeout}},
		{claim: "at the deadline, in the body", task: queue.Task{Timeout: time.Second}, body: true, want: want{status: queue.Failed, reason: queue.ReasonTimeout}},
		{claim: "at the limit of the worker", taskTimeout: time.Second, want: want{status: queue.Failed, reason: queue.ReasonTimeout}},
		{claim: "when its task is cancelled", cancel: true, want: want{status: queue.Cancelled, reason: queue.ReasonCancelled}},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			began, ended := make(chan bool, 1), make(chan bool, 1)
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) // the server sees the end of the connection when the body is read
				if row.body {
					io.WriteString(w, "half")
					w.(http.Flusher).Flush()
				}
				began <- true
				<-r.Context().Done()
				ended <- true
			})
			w := worker.New(s.q, worker.Config{TaskTimeout: row.taskTimeout})
			w.HandleRaw("k", s.post(server.URL).Handle)
			stop := s.run(w)
			id := s.enqueue(row.task)
			await.Receive(t, began, "the request")
			if row.cancel {
				if _, err := s.q.Cancel(t.Context(), id, ""); err != nil {
					t.Fatal(err)
				}
			}
			await.Receive(t, ended, "the end of the request")
			row.want.compare(t, s.ended(id))
			stop()
		})
	}
}

// At shutdown a request has ShutdownTimeout. Then, or when Now is closed, it is cancelled and its task is given back.
func TestShutdownInARequest(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		claim    string
		patience time.Duration
		now      bool
		status   queue.Status
	}{
		{"an answer in time counts", time.Hour, false, queue.Completed},
		{"a request is cancelled after the shutdown timeout", time.Millisecond, false, queue.Pending},
		{"a request is cancelled at once", time.Hour, true, queue.Pending},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			began, answer, now := make(chan bool, 1), make(chan bool), make(chan struct{})
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				began <- true
				select {
				case <-answer:
				case <-r.Context().Done():
				}
			})
			p := s.post(server.URL)
			p.Now = now
			w := worker.New(s.q, worker.Config{NoReaper: true, ShutdownTimeout: row.patience, ShutdownGrace: time.Minute})
			w.HandleRaw("k", p.Handle)
			stop := s.run(w)
			id := s.enqueue(queue.Task{})
			await.Receive(t, began, "the request")
			ended := make(chan struct{})
			go func() { stop(); close(ended) }()
			if row.patience == time.Hour {
				await.Until(t, "the worker drains", func() bool { return drains(s) })
				if row.now {
					close(now)
				} else {
					close(answer)
				}
			}
			await.Receive(t, ended, "the end of the worker")
			if r := s.record(id); r.Status != row.status || r.Retries != 0 {
				t.Errorf("the task is %s, retries %d, error %q, want %s", r.Status, r.Retries, r.Error, row.status)
			}
		})
	}
}

// A server may close a connection that was idle at the instant at which a request is sent on it. The request is
// then sent again, and no retry is spent.
func TestAnIdleConnectionThatIsClosedCostsNoRetry(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var connections atomic.Int32
	keys := make(chan string, 10)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			n := connections.Add(1)
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					if n == 1 && len(keys) == 1 {
						return // the second request on the first connection is not answered
					}
					keys <- r.Header.Get("Idempotency-Key")
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			}()
		}
	}()
	s := newStage(t)
	s.work(s.post("http://" + listener.Addr().String()).Handle)
	for range 2 {
		want{result: "ok"}.compare(t, s.ended(s.enqueue(queue.Task{})))
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("there were %d connections, want 2", n)
	}
	if a, b := await.Receive(t, keys, "the first key"), await.Receive(t, keys, "the second key"); a == b || !strings.HasSuffix(a, "/1") {
		t.Errorf("the idempotency keys are %q and %q, want the id and epoch of each task", a, b)
	}
}
