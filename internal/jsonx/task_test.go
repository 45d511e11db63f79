package jsonx_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const maxBytes = 1 << 20

// members has values of each name that a valid task can have. Those of one line exclude each other.
func members(at time.Time) [][]string {
	later := fmt.Sprint(at.Add(time.Hour).UnixMilli())
	return [][]string{
		{`"id":"0-A1"`, `"id":"0-order_17-x"`, `"id":null`},
		{`"payload":{"a": [1.0, 2e3,  ""]}`, `"payload":"text"`, `"payload":null`, `"payload":12345678901234567890`, `"payload":"` + strings.Repeat("x", 300) + `"`},
		{`"queue":"mail"`, `"queue":null`},
		{`"headers":{"a":"1","b":"é"}`, `"headers":{}`},
		{`"timeout":"30s"`, `"timeout":"1d12h"`, `"timeout_ms":3600000`, `"timeout_ms":"70000"`, `"timeout":"none"`, `"timeout_ms":"none"`, `"deadline_at":` + later, `"deadline_at":"` + later + `"`},
		{`"delay":"5s"`, `"delay_ms":0`, `"delay":"0s"`, `"available_at":` + fmt.Sprint(at.Add(time.Second).UnixMilli())},
		{`"queue_timeout":"10s"`, `"queue_timeout":"none"`},
		{`"attempt_timeout":"1.5m"`, `"attempt_timeout_ms":500`, `"attempt_timeout_ms":"none"`},
		{`"max_retries":0`, `"max_retries":"3"`, `"max_retries":7,"on_timeout":"retry"`, `"max_retries":2,"on_timeout":"fail"`, `"max_retries":1,"retry_expression":"tasks.d.code == 3","on_timeout":"fail"`, `"max_retries":1,"retry_expression":"tasks.d.code == 3","on_timeout":"retry"`},
		{`"backoff_delay":"2s"`, `"backoff_delay_ms":2000,"backoff":"exponential","backoff_max":"1h","jitter":20`, `"backoff":"constant","backoff_delay":"1s"`, `"backoff_delay":"none"`},
		{`"priority":3`, `"priority":"0"`},
		{`"cancel_grace":"10s"`, `"cancel_grace_ms":"none"`},
		{`"timeout_grace":"2s"`, `"timeout_grace":"none"`},
		{`"on_deadline":"fail"`, `"on_deadline":"cancel_all"`},
		{`"hook_success":"mail"`, `"hook_failure":"mail urgent","hook_timeout":"a","hook_cancel":"b c"`},
		{`"retention":"1h"`, `"retention":"none"`, `"retention_ms":100000`},
		{`"idempotency_key":"key"`, `"idempotency_key":"key","idempotency_scope":"started"`, `"idempotency_key":"key","idempotency_scope":"window","idempotency_window":"10d"`},
		{`"retry_of":"0-OLD"`},
	}
}

// A task in JSON is stored alike, whether a function of Redis reads it or Go.
func TestATaskInJSONIsStoredAsByTheFunction(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		byGo, byLua := queuetest.Open(t, rdb, queue.Config{Namespace: "go"}), queuetest.Open(t, rdb, queue.Config{Namespace: "lua"})
		at, err := rdb.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		var objects []string
		for _, line := range members(at) {
			for _, member := range line {
				objects = append(objects, `{"kind":"d",`+member+`}`, `{ "kind" : "k" , `+strings.ReplaceAll(member, "tasks.d", "tasks.k")+` }`)
			}
		}
		objects = append(objects, `{"kind":"k","role":"promise"}`, `{"role":"timer","kind":"k","delay":"5s"}`, `{"kind":"d","warn_percent":80,"timeout":"1h"}`)
		seed := size.Seed()
		random := rand.New(rand.NewPCG(seed, 0))
		for range 60 {
			given := []string{`"kind":"d"`}
			for _, line := range members(at) {
				if random.IntN(2) == 0 {
					given = append(given, line[random.IntN(len(line))])
				}
			}
			random.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
			objects = append(objects, "{"+strings.Join(given, ",")+"}")
		}
		for _, object := range objects {
			rdb.FlushAll(t.Context())
			for _, namespace := range []string{"go", "lua"} {
				q := queuetest.Open(t, rdb, queue.Config{Namespace: namespace})
				if err := q.DefineKind(t.Context(), "d", queue.Defaults{Timeout: 48 * time.Hour, QueueTimeout: time.Hour, AttemptTimeout: time.Hour, CancelGrace: time.Second,
					TimeoutGrace: time.Second, Retention: 2 * time.Hour, MaxRetries: 4, OnTimeout: queue.OnTimeoutRetry,
					Backoff: queue.Backoff{Delay: 3 * time.Second, Exponential: true, Max: time.Hour, Jitter: 0.5}}); err != nil {
					t.Fatal(err)
				}
			}
			task, err := jsonx.ReadTask([]byte(object), maxBytes)
			if err != nil {
				t.Errorf("seed %d: ReadTask(%s): %v", seed, object, err)
				continue
			}
			receipt, goErr := byGo.Enqueue(t.Context(), task)
			reply, luaErr := rdb.Do(t.Context(), "FCALL", "curfew_enqueue_many", 1, "lua:{0}", "["+object+"]").Slice()
			if goErr != nil || luaErr != nil {
				if (goErr == nil) != (luaErr == nil) {
					t.Errorf("seed %d: %s: Go %v, the function %v", seed, object, goErr, luaErr)
				}
				continue
			}
			words := reply[0].([]any)
			compare(t, object, record(t, byGo, receipt.ID), record(t, byLua, words[1].(string)))
		}
		t.Logf("sequences: %d", 60)
	})
}

func record(t *testing.T, q *queue.Queue, id string) *queue.Record {
	t.Helper()
	r, err := q.Get(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compare compares what two tasks were enqueued as. Absent fields mean their defaults (docs/reference/keys.md).
func compare(t *testing.T, object string, byGo, byLua *queue.Record) {
	t.Helper()
	var got [2]map[string]string
	for i, r := range []*queue.Record{byGo, byLua} {
		f := maps.Clone(r.Fields)
		for name, absent := range map[string]string{"priority": "0", "jitter": "0", "backoff": "constant", "on_timeout": "fail", "max_retries": "0", "on_deadline": "cancel_all", "headers": "{}"} {
			if f[name] == absent {
				delete(f, name)
			}
		}
		if f["backoff_ms"] == "" {
			delete(f, "backoff") // they have no meaning without it
			delete(f, "backoff_max_ms")
			delete(f, "jitter")
		}
		for name := range f {
			if strings.HasSuffix(name, "_at") || name == "headers" {
				delete(f, name)
			}
		}
		delete(f, "enqueued_by") // so that Go knows a repeat
		f["payload"] = string(r.Payload)
		got[i] = f
	}
	if strings.Contains(object, `"backoff_delay":"2s"`) || strings.Contains(object, `"backoff":"constant"`) || strings.Contains(object, `"kind":"d"`) {
		for _, f := range got { // in Go no part of a kind's back-off is used with another one
			delete(f, "backoff")
			delete(f, "backoff_max_ms")
			delete(f, "jitter")
		}
	}
	if !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("%s is stored as\n%v by Go, and as\n%v by the function", object, got[0], got[1])
	}
	if !maps.Equal(byGo.Headers, byLua.Headers) {
		t.Errorf("%s: headers %v and %v", object, byGo.Headers, byLua.Headers)
	}
	for i, pair := range [][2]time.Time{{byGo.Deadline, byLua.Deadline}, {byGo.AvailableAt, byLua.AvailableAt}, {byGo.LimitAt, byLua.LimitAt}, {byGo.WarnAt, byLua.WarnAt}} {
		if d := pair[0].Sub(pair[1]).Abs(); pair[0].IsZero() != pair[1].IsZero() || d > 10*time.Second {
			t.Errorf("%s: instant %d is %v and %v", object, i, pair[0], pair[1])
		}
	}
}

// What both refuse, with what is told and where.
func TestATaskInJSONIsRefused(t *testing.T) {
	deep := strings.Repeat("[", 999) + strings.Repeat("]", 999)
	rows := []struct{ object, want string }{
		{``, "byte 1: JSON is missing"},
		{`  `, "byte 1: JSON is missing"},
		{`{`, "byte 1: JSON is not valid: unexpected end of JSON input"},
		{`{"kind":"k",}`, "byte 13: JSON is not valid"},
		{`{"kind":"k"} {}`, "byte 14: JSON is not valid"},
		{`[{"kind":"k"}]`, "byte 1: task must be a JSON object, such as"},
		{`"k"`, "byte 1: task must be a JSON object"},
		{"{\"kind\":\"k\",\"payload\":\"\xff\"}", "byte 24: JSON must be UTF-8"},
		{`{"kind":"k","payload":NaN}`, "byte 23: JSON is not valid"},
		{`{"kind":"k","payload":` + deep + `}`, "JSON is nested too deep: a payload may have 998 levels"},
		{`{}`, "byte 1: kind is missing"},
		{`{"kind":null}`, "kind is missing"},
		{`{"kind":""}`, "kind must not be empty"},
		{`{"kind":["k"]}`, "byte 9: kind must be a string or a number"},
		{`{"kind":"two words"}`, "byte 1: kind \"two words\" must be 1 to 128 of"},
		{`{"kind":"k","kind":"k"}`, "kind is given twice"},
		{`{"kind":"k","queue":null,"queue":null}`, "queue is given twice"},
		{`{"kind":"k","timeuot":"30s"}`, "byte 21: timeuot is not a known name: did you mean timeout?"},
		{`{"kind":"k","<\u001b>":1}`, `"<\x1b>" is not a known name`},
		{`{"kind":"k","timeout":"30"}`, `byte 23: timeout "30" has no unit: write 30s, or give timeout_ms in ms`},
		{`{"kind":"k","timeout":30}`, `byte 23: timeout "30" has no unit`},
		{`{"kind":"k","timeout":"soon"}`, `byte 23: timeout "soon"`},
		{`{"kind":"k","timeout":""}`, "timeout must not be empty"},
		{`{"kind":"k","timeout":"0s"}`, "timeout must not be 0"},
		{`{"kind":"k","timeout":"-1s"}`, "timeout"},
		{`{"kind":"k","timeout":"1us"}`, "timeout"},
		{`{"kind":"k","timeout":"200000d"}`, "timeout"},
		{`{"kind":"k","timeout":true}`, "timeout must be a string or a number"},
		{`{"kind":"k","timeout_ms":1.5}`, "timeout_ms \"1.5\" must be a whole number of ms"},
		{`{"kind":"k","timeout_ms":-5}`, "timeout_ms"},
		{`{"kind":"k","timeout":"1s","timeout_ms":5}`, "timeout is given with and without _ms"},
		{`{"kind":"k","timeout":"1s","deadline_at":99999999999999}`, "deadline cannot be given together with a timeout"},
		{`{"kind":"k","deadline_at":"tomorrow"}`, "deadline_at \"tomorrow\" must be an instant"},
		{`{"kind":"k","deadline_at":1e15}`, "must be an instant"},
		{`{"kind":"k","delay":"none"}`, "delay cannot be None"},
		{`{"kind":"k","max_retries":-1}`, "max_retries \"-1\" must be a whole number"},
		{`{"kind":"k","max_retries":1e1}`, "must be a whole number"},
		{`{"kind":"k","priority":4}`, "byte 24: priority \"4\" must be a whole number from 0 to 3"},
		{`{"kind":"k","backoff":"linear","backoff_delay":"1s"}`, "must be constant or exponential"},
		{`{"kind":"k","role":"owner"}`, "must be promise or timer"},
		{`{"kind":"k","role":"timer"}`, "needs Delay or StartAt"},
		{`{"kind":"k","headers":"x"}`, "byte 23: headers must be a JSON object of strings"},
		{`{"kind":"k","headers":{"a":1}}`, "must be a JSON object of strings"},
		{`{"kind":"k","headers":{"a":null}}`, "must be a JSON object of strings"},
		{`{"kind":"k","headers":[]}`, "must be a JSON object of strings"},
		{`{"kind":"k","hook_success":"a "}`, "must be a kind, or a kind, a space and a queue"},
		{`{"kind":"k","hook_success":"a b c"}`, "queue of hook success"},
		{`{"kind":"k","idempotency_key":""}`, "must not be empty"},
		{`{"kind":"k","idempotency_scope":"started"}`, "needs an idempotency key"},
		{`{"kind":"k","warn_percent":100}`, "from 1 to 99"},
		{`{"kind":"k","retry_of":"x"}`, "not a task's id"},
	}
	server := redistest.Start(t).Client(t)
	queuetest.Open(t, server, queue.Config{})
	for _, row := range rows {
		_, err := jsonx.ReadTask([]byte(row.object), maxBytes)
		var at *jsonx.Error
		if !errors.Is(err, refusal.ErrInvalid) || !errors.As(err, &at) || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("ReadTask(%.60s): %v, want ErrInvalid and %q", row.object, err, row.want)
		}
		reply, err := server.Do(t.Context(), "FCALL", "curfew_enqueue_many", 1, "curfew:{0}", "["+row.object+"]").Result()
		if !redis.HasErrorPrefix(err, "CURFEW INVALID") && row.object != "" && strings.TrimSpace(row.object) != "" {
			t.Errorf("the function takes %.60s: %v, %v", row.object, reply, err)
		}
	}
	// What only Go refuses, since a queue.Task cannot say it.
	if _, err := jsonx.ReadTask([]byte(`{"kind":"k","jitter":5}`), maxBytes); err == nil || !strings.Contains(err.Error(), "backoff_delay is missing") {
		t.Errorf("jitter without a back-off: %v", err)
	}
	if _, err := jsonx.ReadTask([]byte(`{"kind":"k","payload":"12345"}`), 3); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("a payload that is too large: %v", err)
	}
}

// Whatever the text is, ReadTask returns a task or an *Error, and the payload is the text of the value.
func FuzzTask(f *testing.F) {
	for _, line := range members(time.UnixMilli(1_800_000_000_000)) {
		for _, member := range line {
			f.Add(`{"kind":"k",` + member + `}`)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		task, err := jsonx.ReadTask([]byte(text), maxBytes)
		var at *jsonx.Error
		if err != nil {
			if !errors.As(err, &at) || at.Byte < 1 || at.Byte > len(text)+1 || !errors.Is(err, refusal.ErrInvalid) {
				t.Fatalf("ReadTask(%q): %v", text, err)
			}
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("ReadTask(%q) is a task, and json says %v", text, err)
		}
		if !slices.Equal(task.Payload, object["payload"]) {
			t.Fatalf("ReadTask(%q): payload %q", text, task.Payload)
		}
	})
}
