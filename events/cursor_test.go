package events

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/refusal"
)

func TestACursorHasOneText(t *testing.T) {
	for _, test := range []struct {
		text string
		want []place
	}{
		{"0-0@0", []place{{streamID{}, 0}}},
		{"1763732630000-7@12,18446744073709551615-18446744073709551615@9223372036854775807",
			[]place{{streamID{1763732630000, 7}, 12}, {streamID{1<<64 - 1, 1<<64 - 1}, 1<<63 - 1}}},
	} {
		got, err := Cursor(test.text).places(len(test.want))
		if err != nil || !slices.Equal(got, test.want) || string(cursorOf(got)) != test.text {
			t.Errorf("%q is decoded as %v, %v, want %v, and encoded again as %q", test.text, got, err, test.want, cursorOf(got))
		}
	}
	for _, text := range []string{
		"x", "-", "0", "0-0", "0-", "-0", "0-0@", "0-0@-1", "00-0", "0-00", "0-0@00", "+1-0", "1-+0", " 0-0", "0-0 ", "0-0\n", "0-0,", ",0-0", "0-0,,0-0",
		"0-0@9223372036854775808", "18446744073709551616-0", "0-0@1@2", "0-0-0", "$", "NOW", "0_0-0", "0x1-0", "٣-0", strings.Repeat("0-0,", 5000) + "0-0",
	} {
		got, err := Cursor(text).places(1)
		if !errors.Is(err, refusal.ErrInvalid) || got != nil || len(err.Error()) > 300 {
			t.Errorf("%.40q = %v, %v, want ErrInvalid with a text of at most 300 bytes", text, got, err)
		}
	}
}

// FuzzCursor checks that a text is refused with ErrInvalid, or is what cursorOf returns for its places.
func FuzzCursor(f *testing.F) {
	for i, s := range []string{
		"", "now", "0-0", "0-0@0", "1-2@3,4-5@6", "1-2,3-4@5", "00-0", "0-0@", "@", ",", "-", "0-0@9223372036854775807", "0-0@9223372036854775808",
		"18446744073709551615-0", "18446744073709551616-0", "1763732630000-0@12,", "+1-0", "0x1-1", "1_0-0", "\x00", "\xff-0", "0-0\n",
	} {
		f.Add(s, i%4+1)
	}
	f.Fuzz(func(t *testing.T, s string, partitions int) {
		places, err := Cursor(s).places(partitions)
		if err != nil {
			if !errors.Is(err, refusal.ErrInvalid) || places != nil || len(err.Error()) > 500 {
				t.Errorf("%q = %v, %v, want ErrInvalid with a text of at most 500 bytes, and no places", s, places, err)
			}
			return
		}
		if len(places) != partitions || string(cursorOf(places)) != s {
			t.Errorf("%q is decoded as %v, and encoded again as %q", s, places, cursorOf(places))
		}
		for _, p := range places {
			if p.id.previous().compare(p.id) > 0 || p.nth < 0 {
				t.Errorf("%q has the place %v, and the id before it is %v", s, p, p.id.previous())
			}
		}
	})
}

// A reply of an unexpected shape is an error and never a panic.
func TestAReplyOfAnotherShapeIsAnError(t *testing.T) {
	whole := []any{int64(1), int64(3), int64(2), "1-0", "3-0", int64(1), []any{"2-0", []any{"first", "3", "at", "7", "events", "k 0-A\nk2 0-B\n"}}}
	page, err := readEventPage(whole, 4, 1, place{})
	if err != nil || len(page.events) != 1 || page.events[0].Kind != "k" || page.events[0].TaskID != "0-A" || page.events[0].Number != 3 ||
		page.events[0].Partition != 4 || !page.more || page.behind[0] != (place{streamID{1, 1<<64 - 1}, 3}) {
		t.Errorf("%v = %+v, %v", whole, page, err)
	}
	if page, err = readEventPage(whole, 4, 1, page.behind[0]); err != nil || len(page.events) != 1 || page.events[0].Kind != "k2" || page.behind[0] != (place{streamID{2, 0}, 4}) {
		t.Errorf("the rest of %v = %+v, %v", whole, page, err)
	}
	for _, reply := range []any{
		nil, "", int64(1), []any{}, whole[:5], []any{int64(1), int64(3), int64(2), "x", "3-0", int64(0)}, []any{int64(1), int64(3), int64(2), "1-0", nil, int64(0)},
		[]any{nil, nil, nil, "0-0", "0-0", nil, "x"}, []any{nil, nil, nil, "0-0", "0-0", nil, []any{"1-0"}}, []any{nil, nil, nil, "0-0", "0-0", nil, []any{"1", []any{}}},
		[]any{nil, nil, nil, "0-0", "0-0", nil, []any{"1-0", []any{"odd"}}}, []any{nil, nil, nil, "0-0", "0-0", nil, []any{"1-0", "x"}},
	} {
		if page, err := readEventPage(reply, 0, 1, place{}); err == nil {
			t.Errorf("%v = %+v, want an error", reply, page)
		}
	}
}

// An entry that another program put into the stream is one event, whatever it contains.
func TestAnEntryOfAnotherProgramIsOneEvent(t *testing.T) {
	for _, values := range []map[string]any{
		{}, {"first": "1"}, {"first": "0", "at": "1", "events": "k 0-A\n"}, {"first": "1", "at": "x", "events": "k 0-A\n"},
		{"first": "1", "at": "1", "events": ""}, {"first": "9007199254740993", "at": "1", "events": "k 0-A\n"}, {"first": "1", "at": int64(1), "events": nil},
	} {
		events := In(2, redis.XMessage{ID: "5-1", Values: values})
		if len(events) != 1 || events[0].Kind != "" || events[0].Number != 0 || events[0].ID != "5-1" || events[0].At.UnixMilli() != 5 || len(events[0].Fields) != len(values) {
			t.Errorf("In(%v) = %+v, want one event without kind and number, with all fields", values, events)
		}
	}
}

// FuzzEventLine checks that no line causes a panic, and that a value that is escaped as in
// lua/store/events.lua is decoded unchanged.
func FuzzEventLine(f *testing.F) {
	for _, s := range []string{"", " ", "task_completed 0-A k default 1 2 3 1 w", "k 0-A - - - - 0 1 - error=a%20b%0A", "%", "%zz a=b=c =", "k 0-A.b!c.d"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, line, value string) {
		var e Event
		e.read(line)
		escaped := regexp.MustCompile(`[\x00-\x20%\x7f]`).ReplaceAllStringFunc(value, func(c string) string { return fmt.Sprintf("%%%02X", c[0]) })
		e = Event{}
		e.read("k 0-A kind q 1 2 3 4 w error=" + escaped)
		if e.Fields["error"] != value || e.Worker != "w" || e.Attempt != 4 || e.StartedAt.UnixMilli() != 2 {
			t.Errorf("the error %q is decoded as %+v", value, e)
		}
	})
}
