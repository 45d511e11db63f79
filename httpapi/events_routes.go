package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"

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
	Next   events.Cursor  `json:"next"`
}

func eventRoutes() []route {
	return []route{
		{ID: "getEvents", Method: http.MethodGet, Path: "events", Role: Read, Poll: true, Stream: true,
			Summary: "Returns events behind a cursor, and the next cursor. With wait, it waits for some. With Accept: text/event-stream the answer is a stream that does not end",
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
	from := events.Cursor(c.query.text("after"))
	if last := c.request.Header.Get(lastEventID); last != "" && c.streams() {
		from = events.Cursor(last)
	}
	f := &follower{c: c, at: positionOf(from)}
	defer f.close()
	first, err := f.read(c.query.number("limit"))
	if err == nil {
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
	answer := eventList{Events: c.ofInterest(batch.Events)}
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
			answer.Events = c.ofInterest(batch.Events)
		}
	}
	answer.Next = f.at.cursor()
	return answer, nil
}

// ofInterest returns the events that the request is about, without texts of users if they are hidden.
func (c *call) ofInterest(all []events.Event) []events.Event {
	some := []events.Event{}
	for _, e := range all {
		if c.wants(&e) {
			if c.hides() {
				inspect.Hide(&e)
			}
			some = append(some, e)
		}
	}
	return some
}

func (c *call) wants(e *events.Event) bool {
	is := func(name, value string) bool {
		list := c.query.list(name)
		return list == nil || slices.Contains(list, value)
	}
	task := c.query.text("task")
	return is("kind", e.Kind) && is("task_kind", e.TaskKind) && is("queue", e.Queue) &&
		(task == "" || e.TaskID == task || strings.HasPrefix(e.TaskID, task+".") || strings.HasPrefix(e.TaskID, task+"!"))
}
