package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

type (
	// limitBody has the limits of a queue: how many tasks run at once, how many are in line, and a rate. A limit that is left out stays; 0 removes it. The
	// members of a rate are set together, as by the command: without burst, it is as many as the rate.
	limitBody struct {
		MaxRunning *int   `json:"max_running,omitempty"`
		MaxLength  *int   `json:"max_length,omitempty"`
		Rate       *int   `json:"rate,omitempty"`
		Per        *int64 `json:"per_ms,omitempty"`
		Burst      int    `json:"burst,omitempty"`
	}
	drained struct {
		Queue     string `json:"queue"`
		Cancelled int64  `json:"cancelled"`
	}
	kindDefaults struct {
		Kind     string       `json:"kind"`
		Defaults lines.Stored `json:"fields"`
	}
)

func controlRoutes() []route {
	force := param{Name: "force", Type: flag, Doc: "do it even if the queue does not exist yet; it applies once the queue has a task"}
	change := func(id, word, summary string, body, answer any, serve func(*call) (any, error)) route {
		return route{ID: id, Method: http.MethodPost, Path: "queues/{queue}/" + word, Role: Operate, Summary: summary, Query: []param{force}, Body: body, Answer: answer, Status: []int{200}, Serve: serve}
	}
	drain := change("drainQueue", "drain", "Cancels all tasks in the line of a queue. Tasks that run and delayed tasks stay", reasonBody{}, drained{}, drainQueue)
	drain.Bare = true
	return []route{
		change("pauseQueue", "pause", "Lets a queue give no tasks until it is resumed", nil, lines.Queue{}, pauseQueue),
		change("resumeQueue", "resume", "Lets a paused queue give tasks again", nil, lines.Queue{}, resumeQueue),
		change("limitQueue", "limit", "Limits how many tasks of a queue run at once (max_running), how many are in line before new tasks are refused (max_length), and how many start in a time (rate). A limit that is left out stays, and 0 removes it. A rate needs per_ms, and burst is how many start at once after a rest: as many as rate, if it is left out", limitBody{}, lines.Queue{}, limitQueue),
		drain,
		{ID: "setKind", Method: http.MethodPut, Path: "kinds/{kind}", Role: Operate, Summary: "Sets the defaults of a kind, for tasks that are enqueued from now on. What is left out has no default afterwards",
			Body: reflect.Zero(kindBody).Interface(), Answer: kindDefaults{}, Status: []int{200}, Serve: setKind},
	}
}

// queueName returns the name of the queue in the path. The queue must exist, unless the request has force.
func (c *call) queueName() (string, error) {
	name := c.path("queue")
	if c.query.flag("force") {
		return name, nil
	}
	queues, err := c.readQueues()
	if err != nil {
		return "", err
	}
	_, f := named("queue", name, queues)
	if f != nil {
		f.Problem.Error.Sentence += "; force=true is for one that has had no task yet"
	}
	return name, nothing(f)
}

// control changes a queue, and returns its line.
func control(c *call, change func(name string) error) (any, error) {
	name, err := c.queueName()
	if err != nil {
		return nil, err
	}
	if err := change(name); err != nil {
		return nil, err
	}
	queues, err := c.readQueues()
	l := queues[name]
	l.Queue = name
	return l, err
}

func pauseQueue(c *call) (any, error) {
	return control(c, func(name string) error { _, err := c.q.Pause(c, name); return err })
}

func resumeQueue(c *call) (any, error) {
	return control(c, func(name string) error { _, err := c.q.Resume(c, name); return err })
}

func limitQueue(c *call) (any, error) {
	var body limitBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	rate, f := body.check(c.q.Partitions())
	if f != nil {
		return nil, f
	}
	return control(c, func(name string) error {
		if body.MaxRunning != nil {
			if _, err := c.q.LimitRunning(c, name, *body.MaxRunning); err != nil {
				return err
			}
		}
		if body.MaxLength != nil {
			if _, err := c.q.LimitLength(c, name, *body.MaxLength); err != nil {
				return err
			}
		}
		if body.Rate == nil {
			return nil
		}
		_, err := c.q.LimitRate(c, name, rate)
		return err
	})
}

const mostPer = 365 * 24 * time.Hour

// check returns the rate. It validates the whole body before anything is changed.
func (b limitBody) check(partitions int) (rate queue.Rate, f *failure) {
	switch {
	case b.Rate == nil && (b.Per != nil || b.Burst != 0):
		return rate, wrong("rate", "is missing: per_ms and burst need it")
	case b.MaxRunning == nil && b.MaxLength == nil && b.Rate == nil:
		return rate, wrong("body", "must have max_running, max_length, or rate and per_ms")
	case b.MaxLength != nil && (*b.MaxLength < 0 || *b.MaxLength > 1<<53):
		return rate, wrong("max_length", "%d must be 1 to 2^53, or 0, which removes the limit", *b.MaxLength)
	case b.MaxRunning != nil && *b.MaxRunning < 0:
		return rate, wrong("max_running", "must not be negative: 0 removes the limit")
	case b.MaxRunning != nil && *b.MaxRunning > 0 && *b.MaxRunning < partitions:
		return rate, wrong("max_running", "%d cannot be shared by %d partitions: allow at least %d", *b.MaxRunning, partitions, partitions)
	case b.Rate == nil || *b.Rate == 0 && b.Per == nil && b.Burst == 0:
		return rate, nil
	case *b.Rate < 1 || *b.Rate > 1<<53:
		return rate, wrong("rate", "%d must be 1 to 2^53, or 0 alone, which removes the limit", *b.Rate)
	case b.Per == nil:
		return rate, wrong("per_ms", `is missing: a rate is so many tasks in so many ms, such as {"rate":10,"per_ms":1000}`)
	case *b.Per < 1 || *b.Per > mostPer.Milliseconds():
		return rate, wrong("per_ms", "%d must be the time in which so many tasks start, in ms", *b.Per)
	case b.Burst < 0:
		return rate, wrong("burst", "must not be negative")
	case cmp.Or(b.Burst, *b.Rate) < partitions:
		return rate, wrong("burst", "%d cannot be shared by %d partitions, since each gives its first task at once: allow at least %d", cmp.Or(b.Burst, *b.Rate), partitions, partitions)
	}
	return queue.Rate{N: *b.Rate, Per: ms(*b.Per), Burst: b.Burst}, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func drainQueue(c *call) (any, error) {
	var body reasonBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	name, err := c.queueName()
	if err != nil {
		return nil, err
	}
	if body.Reason == "" {
		body.Reason = "drained"
	}
	n, err := c.q.Drain(c, name, body.Reason)
	if err != nil {
		return nil, err
	}
	return drained{name, n}, nil
}

func setKind(c *call) (any, error) {
	body, d := reflect.New(kindBody), queue.Defaults{}
	if f := c.read(body.Interface()); f != nil {
		return nil, f
	}
	needsDelay := false
	for i, f := range kindFields() {
		value := reflect.Indirect(body.Elem().Field(i))
		switch {
		case !value.IsValid(): // a time that is left out
			continue
		case f.Type == field.Span && value.Interface() == noTime:
			f.Set(&d, "none")
			continue
		case f.Type == field.Span && (value.Int() < 0 || value.Int() > longestSpan.Milliseconds()):
			return nil, wrong(f.InJSON(), "must be a span in ms, up to 100 years")
		case f.In(&d).Kind() == reflect.Bool && !value.IsZero() && !slices.Contains(f.Words, value.String()):
			return nil, wrong(f.InJSON(), "must be %s", strings.Join(f.Words, " or "))
		}
		needsDelay = needsDelay || strings.HasPrefix(f.Go, "Backoff.") && !value.IsZero()
		f.Set(&d, fmt.Sprint(value))
	}
	if needsDelay && d.Backoff.Delay == 0 {
		return nil, wrong("backoff_delay_ms", "is missing: backoff, backoff_max_ms and jitter need it")
	}
	kind := c.path("kind")
	if err := c.q.DefineKind(c, kind, d); err != nil {
		return nil, err
	}
	kinds, err := c.q.Kinds(c)
	return kindDefaults{kind, lines.Stored(kinds[kind])}, err
}

// kindBody is the type of a body that has all defaults of a kind. What is left out has no default afterwards.
var kindBody = func() reflect.Type {
	var members []reflect.StructField
	for _, f := range kindFields() {
		member := reflect.StructField{Name: strings.ReplaceAll(f.Go, ".", ""), Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`json:"` + f.InJSON() + `,omitempty"`)}
		switch f.Type {
		case field.Span:
			member.Type = reflect.TypeFor[*msOrNone]() // 0 can be a value
		case field.Number, field.Percent:
			member.Type = reflect.TypeFor[int]()
		}
		members = append(members, member)
	}
	return reflect.StructOf(members)
}()

// msOrNone is a time in ms. In JSON it can be "none".
type msOrNone int64

const noTime msOrNone = math.MinInt64

// UnmarshalJSON reads a whole number or "none".
func (ms *msOrNone) UnmarshalJSON(text []byte) error {
	if string(text) == `"none"` {
		*ms = noTime
		return nil
	}
	var n int64
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	*ms = msOrNone(max(n, -1)) // no negative number is a time, or none
	return nil
}

func kindFields() (of []*field.Field) {
	for i := range field.All {
		if f := &field.All[i]; f.By == field.Kind {
			of = append(of, f)
		}
	}
	return of
}
