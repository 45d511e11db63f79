package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/events"
)

const comeAgain = 3 * time.Second // when a client connects again after the stream has ended

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
// The last event says why. A client that connects again with the id of the last event that it has received misses none.
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
	out.add("retry: %d\n\n", comeAgain.Milliseconds())
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
		beat, stop := context.WithTimeoutCause(ctx, c.server.silentFor, errWaitOver)
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
	told := true
	for i := range batch.Events {
		e := &batch.Events[i]
		s.at.pass(e)
		some := s.c.ofInterest(batch.Events[i : i+1])
		if told = len(some) > 0; told {
			text, _ := some[0].MarshalJSON()
			s.add("id: %s\nevent: %s\ndata: %s\n\n", s.at.cursor(), kindOf(e), text)
		}
	}
	if !told {
		s.add("id: %s\n\n", s.at.cursor())
	}
}

// kindOf returns the name of an event for a line of its own.
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
	case errors.Is(err, errNotKnown):
		word, sentence = noLongerKnown().Problem.Error.Word, noLongerKnown().Error()
	case errors.Is(err, errSlow):
		word, sentence = "slow", "the client reads more slowly than events come: connect again with Last-Event-ID, and read faster or filter"
	}
	text, _ := json.Marshal(map[string]string{"word": word, "sentence": sentence})
	s.add("retry: %d\nevent: end\ndata: %s\n\n", comeAgain.Milliseconds(), text)
	s.send()
}

// send writes what was added. It gives a client that does not read some time.
func (s *stream) send() error {
	s.http.SetWriteDeadline(time.Now().Add(s.c.server.patientFor))
	_, err := s.c.writer.Write([]byte(s.text.String()))
	s.text.Reset()
	if err != nil {
		return err
	}
	return s.http.Flush()
}
