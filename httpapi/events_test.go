package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// eventful starts a Server over a namespace of two partitions that writes all events.
func eventful(t *testing.T) *stage {
	t.Helper()
	rdb, name := redistest.Shared(t).Client(t), redistest.Namespace(t)
	queuetest.Open(t, rdb, queue.Config{Namespace: name, Partitions: 2, Events: "all"})
	return newStageOn(t, rdb, name, Config{})
}

func (a answered) eventIDs() (all []string) {
	list, _ := a.json["events"].([]any)
	for _, e := range list {
		all = append(all, e.(map[string]any)["task_id"].(string))
	}
	return all
}

func TestEventsAreReadByCursor(t *testing.T) {
	s := eventful(t)
	var want, got []string
	for i := range 7 {
		want = append(want, s.enqueue("k", fmt.Sprint("q", i%2)))
	}
	cursor := ""
	for range 10 {
		a := s.want(200, "GET", "events?limit=2"+cursor, "")
		got = append(got, a.eventIDs()...)
		cursor = "&after=" + a.text("next")
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if a := s.want(200, "GET", "events?queue=q1&kind=task_enqueued&task_kind=k", ""); len(a.eventIDs()) != 3 {
		t.Errorf("the events of a queue are %s", a.body)
	}
	if a := s.want(200, "GET", "events?task="+want[0], ""); len(a.eventIDs()) != 1 {
		t.Errorf("the events of a task are %s", a.body)
	}
	answers := make(chan answered, 1)
	go func() { answers <- s.do("GET", "events?wait=30s&queue=q2"+cursor, "") }()
	await.Until(t, "the request listens", func() bool { return s.listeners() == 1 })
	s.enqueue("k", "q1")
	id := s.enqueue("k", "q2")
	if a := await.Receive(t, answers, "the event"); !slices.Equal(a.eventIDs(), []string{id}) {
		t.Errorf("a wait is answered with %s, want %s", a.body, id)
	}
	await.Until(t, "the reading ends", func() bool { return s.listeners() == 0 })
	for query, field := range map[string]string{"after=x": "after", "after=0-0": "after", "limit=0": "limit", "limit=1001": "limit", "wait=1": "wait", "from=now": "from"} {
		if a := s.want(400, "GET", "events?"+query, ""); a.field() != field {
			t.Errorf("%s is answered with %s", query, a.body)
		}
	}
}

func (s *stage) listeners() int {
	h := &s.server.spaces[s.q.Namespace()].hub
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.readers)
}

// A cursor whose events were removed is refused, and the answer says what to do.
func TestACursorThatWasTrimmedIsGone(t *testing.T) {
	s := eventful(t)
	for range 4 {
		s.enqueue("k", "q")
	}
	cursor := s.want(200, "GET", "events?limit=1", "").text("next")
	for p := range 2 {
		if err := s.q.Client().XTrimMaxLen(t.Context(), s.q.EventsKey(p), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, accept := range []string{"application/json", "text/event-stream"} {
		a := s.want(410, "GET", "events?after="+cursor, "", func(r *http.Request) { r.Header.Set("Accept", accept) })
		if a.word() != "trimmed" || !strings.Contains(a.sentence(), "leave after out") {
			t.Errorf("a trimmed cursor is answered with %s", a.body)
		}
	}
}

// told is an event of a stream.
type told struct{ id, event, data string }

// open opens a stream. next returns its next event.
func (s *stage) open(query, last string, change ...func(*http.Request)) (next func() told, closes func()) {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(ctx, "GET", s.base+"events?"+query, nil)
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	for _, f := range change {
		f(r)
	}
	response, err := s.web.Client().Do(r)
	if err != nil || response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("the stream is answered with %v, %v", response, err)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	next = func() (e told) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case name == "id":
				e.id = value
			case name == "event":
				e.event = value
			case name == "data":
				e.data = value
			case lines.Text() == "" && e.event != "":
				return e
			}
		}
		return e
	}
	return next, func() { stop(); response.Body.Close() }
}

// A stream has all events, old and new, each with a cursor. A client that connects again with any of them misses none and gets none
// twice.
func TestAStreamOfEventsResumesAtAnyEvent(t *testing.T) {
	s := eventful(t)
	var want []string
	for range 5 {
		want = append(want, s.enqueue("k", "q"))
	}
	next, stop := s.open("", "")
	var all []told
	for range 5 {
		all = append(all, next())
	}
	await.Until(t, "the stream listens", func() bool { return s.listeners() == 1 })
	for range 5 {
		want = append(want, s.enqueue("k", "q"))
		all = append(all, next())
	}
	stop()
	for i, e := range all {
		if e.event != "task_enqueued" || e.id == "" {
			t.Fatalf("event %d is %+v", i, e)
		}
		if i%3 != 0 {
			continue
		}
		again, stop := s.open("after=now", e.id)
		var rest, got []string // sorted: events of two partitions in the same millisecond can come in either order
		for _, e := range all[i+1:] {
			rest, got = append(rest, e.data), append(got, again().data)
		}
		if slices.Sort(rest); !slices.Equal(slices.Sorted(slices.Values(got)), rest) {
			t.Errorf("after event %d come %q, want %q", i, got, rest)
		}
		id := s.enqueue("k", "q")
		if got := again(); !strings.Contains(got.data, `"`+id+`"`) && i == 0 {
			t.Errorf("then comes %s, want %s", got.data, id)
		}
		stop()
	}
	for _, id := range want {
		if !slices.ContainsFunc(all, func(e told) bool { return strings.Contains(e.data, `"`+id+`"`) }) {
			t.Errorf("%s is missing", id)
		}
	}
}

// The last event of a stream says why it ends.
func TestAStreamEndsWithTheServer(t *testing.T) {
	s := eventful(t)
	next, stop := s.open("after=now", "")
	defer stop()
	await.Until(t, "the stream listens", func() bool { return s.listeners() == 1 })
	s.server.Drain()
	if e := next(); e.event != "end" || !strings.Contains(e.data, `"word":"stopping"`) {
		t.Errorf("the last event is %+v", e)
	}
}

// A listener that does not take what the hub reads is cut off; the others are not.
func TestASlowReaderIsCutOff(t *testing.T) {
	s := eventful(t)
	space := s.server.spaces[s.q.Namespace()]
	slow, err := space.hub.join(t.Context(), s.server, s.q)
	if err != nil {
		t.Fatal(err)
	}
	next, stop := s.open("after=now", "")
	defer stop()
	await.Until(t, "both listen", func() bool { return s.listeners() == 2 })
	for range listenerBuffer {
		space.hub.broadcast(space.hub.runs, events.Batch{Gaps: []events.Gap{{Missed: 1}}, Next: "0-0@0,0-0@0"})
		next()
	}
	if s.listeners() != 2 {
		t.Error("a reader that is as far behind as it may be was cut off")
	}
	space.hub.broadcast(space.hub.runs, events.Batch{Gaps: []events.Gap{{Missed: 1}}, Next: "0-0@0,0-0@0"})
	await.Receive(t, slow.slow, "the end of the slow reader")
	if e := next(); e.event != "events_missed" || s.listeners() != 1 {
		t.Errorf("the other one gets %+v", e)
	}
	c := &call{server: s.server, space: space, q: s.q, Context: t.Context()}
	f := &follower{c: c, at: positionOf("0-0@0,0-0@0"), live: slow}
	for range listenerBuffer {
		<-slow.batches
	}
	if _, err := f.next(t.Context(), 1); err != errSlow {
		t.Errorf("the slow reader gets %v", err)
	}
}
