package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

func TestAReplyOfAnotherShapeIsAnError(t *testing.T) {
	for _, reply := range []any{nil, "x", int64(1), []string{"a"}, []any{"a"}, []any{}} {
		if elements, err := List(reply, nil, 2); err == nil || elements != nil {
			t.Errorf("List(%v, 2) = %v, %v, want an error", reply, elements, err)
		}
	}
	for _, n := range []int{0, 1, 2} {
		if elements, err := List([]any{"a", nil}, nil, n); err != nil || len(elements) != 2 {
			t.Errorf("List of two elements, of at least %d = %v, %v", n, elements, err)
		}
	}
	if elements, err := Elements([]any{}, nil); err != nil || len(elements) != 0 {
		t.Errorf("Elements of an empty array = %v, %v", elements, err)
	}
	failed := errors.New("failed")
	if _, err := List([]any{"a"}, failed, 1); err != failed {
		t.Errorf("List after an error = %v, want that error", err)
	}
}

func TestElementsAreReadWithoutTrust(t *testing.T) {
	type read struct {
		text    string
		number  int64
		instant time.Time
	}
	for _, test := range []struct {
		element any
		want    read
	}{
		{nil, read{}},
		{"", read{}},
		{"12", read{"12", 12, time.UnixMilli(12)}},
		{int64(12), read{"12", 12, time.UnixMilli(12)}},
		{"0", read{"0", 0, time.Time{}}},
		{"x", read{"x", 0, time.Time{}}},
		{1.5, read{}},
		{[]any{"12"}, read{}},
	} {
		if got := (read{Text(test.element), Number(test.element), Instant(test.element)}); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%#v is read as %+v, want %+v", test.element, got, test.want)
		}
	}
}

func TestANilContextIsRefused(t *testing.T) {
	var typed *valueless
	for _, ctx := range []context.Context{nil, typed} {
		if err := Given(ctx); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("Given(%#v) = %v, want ErrInvalid", ctx, err)
		}
	}
	if err := Given(t.Context()); err != nil {
		t.Errorf("Given of a context = %v", err)
	}
}

type valueless struct{ context.Context }

func TestNilIsNilInEveryKind(t *testing.T) {
	for _, v := range []any{nil, (*int)(nil), (func())(nil), map[string]int(nil), []int(nil), (chan int)(nil)} {
		if !IsNil(v) {
			t.Errorf("IsNil(%#v) = false", v)
		}
	}
	for _, v := range []any{0, "", new(int), func() {}, map[string]int{}, []int{}, make(chan int), struct{}{}} {
		if IsNil(v) {
			t.Errorf("IsNil(%#v) = true", v)
		}
	}
}

// late is a context whose deadline has passed, and that has not noticed it.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

func TestEndOfReturnsTheCauseAsSoonAsTheDeadlineHasPassed(t *testing.T) {
	enough := errors.New("enough")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	open, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	for _, test := range []struct {
		claim string
		ctx   context.Context
		want  error
	}{
		{"a context without a deadline", t.Context(), nil},
		{"a context whose deadline is ahead", open, nil},
		{"a cancelled context", cancelled, enough},
		{"a context whose deadline has passed, before Err says so", late{t.Context()}, context.DeadlineExceeded},
	} {
		if got := EndOf(test.ctx); got != test.want {
			t.Errorf("%s: EndOf = %v, want %v", test.claim, got, test.want)
		}
	}
}

func TestKeysFromMatchesThePrefixLiterally(t *testing.T) {
	if got, want := KeysFrom(`a*[b]?\:{0}:`), `a\*\[b\]\?\\:{0}:*`; got != want {
		t.Errorf("KeysFrom = %s, want %s", got, want)
	}
}

func TestAPartitionThatIsNotThereIsRefused(t *testing.T) {
	e := &Engine{partitions: 3}
	for p, valid := range map[int]bool{-1: false, 0: true, 2: true, 3: false} {
		if err := e.CheckPartition(p); (err == nil) != valid || err != nil && !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("CheckPartition(%d) of 3 = %v", p, err)
		}
	}
	if _, err := e.Call(t.Context(), 3, "stats"); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("Call on partition 3 of 3 = %v, want ErrInvalid", err)
	}
}

func TestAnUnexpectedReplyMakesAShortError(t *testing.T) {
	words := make([]any, 2500)
	for i := range words {
		words[i] = strings.Repeat("x", 1000)
	}
	_, err := List(words, nil, 2501)
	if err == nil || len(err.Error()) > 400 || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has %d bytes, want at most 400 on one line", len(fmt.Sprint(err)))
	}
	if _, err := List([]any{"a\nb"}, nil, 2); err == nil || err.Error() != "unexpected answer [a" {
		t.Errorf("the error of a reply with a line break is %q", err)
	}
}
