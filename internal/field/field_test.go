package field_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/queue"
)

// leaves returns the fields of a struct in Go by name: "Backoff.Delay".
func leaves(t reflect.Type, before string) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name := before + f.Name; f.Type {
		case reflect.TypeFor[queue.Backoff](), reflect.TypeFor[queue.Hooks]():
			for inner, of := range leaves(f.Type, name+".") {
				all[inner] = of
			}
		default:
			all[name] = f.Type
		}
	}
	return all
}

func fits(f field.Field, in reflect.Type) bool {
	switch f.Type {
	case field.Text:
		return in.Kind() == reflect.String
	case field.Word:
		return in.Kind() == reflect.String || in.Kind() == reflect.Bool && len(f.Words) == 2
	case field.Number:
		return in.Kind() == reflect.Int
	case field.Percent:
		return in.Kind() == reflect.Float64
	case field.Span:
		return in == reflect.TypeFor[time.Duration]()
	case field.Instant:
		return in == reflect.TypeFor[time.Time]()
	case field.Hook:
		return in == reflect.TypeFor[queue.Hook]()
	}
	return true
}

// The table has each field of a task and of the defaults of a kind, with its type.
func TestTheTableHasTheFieldsInGo(t *testing.T) {
	ofTask, ofKind := leaves(reflect.TypeFor[queue.Task](), ""), leaves(reflect.TypeFor[queue.Defaults](), "")
	for _, ownCode := range []string{"Name", "Promise", "Timer"} { // a name makes an id, the others are the role
		delete(ofTask, ownCode)
	}
	for _, f := range field.All {
		if f.Go == "" {
			continue
		}
		if in := ofTask[f.Go]; in == nil || !fits(f, in) {
			t.Errorf("%s: queue.Task has no field %s of its type: %v", f.Name, f.Go, in)
		}
		if in := ofKind[f.Go]; (in != nil) != (f.By == field.Kind) || in != nil && in != ofTask[f.Go] {
			t.Errorf("%s: the table says %v of the defaults of kinds, and queue.Defaults has %s: %v", f.Name, f.By == field.Kind, f.Go, in != nil)
		}
		delete(ofTask, f.Go)
		delete(ofKind, f.Go)
	}
	for name := range ofTask {
		t.Errorf("queue.Task has %s, which is not in the table", name)
	}
	for name := range ofKind {
		t.Errorf("queue.Defaults has %s, which is not in the table", name)
	}
	if field.None != queue.None {
		t.Error("None has two values")
	}
}

// What DefineKind stores for a default sets the same default again.
func TestStoredDefaultsAreReadAgain(t *testing.T) {
	want := queue.Defaults{Timeout: time.Hour, QueueTimeout: time.Minute, AttemptTimeout: 2 * time.Minute, OnTimeout: queue.OnTimeoutRetry,
		OnDeadline: queue.DeadlineFail, WarnAt: 0.8, CancelGrace: 3 * time.Second, TimeoutGrace: 4 * time.Second, MaxRetries: 5, Retry: "true",
		Backoff: queue.Backoff{Delay: time.Second, Exponential: true, Max: queue.None, Jitter: 0.2}, Retention: 5 * time.Hour,
		Hooks: queue.Hooks{OnSuccess: queue.Hook{Kind: "a"}, OnFailure: queue.Hook{Kind: "b", Queue: "q"}, OnTimeout: queue.Hook{Kind: "c"}, OnCancel: queue.Hook{Kind: "d"}}}
	var got queue.Defaults
	field.Defaults(&got, map[string]string{"timeout_ms": "3600000", "queue_timeout_ms": "60000", "attempt_timeout_ms": "120000", "on_timeout": "retry",
		"on_deadline": "fail", "warn_percent": "80", "cancel_grace_ms": "3000", "timeout_grace_ms": "4000", "max_retries": "5", "retry_expression": "true",
		"backoff": "exponential", "backoff_ms": "1000", "backoff_max_ms": "none", "jitter": "20", "retention_ms": "18000000",
		"hook_success": "a", "hook_failure": "b q", "hook_timeout": "c", "hook_cancel": "d", "a newer one": "x"})
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if field.Defaults(&got, nil); got != (queue.Defaults{}) {
		t.Errorf("without stored values: %+v", got)
	}
}

// A name leads to one field, and each field that a producer sets has a name of its own in JSON.
func TestEachNameLeadsToOneField(t *testing.T) {
	names := map[string]string{}
	for _, f := range field.All {
		of := []string{f.Name, f.InJSON(), f.Plain()}
		slices.Sort(of)
		for _, name := range slices.Compact(of) {
			if other := names[name]; other != "" {
				t.Errorf("%s is a name of %s and of %s", name, other, f.Name)
			}
			names[name] = f.Name
			if got, known := field.ByName(name); !known || got.Name != f.Name {
				t.Errorf("ByName(%s) = %v, %v, want %s", name, got, known, f.Name)
			}
		}
		if (f.Type == field.Span) != strings.HasSuffix(f.Name, "_ms") || (f.Type == field.Instant) != strings.HasSuffix(f.Name, "_at") {
			t.Errorf("%s: the name does not say its type", f.Name)
		}
	}
}
