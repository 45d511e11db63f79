package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// claimed is a claim of an answer.
type claimed struct {
	ID      string          `json:"id"`
	Epoch   int64           `json:"epoch"`
	Kind    string          `json:"kind"`
	Attempt int             `json:"attempt"`
	Payload json.RawMessage `json:"payload"`
}

// claims returns the claims of an answer to a fetch.
func (a answered) claims(t *testing.T) []claimed {
	t.Helper()
	var is struct {
		Claims []claimed `json:"claims"`
	}
	if err := json.Unmarshal([]byte(a.body), &is); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	return is.Claims
}

// hand is a worker that has nothing but HTTP.
type hand struct {
	s    *stage
	name string
	seq  int
}

func (h *hand) fetch(body, query string) []claimed {
	h.s.t.Helper()
	h.seq++
	return h.s.want(200, "POST", "workers/"+h.name+"/fetch"+query, fmt.Sprintf(`{"seq":%d%s}`, h.seq, body)).claims(h.s.t)
}

// take fetches one task, which must come.
func (h *hand) take(queue string) claimed {
	h.s.t.Helper()
	got := h.fetch(`,"queues":["`+queue+`"]`, "?wait=30s")
	if len(got) != 1 {
		h.s.t.Fatalf("%s gets %v of %s, want one task", h.name, got, queue)
	}
	return got[0]
}

// settle reports an outcome, which must be accepted with a status.
func (h *hand) settle(c claimed, status, outcome string) {
	h.s.t.Helper()
	a := h.s.want(200, "POST", "workers/"+h.name+"/settle", fmt.Sprintf(`{"call":"c-%s-%d","outcomes":[{"id":%q,"epoch":%d,%s}]}`, h.name, h.seq, c.ID, c.Epoch, outcome))
	want := fmt.Sprintf(`{"outcomes":[{"id":%q,"status":%q}]}`+"\n", c.ID, status)
	if a.body != want {
		h.s.t.Fatalf("settle of %s: %s, want %s", c.ID, a.body, want)
	}
}

// complete runs the next task of a queue.
func (h *hand) complete(queue, result string) claimed {
	h.s.t.Helper()
	c := h.take(queue)
	h.settle(c, "COMPLETED", `"verb":"complete","result":`+result)
	return c
}

// enqueue enqueues a task and returns its id.
func (s *stage) enqueue(kind, queue string) string {
	s.t.Helper()
	return s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":%q,"queue":%q}`, kind, queue)).text("id")
}

// contextOf returns a context that a test can end before its clients are closed.
func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// scripts returns how often the server of Redis has called functions or scripts so far.
func (s *stage) scripts() (n int) {
	s.t.Helper()
	text, err := s.q.Client().Info(s.t.Context(), "commandstats").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"fcall", "fcall_ro", "evalsha", "evalsha_ro"} {
		if _, rest, found := strings.Cut(text, "cmdstat_"+name+":calls="); found {
			var calls int
			fmt.Sscanf(rest, "%d", &calls)
			n += calls
		}
	}
	return n
}
