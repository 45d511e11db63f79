package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A handler that panics is answered with 500. If it has begun to answer, the connection ends, and the client sees that the answer is
// not whole. http.ErrAbortHandler reaches the server, which knows it.
func TestAPanicIsNotASecondAnswer(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "half":
			io.WriteString(w, strings.Repeat("x", 10_000))
			panic("after a half")
		case "abort":
			panic(http.ErrAbortHandler)
		}
		panic("at once")
	}
	s := newStage(t, Config{Metrics: http.HandlerFunc(handler)})
	if a := s.want(500, "GET", "/metrics", ""); a.word() != "internal" || strings.Contains(a.body, "at once") {
		t.Errorf("a panic: %s", a.body)
	}
	if _, err := s.web.Client().Get(s.web.URL + "/metrics?abort"); err == nil {
		t.Error("http.ErrAbortHandler is answered")
	}
	response, err := s.web.Client().Get(s.web.URL + "/metrics?half")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(string(text), "error") {
		t.Errorf("half an answer ends with %v: %.40s", err, text[max(0, len(text)-40):])
	}
	if text := s.log.String(); !strings.Contains(text, "at once") || !strings.Contains(text, "after a half") || strings.Contains(text, "superfluous") {
		t.Errorf("the log is %s", text)
	}
	if a := s.want(405, "POST", "/metrics", ""); a.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST /metrics allows %s", a.header.Get("Allow"))
	}
}

// A wait is answered although it is longer than the server usually lets an answer take.
func TestALongWaitIsAnswered(t *testing.T) {
	s := newStage(t, Config{MaxWait: 10 * time.Minute})
	server := s.server.HTTPServer()
	server.WriteTimeout = 100 * time.Millisecond
	s.listen(server)
	id := s.enqueue("k", "mail")
	start := time.Now()
	a := s.want(202, "GET", "tasks/"+id+"/result?wait=400ms", "")
	if time.Since(start) < 400*time.Millisecond {
		t.Errorf("the request has not waited: %s", a.body)
	}
	s.want(400, "GET", "tasks/"+id+"/result?wait=11m", "")
}

// Many addresses take a bounded memory, and do not give a client new tokens.
func TestTheRatesOfManyClientsAreBounded(t *testing.T) {
	r := newRates(1, 2)
	r.rate = 1e-6
	r.take("one")
	r.take("one")
	refused := 0
	for i := range 3 * mostBuckets {
		if f := r.take("address " + strconv.Itoa(i)); f != nil {
			refused++
		}
		if len(r.buckets) > mostBuckets+1 {
			t.Fatalf("%d clients are kept", len(r.buckets))
		}
	}
	if refused < mostBuckets {
		t.Errorf("%d requests of new clients are refused: those that come last must share a bucket", refused)
	}
	if f := r.take("one"); f == nil || f.status != 429 || f.after <= 0 {
		t.Errorf("a third request at once: %v", f)
	}
	for client, b := range r.buckets {
		b.at = b.at.Add(-1000 * time.Hour)
		r.buckets[client] = b
	}
	r.pruned = time.Time{}
	if f := r.take("a new client"); f != nil || len(r.buckets) > 2 {
		t.Errorf("much later: %v, and %d clients are kept", f, len(r.buckets))
	}
}
