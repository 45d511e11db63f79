package httpapi

import (
	"bufio"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// FuzzRequest sends whole requests. Whatever they say, the server knows what is wrong with them: no answer is 500, and each error has
// a word and a sentence.
func FuzzRequest(f *testing.F) {
	q := queuetest.Open(f, redistest.Shared(f).Client(f), queue.Config{Namespace: redistest.Namespace(f)})
	s, err := New(Config{Queues: []*queue.Queue{q}, Public: true, Hosts: []string{"*"}, MaxWait: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Drain)
	for _, r := range table() {
		path, body := sample(r)
		for _, text := range []string{body, "{}", "[]", `{"payload":1,"payload_base64":"AA=="}`, "\x00", `{"kind":"` + strings.Repeat("k", 300) + `"}`} {
			f.Add(r.Method, path, text)
		}
		f.Add(r.Method, path+"/", body)
		f.Add("OPTIONS", path, body)
		f.Add("HEAD", strings.Replace(path, "NOSUCHTASK", "x%2Fy", 1), "")
		f.Add(r.Method, strings.Replace(path, "0-NOSUCHTASK", "99999999999999999999-X", 1), body)
		f.Add(r.Method, strings.Replace(path, "mail", "%F0%9F%98%80", 1), body)
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		text := fmt.Sprintf("%s /api/v1/%s/%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, q.Namespace(), path, len(body), body)
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return // net/http refuses it
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code == 500 || w.Code >= 400 && r.Method != "HEAD" && !strings.Contains(w.Body.String(), `{"error":{"word":"`) {
			t.Errorf("%q: %d %s", text, w.Code, w.Body)
		}
	})
}
