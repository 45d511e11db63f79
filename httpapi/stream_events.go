package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
)

const (
	mostEvents  = 1000
	usualEvents = "100"
	lastEventID = "Last-Event-ID" // the header of a client that connects again
)

// eventList is a part of the events, and the cursor behind them.
type eventList struct {
	Events []events.Event `json:"events"`
	Missed []events.Gap   `json:"missed,omitempty"` // without a cursor: the events that were removed before the oldest that is kept
	Next   events.Cursor  `json:"next"`
}

func eventRoutes() []route {
	return []route{
		{ID: "getEvents", Method: http.MethodGet, Path: "events", Role: Read, Poll: true, Stream: true,
			Summary: "Returns events behind a cursor, and the next cursor. With wait, it waits for some. With Accept: text/event-stream the answer is a stream that does not end. " +
				"Without a cursor, missed says for each partition how many events were removed before the oldest that is kept; in a stream, an event events_missed does. " +
				"Behind a cursor whose next events were removed, the status is 410",
			Query: []param{
				{Name: "after", Type: text, Doc: "a cursor that an answer had as next, or now; without it: from the oldest event that is kept"},
				wait(),
				{Name: "limit", Type: number, Doc: "the most events that are read for one answer", Default: usualEvents, Least: 1, Most: mostEvents},
				{Name: "kind", Type: list, Doc: "only events of these kinds, such as task_completed"},
				{Name: "task_kind", Type: list, Doc: "only events of tasks of these kinds"},
				{Name: "queue", Type: list, Doc: "only events of tasks in these queues"},
				{Name: "task", Type: text, Doc: "only events of this task and of the tasks below it"},
				hidePayloads,
			},
			Answer: eventList{}, Status: []int{200}, Errors: []int{410}, Serve: getEvents},
	}
}

func getEvents(c *call) (any, error) {
	cursor := events.Cursor(c.query.text("after"))
	if last := c.request.Header.Get(lastEventID); last != "" && c.streams() {
		cursor = events.Cursor(last)
	}
	f := &follower{c: c, at: positionOf(cursor)}
	defer f.close()
	first, err := f.read(c.query.number("limit"))
	if err == nil && cursor != events.Oldest {
		err = lostEvents(first)
	}
	if err != nil {
		var at *failure
		if at = failureOf(err); at.Problem.Error.Field == "cursor" {
			at.of("after")
		}
		return nil, at
	}
	if c.streams() {
		return nil, c.stream(f, first)
	}
	return c.pollEvents(f, first)
}

// lostEvents returns the failure for a cursor whose events are gone.
func lostEvents(batch events.Batch) error {
	if len(batch.Gaps) == 0 {
		return nil
	}
	if batch.Gaps[0].SetBack {
		return fail(http.StatusGone, "set_back", "Redis has lost data, and the events are older than this cursor: leave after out to read from the oldest event that is kept").of("after")
	}
	return fail(http.StatusGone, "trimmed", "%d events behind this cursor were removed before they were read: leave after out to read from the oldest event that is kept", batch.Gaps[0].Missed).of("after")
}

// pollEvents answers when there are events that the filters let pass, or the wait is over.
func (c *call) pollEvents(f *follower, batch events.Batch) (any, error) {
	answer := eventList{Events: c.selected(batch.Events), Missed: batch.Gaps}
	if len(answer.Events) == 0 && c.waits() {
		ctx, over, stop := c.await()
		defer stop()
		for len(answer.Events) == 0 {
			batch, err := f.next(ctx, c.query.number("limit"))
			if err == nil {
				err = lostEvents(batch)
			}
			if err != nil && (over() || errors.Is(err, errSlow)) { // the client reads on with the cursor
				break
			}
			if err != nil {
				return nil, err
			}
			answer.Events = c.selected(batch.Events)
		}
	}
	answer.Next = f.at.cursor()
	return answer, nil
}

// selected returns the events that the request is about, without texts of users if they are hidden.
func (c *call) selected(all []events.Event) []events.Event {
	batch := []events.Event{}
	for _, e := range all {
		if c.wants(&e) {
			if c.hides() {
				inspect.Hide(&e)
			}
			batch = append(batch, e)
		}
	}
	return batch
}

func (c *call) wants(e *events.Event) bool {
	matches := func(name, value string) bool {
		list := c.query.list(name)
		return list == nil || slices.Contains(list, value)
	}
	task := c.query.text("task")
	return matches("kind", e.Kind) && matches("task_kind", e.TaskKind) && matches("queue", e.Queue) &&
		(task == "" || e.TaskID == task || strings.HasPrefix(e.TaskID, task+".") || strings.HasPrefix(e.TaskID, task+"!"))
}

const reconnectAfter = 3 * time.Second // when a client connects again after the stream has ended

// streams reports whether the answer is a stream of events.
func (c *call) streams() bool {
	if !c.route.Stream || c.request.Method == http.MethodHead {
		return false
	}
	for accepted := range strings.SplitSeq(strings.Join(c.request.Header.Values("Accept"), ","), ",") {
		if kind, _, err := mime.ParseMediaType(accepted); err == nil && kind == "text/event-stream" {
			return true
		}
	}
	return false
}

// stream writes events until the client is gone or no longer known, the server stops, Redis is silent, or the client reads too slowly.
// The last event has the reason. A client that connects again with the id of the last event that it has received misses none.
func (c *call) stream(f *follower, batch events.Batch) error {
	if !canFlush(c.writer) {
		return fail(http.StatusInternalServerError, "internal", "a stream cannot pass a middleware of this server, whose ResponseWriter has no method Unwrap: add it, or read events without Accept: text/event-stream").because(errNoFlush)
	}
	c.status = http.StatusOK
	header := c.writer.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // nginx would keep the events back
	c.writer.WriteHeader(http.StatusOK)
	out := &stream{c: c, http: http.NewResponseController(c.writer)}
	out.add("retry: %d\n\n", reconnectAfter.Milliseconds())
	out.at = f.at.before(batch.Events)
	out.add("id: %s\n\n", out.at.cursor()) // a client that connects again before the first event misses none
	ctx, drained := context.WithCancelCause(c.Context)
	defer drained(nil)
	defer context.AfterFunc(c.server.draining, func() { drained(errWaitOver) })()
	for {
		out.events(batch)
		if err := out.send(); err != nil {
			return nil // the client is gone, or does not read
		}
		beat, stop := context.WithTimeoutCause(ctx, c.server.commentAfter, errWaitOver)
		var err error
		batch, err = f.next(beat, mostEvents)
		quiet := err != nil && ctx.Err() == nil && beat.Err() != nil
		stop()
		switch {
		case err == nil:
		case quiet:
			out.add(": no events\n\n")
		default:
			out.end(err, c.server.draining.Err() != nil)
			return nil
		}
	}
}

var errNoFlush = errors.New("the ResponseWriter of a middleware has neither Flush nor Unwrap, so that no stream of events can pass: add Unwrap")

// canFlush reports whether parts of an answer can be sent before its end: as http.ResponseController does it.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// stream is an answer that is written in parts.
type stream struct {
	c    *call
	http *http.ResponseController
	at   *position // behind the last event that was written
	text strings.Builder
}

func (s *stream) add(format string, args ...any) { fmt.Fprintf(&s.text, format, args...) }

// events adds the events of a batch that the client wants. Of the others it gets the last cursor.
func (s *stream) events(batch events.Batch) {
	for _, gap := range batch.Gaps {
		text, _ := json.Marshal(gap)
		s.add("event: events_missed\ndata: %s\n\n", text)
	}
	if len(batch.Gaps) > 0 {
		s.at = positionOf(batch.Next).before(batch.Events)
	}
	sent := true
	for i := range batch.Events {
		e := &batch.Events[i]
		s.at.advance(e)
		selected := s.c.selected(batch.Events[i : i+1])
		if sent = len(selected) > 0; sent {
			text, _ := selected[0].MarshalJSON()
			s.add("id: %s\nevent: %s\ndata: %s\n\n", s.at.cursor(), kindOf(e), text)
		}
	}
	if !sent {
		s.add("id: %s\n\n", s.at.cursor())
	}
}

// kindOf returns the event name of a server-sent event that has its own kind of line.
func kindOf(e *events.Event) string {
	if e.Kind == "" || strings.ContainsFunc(e.Kind, func(r rune) bool { return r <= ' ' }) {
		return "message"
	}
	return e.Kind
}

// end adds the last event.
func (s *stream) end(err error, stops bool) {
	word, sentence := "unavailable", "Redis does not answer: connect again with Last-Event-ID"
	switch {
	case stops:
		word, sentence = "stopping", "the server stops: connect again with Last-Event-ID"
	case errors.Is(err, errRevoked):
		word, sentence = revoked().Problem.Error.Word, revoked().Error()
	case errors.Is(err, errSlow):
		word, sentence = "slow", "the client reads more slowly than events come: connect again with Last-Event-ID, and read faster or filter"
	}
	text, _ := json.Marshal(map[string]string{"word": word, "sentence": sentence})
	s.add("retry: %d\nevent: end\ndata: %s\n\n", reconnectAfter.Milliseconds(), text)
	s.send()
}

// send writes the parts that were added. It returns an error if the client does not read them in time.
func (s *stream) send() error {
	s.http.SetWriteDeadline(time.Now().Add(s.c.server.writeTimeout))
	_, err := s.c.writer.Write([]byte(s.text.String()))
	s.text.Reset()
	if err != nil {
		return err
	}
	return s.http.Flush()
}
