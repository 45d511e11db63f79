package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/httpapi"
	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/queue"
)

// given are the fields of a task by name, as texts.
type given map[string]string

// with returns the fields and another one.
func (g given) with(name, value string) given {
	all := maps.Clone(g)
	all[name] = value
	return all
}

func (g given) json() string {
	text, _ := json.Marshal(g)
	return string(text)
}

// door is a way to enqueue a task of the kind k.
type door struct {
	name    string
	enqueue func(t *testing.T, g given) (id string, err error)
}

// doors returns each way to enqueue, with the namespace to which it leads.
func doors(t *testing.T, rdb *redis.Client, url string) ([]door, []*queue.Queue) {
	var list []door
	var namespaces []*queue.Queue
	add := func(name string, enqueue func(t *testing.T, q *queue.Queue, g given) (string, error)) {
		q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: name, Logger: slog.New(slog.DiscardHandler)})
		if err == nil { // so that none and a field that is left out differ
			err = q.Configure(t.Context(), queue.Settings{DefaultTimeout: 7 * time.Hour})
		}
		if err != nil {
			t.Fatal(err)
		}
		namespaces = append(namespaces, q)
		list = append(list, door{name, func(t *testing.T, g given) (string, error) { return enqueue(t, q, g) }})
	}
	run := func(t *testing.T, input string, args ...string) (string, error) {
		code, out, errs := command(t, url, input, args...)
		if code != 0 {
			return "", fmt.Errorf("exit %d: %s", code, errs)
		}
		return strings.TrimSpace(out), nil
	}
	add("batch", func(t *testing.T, q *queue.Queue, g given) (string, error) {
		return run(t, g.with("kind", "k").json(), "enqueue", "--namespace", "batch", "--batch", "-")
	})
	add("flags", func(t *testing.T, q *queue.Queue, g given) (string, error) {
		args := []string{"enqueue", "--namespace", "flags"}
		for name, value := range g {
			f, _ := field.ByName(name)
			if name != f.Plain() && name != f.InJSON() || f.Type == field.Span && (name != f.Plain() || flagsDiffer[value]) || flagsReadNumbers[value] && (value != "1" || f.Type == field.Instant) {
				return "", errNoFlag
			}
			args = append(args, "--"+f.FlagName()+"="+value)
		}
		id, err := run(t, "", append(args, "k")...)
		if err != nil && strings.Contains(err.Error(), "there is no flag --") {
			return "", errNoFlag
		}
		return id, err
	})
	add("http", func(t *testing.T, q *queue.Queue, g given) (string, error) {
		api, err := httpapi.New(httpapi.Config{Queues: []*queue.Queue{q}, Public: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/http/tasks", strings.NewReader(g.with("kind", "k").json()))
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		var task struct {
			ID string `json:"id"`
		}
		if answer.Code >= 300 {
			return "", fmt.Errorf("%d %s", answer.Code, answer.Body)
		}
		return task.ID, json.Unmarshal(answer.Body.Bytes(), &task)
	})
	add("function", func(t *testing.T, q *queue.Queue, g given) (string, error) {
		args := []any{"k"}
		for name, value := range g {
			args = append(args, name, value)
		}
		return rdb.FCall(t.Context(), "curfew_enqueue", []string{q.Root(0)}, args...).Text()
	})
	add("functions", func(t *testing.T, q *queue.Queue, g given) (string, error) {
		reply, err := rdb.FCall(t.Context(), "curfew_enqueue_many", []string{q.Root(0)}, "["+g.with("kind", "k").json()+"]").Slice()
		if err != nil {
			return "", err
		}
		return fmt.Sprint(reply[0].([]any)[1]), nil
	})
	add("kind", func(t *testing.T, q *queue.Queue, g given) (string, error) {
		args := []string{"set", "--redis", url, "--namespace", "kind"}
		for name, value := range g {
			f, _ := field.ByName(name)
			if f.By != field.Kind || f.Type == field.Span && (name != f.Plain() || flagsDiffer[value]) || value == "none" && name != "timeout" || flagsReadNumbers[value] || value == "" || name == "warn_percent" && value == "0" {
				return "", errNoFlag
			}
			args = append(args, "--"+f.FlagName()+"="+value)
		}
		var out, errs strings.Builder
		if code := runWith(t.Context(), append([]string{"curfew", "kind"}, append(args, "k")...), strings.NewReader(""), &out, &errs); code != 0 {
			if strings.Contains(errs.String(), "there is no flag --") {
				return "", errNoFlag
			}
			return "", fmt.Errorf("exit %d: %s", code, &errs)
		}
		return rdb.FCall(t.Context(), "curfew_enqueue", []string{q.Root(0)}, "k").Text()
	})
	return list, namespaces
}

var errNoFlag = fmt.Errorf("the command has no flag for it")

// flagsDiffer are durations that flags read in their own way: a flag that is empty or 0 is as if it were left out, and a back-off of 0 is none.
var flagsDiffer = map[string]bool{"0s": true, "": true}

// flagsReadNumbers are numbers that flags read in their own way: they take a plus, numbers of up to 2^31, no instant before 2001 in ms, and 0
// percent as if it were left out.
var flagsReadNumbers = map[string]bool{"+1": true, "9007199254740992": true, "1": true}

// goHasNoValue are values that the functions take, and a queue.Task cannot have: durations of more than 292 years, an instant or a
// retention of 0, and a longest back-off of none.
var goHasNoValue = map[string]bool{
	"queue_timeout_ms 9007199254740992": true, "attempt_timeout_ms 9007199254740992": true, "cancel_grace_ms 9007199254740992": true, "timeout_grace_ms 9007199254740992": true,
	"retention_ms 9007199254740992": true, "backoff_delay_ms 9007199254740992": true, "backoff_max_ms 9007199254740992": true, "available_at 0": true,
	"idempotency_window_ms 9007199254740992": true, "retention 0s": true, "retention_ms 0": true, "backoff_max none": true, "backoff_max_ms none": true,
}

// needsBeside are the fields that a field needs beside it.
var needsBeside = map[string]given{
	"on_timeout": {"max_retries": "1"}, "retry_expression": {"max_retries": "1", "on_timeout": "fail"}, "backoff": {"backoff_delay": "1s"}, "backoff_max": {"backoff_delay": "1s"},
	"jitter": {"backoff_delay": "1s"}, "warn_percent": {"timeout": "1h"}, "idempotency_scope": {"idempotency_key": "key"},
	"idempotency_window": {"idempotency_key": "key", "idempotency_scope": "window"},
}

// texts are values of the fields that are texts, by name.
var texts = map[string][]string{
	"id":               {"0-a", "0-a_b-c", "0-", "a", "1-a", "0-a b", "0-a!success", "0-nobody.1", "0-" + strings.Repeat("x", 510), "0-" + strings.Repeat("x", 511)},
	"queue":            {"mail", "a.b-c_d", "a b", "-a", strings.Repeat("q", 128), strings.Repeat("q", 129)},
	"retry_expression": {"tasks.k.code == 3", "true"},
	"idempotency_key":  {"key", "a b é", strings.Repeat("k", 512), strings.Repeat("k", 513)},
	"retry_of":         {"0-a", "a", "0-a b", "0-a!success"},
}

// valuesOf returns values of a field, valid and not.
func valuesOf(f *field.Field, at time.Time) map[string][]string {
	name, ms := f.Plain(), f.InJSON()
	number := func(least, most int64) []string {
		return []string{fmt.Sprint(least), fmt.Sprint(most), fmt.Sprint(least - 1), fmt.Sprint(uint64(most) + 1), "1.5", "1e1", "x", " 1", "+1", "none", ""}
	}
	switch f.Type {
	case field.Number, field.Percent:
		return map[string][]string{name: number(f.Least, f.Most)}
	case field.Word:
		return map[string][]string{name: append(slices.Clone(f.Words), "other", strings.ToUpper(f.Words[0]), "none", "")}
	case field.Span:
		return map[string][]string{
			name: {"1ms", "30s", "1h30m", "1.5h", "1d12h", "1us", "0.5ms", "30", "-1s", "soon", "1w", " 1s", "106751d", "200000d", "none", "0s", ""},
			ms:   {"1", "30000", "-1", "1.5", "1e3", "x", "none", "0", "9007199254740992", "9007199254740993", "99999999999999999999", ""},
		}
	case field.Instant:
		return map[string][]string{name: {fmt.Sprint(at.Add(time.Hour).UnixMilli()), "1", "0", "-1", "1.5", "tomorrow", "none", "9007199254740992", "9007199254740993", ""}}
	case field.Hook:
		return map[string][]string{name: {"a", "a/b:c mail", "none", "none mail", "a b c", " a", "a ", "flow/wait", "a b:c", strings.Repeat("a", 128), strings.Repeat("a", 129), ""}}
	}
	return map[string][]string{name: append(slices.Clone(texts[name]), "")}
}

// Each field that a producer can set, with good values and bad ones, makes the same task through each door, or is refused by all.
func TestEachFieldMeansTheSameThroughEachDoor(t *testing.T) {
	rdb, url := database(t)
	ways, namespaces := doors(t, rdb, url)
	at, err := rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for i := range field.All {
		f := &field.All[i]
		if f.By == field.Client || f.Name == "kind" || f.Type == field.Object || f.Name == "budget_percent" {
			continue
		}
		for name, values := range valuesOf(f, at) {
			for _, value := range values {
				if goHasNoValue[name+" "+value] {
					continue
				}
				g := given{name: value}
				maps.Copy(g, needsBeside[f.Plain()])
				if value == "window" {
					g["idempotency_window"] = "1h"
				}
				tried++
				compareDoors(t, ways, namespaces, g)
				rdb.FlushDB(t.Context())
				ways, namespaces = doors(t, rdb, url)
			}
		}
	}
	t.Logf("%d values", tried)
}

// A back-off is set as a whole: a part without the delay is refused, and one with the delay replaces that of the kind, through each door.
func TestABackoffMeansTheSameThroughEachDoor(t *testing.T) {
	rdb, url := database(t)
	ways, namespaces := doors(t, rdb, url)
	ways, namespaces = ways[:len(ways)-1], namespaces[:len(namespaces)-1] // the last one sets the kind itself
	of := queue.Defaults{MaxRetries: 5, Backoff: queue.Backoff{Delay: time.Minute, Exponential: true, Max: time.Hour, Jitter: 0.5}}
	for i, defaults := range []queue.Defaults{{}, of} {
		for _, q := range namespaces {
			if err := q.DefineKind(t.Context(), "k", defaults); err != nil {
				t.Fatal(err)
			}
		}
		for _, g := range []given{
			{"backoff_max": "1m"}, {"jitter": "10"}, {"backoff": "exponential"}, {"backoff_max": "1m", "max_retries": "3"}, {"backoff_max": "1m", "jitter": "10"},
			{"backoff_delay": "1s"}, {"backoff_delay": "1s", "jitter": "10"}, {"backoff_delay": "1s", "backoff_max": "1m"}, {"backoff_delay": "1s", "backoff": "exponential"}, {"backoff_delay": "none"},
		} {
			results := map[string]bool{}
			for n, way := range ways {
				id, err := way.enqueue(t, g)
				if err == errNoFlag {
					t.Fatalf("%s: %v", way.name, err)
				}
				result := "refused"
				if err == nil {
					r := get(t, namespaces[n], id)
					var d queue.Defaults
					field.Defaults(&d, r.Fields)
					if d.Backoff.Delay <= 0 {
						d.Backoff = queue.Backoff{} // the rest has no effect
					}
					result = fmt.Sprintf("%+v", d.Backoff)
				}
				results[result] = true
				if want := g["backoff_delay"] == ""; want != (result == "refused") {
					t.Errorf("%s with defaults %d through %s: %s (%v)", g.json(), i, way.name, result, err)
				}
			}
			if len(results) != 1 {
				t.Errorf("%s with defaults %d: %v", g.json(), i, results)
			}
		}
	}
}

func compareDoors(t *testing.T, ways []door, namespaces []*queue.Queue, g given) {
	t.Helper()
	results := map[string][]string{}
	for i, way := range ways {
		id, err := way.enqueue(t, g)
		if err == errNoFlag {
			continue
		}
		result := "refused"
		if err == nil {
			result = content(t, namespaces[i], id)
		}
		results[result] = append(results[result], fmt.Sprintf("%s (%v)", way.name, err))
	}
	if len(results) > 1 {
		var text strings.Builder
		for result, by := range results {
			fmt.Fprintf(&text, "\n%s\n  by %s", result, strings.Join(by, "\n     "))
		}
		t.Errorf("%s is%s", clipped(g.json()), clipped(text.String()))
	}
}

func clipped(text string) string { return text[:min(len(text), 1500)] }

// content returns what a record says of the task, without the instants that differ from one namespace to the next.
func content(t *testing.T, q *queue.Queue, id string) string {
	r := get(t, q, id)
	f := maps.Clone(r.Fields)
	for _, name := range []string{"created_at", "enqueued_by", "number"} {
		delete(f, name)
	}
	for name, absent := range map[string]string{"priority": "0", "jitter": "0", "backoff": "constant", "on_timeout": "fail", "max_retries": "0", "backoff_ms": "0"} {
		if f[name] == absent {
			delete(f, name)
		}
	}
	for name, at := range map[string]time.Time{"deadline_at": r.Deadline, "available_at": r.AvailableAt, "limit_at": r.LimitAt, "warn_at": r.WarnAt} {
		delete(f, name)
		if !at.IsZero() {
			f[name] = "after " + at.Sub(r.CreatedAt).Round(time.Minute).String()
		}
	}
	if !strings.HasPrefix(id, "0-a") {
		id = "made"
	}
	return fmt.Sprint(id, " ", f)
}
