package command

import (
	"strings"
	"testing"
	"time"
)

func TestClean(t *testing.T) {
	for _, row := range []struct{ claim, text, want string }{
		{"plain text stays", "a b\nc", "a b\nc"},
		{"empty lines around it go", "\n\na\n\n", "a"},
		{"line ends of Windows", "a\r\nb\r\n", "a\nb"},
		{"colours", "\x1b[1;31ma\x1b[0m", "a"},
		{"a cursor that moves", "\x1b[2J\x1b[10;20Ha", "a"},
		{"a title", "\x1b]0;evil\x1b\\a", "a"},
		{"an escape that is cut", "a\x1b", "a\uFFFD"},
		{"a bell and a NUL are one mark", "a\x07\x00b", "a\uFFFDb"},
		{"C1 control characters", "a\u009b31mb", "a\uFFFD31mb"},
		{"text that runs backwards", "a\u202eb", "a\uFFFDb"},
		{"not UTF-8", "a\xff\xfeb", "a\uFFFDb"},
		{"other scripts stay", "größe 寸法", "größe 寸法"},
		{"a progress bar", "1%\r2%\r3%", "3%"},
		{"a tab is a space", "a\tb", "a b"},
	} {
		if got := clean([]byte(row.text)); got != row.want {
			t.Errorf("%s: clean(%q) = %q, want %q", row.claim, row.text, got, row.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	line := func(s string) (time.Duration, bool) { return retryAfterLine(s) }
	header := func(s string) (time.Duration, bool) { return retryAfterHeader(s, now) }
	for _, row := range []struct {
		read  func(string) (time.Duration, bool)
		text  string
		delay time.Duration
		ok    bool
	}{
		{line, "retry-after: 30s", 30 * time.Second, true},
		{line, "Retry-After:1h30m", 90 * time.Minute, true},
		{line, "RETRY-AFTER : 2d", 48 * time.Hour, true},
		{line, "retry-after: 120", 2 * time.Minute, true},
		{line, "retry-after: 0", 0, true},
		{line, "retry-after: 99999999999999999999999", 0, false},
		{line, "retry-after: 9999999999", maxDelay, true},
		{line, "retry-after: 10000d", maxDelay, true},
		{line, "retry-after: -5", 0, false},
		{line, "retry-after: -5s", 0, false},
		{line, "retry-after:", 0, false},
		{line, "retry-after", 0, false},
		{line, "please retry-after: 5s", 0, false},
		{header, "120", 2 * time.Minute, true},
		{header, " 5 ", 5 * time.Second, true},
		{header, "Tue, 01 Jan 2030 00:01:00 GMT", time.Minute, true},
		{header, "Tue, 01 Jan 2019 00:01:00 GMT", 0, true},
		{header, "Fri, 31 Dec 2100 00:00:00 GMT", maxDelay, true},
		{header, "30s", 0, false},
		{header, "", 0, false},
	} {
		delay, ok := row.read(row.text)
		if ok != row.ok || ok && delay != row.delay {
			t.Errorf("%q is %v, %v, want %v, %v", row.text, delay, ok, row.delay, row.ok)
		}
	}
}

func TestTheLastBytesAreKept(t *testing.T) {
	for _, size := range []int{1, 7, 1000, tailBytes, tailBytes + 1, 100_000} {
		var all strings.Builder
		var kept tail
		for i := 0; all.Len() < 200_000; i++ {
			text := strings.Repeat(string(rune('a'+i%26)), size)
			all.WriteString(text)
			if n, err := kept.Write([]byte(text)); n != size || err != nil {
				t.Fatal(n, err)
			}
			if len(kept.kept) > 4*tailBytes {
				t.Fatalf("%d bytes are kept", len(kept.kept))
			}
		}
		if got, end := kept.text(), all.String()[all.Len()-tailBytes:]; got != end {
			t.Errorf("writes of %d: the text has %d bytes, want the last %d", size, len(got), len(end))
		}
	}
}
