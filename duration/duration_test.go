package duration

import (
	"encoding"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

var (
	_ flag.Value             = (*Duration)(nil)
	_ encoding.TextMarshaler = Duration(0)
)

func TestDurationsThatAreRead(t *testing.T) {
	for _, row := range []struct {
		claim, text string
		want        time.Duration
		printed     string
	}{
		{"the empty text is 0", "", 0, "0s"},
		{"0s is 0", "0s", 0, "0s"},
		{"0 needs no unit", "0", 0, "0s"},
		{"0d is 0", "0d", 0, "0s"},
		{"seed 2, ms", "500ms", 500 * time.Millisecond, "500ms"},
		{"seed 2, s", "30s", 30 * time.Second, "30s"},
		{"seed 2, m", "5m", 5 * time.Minute, "5m"},
		{"seed 2, h", "2h", 2 * time.Hour, "2h"},
		{"seed 2, d", "1d", 24 * time.Hour, "1d"},
		{"the shortest", "1ms", time.Millisecond, "1ms"},
		{"a compound of Go", "1h30m", 90 * time.Minute, "1h30m"},
		{"a compound with days", "1d12h", 36 * time.Hour, "1d12h"},
		{"all units", "1d2h3m4s5ms", 26*time.Hour + 3*time.Minute + 4005*time.Millisecond, "1d2h3m4.005s"},
		{"hours become days", "36h", 36 * time.Hour, "1d12h"},
		{"a fraction", "1.5h", 90 * time.Minute, "1h30m"},
		{"a fraction of a day", "0.5d", 12 * time.Hour, "12h"},
		{"a fraction of a day is exact", "0.0000003125d", 27 * time.Millisecond, "27ms"},
		{"a fraction without a whole part", ".5s", 500 * time.Millisecond, "500ms"},
		{"units in any order, as in Go", "5m1h", 65 * time.Minute, "1h5m"},
		{"a unit twice, as in Go", "1h1h", 2 * time.Hour, "2h"},
		{"whole ms in µs", "2000us", 2 * time.Millisecond, "2ms"},
		{"whole ms in µs, micro sign", "2000µs", 2 * time.Millisecond, "2ms"},
		{"whole ms in ns", "3000000ns", 3 * time.Millisecond, "3ms"},
		{"ms over a second", "1500ms", 1500 * time.Millisecond, "1.5s"},
		{"leading zeros", "007s", 7 * time.Second, "7s"},
		{"the longest", "106751d23h47m16.854s", maxDuration, "106751d23h47m16.854s"},
	} {
		got, err := Parse(row.text)
		if err != nil || got != row.want {
			t.Errorf("%s: Parse(%q) = %v, %v, want %v", row.claim, row.text, got, err, row.want)
		}
		if printed := Duration(row.want).String(); printed != row.printed {
			t.Errorf("%s: String of %v = %s, want %s", row.claim, row.want, printed, row.printed)
		}
	}
}

func TestDurationsThatAreRefusedSayWhatToWrite(t *testing.T) {
	const write = "is not a duration: write a number and a unit (ms, s, m, h or d), such as 30s, 1h30m or 1d"
	for _, row := range []struct{ text, why string }{
		{"30", "has no unit: write 30s"},
		{"1.5", "has no unit: write 1.5s"},
		{"-1s", "is negative or not a duration: write 0s for none"},
		{"-0s", "is negative or not a duration: write 0s for none"},
		{"+5s", "is not a duration: write 5s"},
		{"1 d", "is not a duration: write 1d"},
		{" 1d", "is not a duration: write 1d"},
		{"1d\n", "is not a duration: write 1d"},
		{" ", write},
		{"5x", write},
		{"5min", write},
		{"abc", write},
		{"s", write},
		{"d", write},
		{"1dd", write},
		{"1d0", write},
		{"1d-5s", write},
		{"1d+5s", write},
		{"1.2.3s", write},
		{"..s", write},
		{".", write},
		{"1e3", "is not a duration: write 1000s"},
		{"1e3ms", "is not a duration: write 1000ms"},
		{"0x10", "is not a duration: write 16s"},
		{"1_000s", "is not a duration: write 1000s"},
		{"1,5s", "is not a duration: write 1.5s"},
		{"5S", "is not a duration: write 5s"},
		{"P1D", "is not a duration: write 1d"},
		{"P1DT12H", "is not a duration: write 1d12h"},
		{"PT5M", "is not a duration: write 5m"},
		{"P1M", write},
		{"1h2d", "is not a duration: write 2d1h"},
		{"12h1.5d3m", "is not a duration: write 1.5d12h3m"},
		{"١s", write},
		{"NaN", write},
		{"NaNd", write},
		{"Inf", write},
		{"\x00", write},
		{"1s\x00", write},
		{"\xff", write},
		{"null", write},
		{"1ns", "is finer than 1 ms: write 1ms"},
		{"500us", "is finer than 1 ms: write 1ms"},
		{"1.5ms", "is finer than 1 ms: write 2ms"},
		{"1.0004s", "is finer than 1 ms: write 1s"},
		{"0.3333333d", "is finer than 1 ms: write 7h59m59.997s"},
		{"106752d", "is longer than 106751d, the longest that is kept: write 0s for none"},
		{"106751d23h47m16.855s", "is longer than 106751d, the longest that is kept: write 0s for none"},
		{"9007199254740993ms", "is longer than 106751d, the longest that is kept: write 0s for none"},
		{"99999999999999999999h", "is longer than 106751d, the longest that is kept: write 0s for none"},
		{"1e300", write},
	} {
		_, err := Parse(row.text)
		want := &refusal.InvalidError{Field: "duration", Why: strconv.Quote(row.text) + " " + row.why}
		var got *refusal.InvalidError
		if !errors.As(err, &got) || *got != *want || !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("Parse(%q) = %v\n%29s%v", row.text, err, "want ", want)
		}
	}
	for _, long := range []string{strings.Repeat("9", 1<<20), strings.Repeat("1h", 1<<20), strings.Repeat("é", 1<<20)} {
		if _, err := Parse(long); !errors.Is(err, refusal.ErrInvalid) || len(err.Error()) > 500 {
			t.Errorf("Parse of %d bytes = %.600v, want an error of at most 500 bytes", len(long), err)
		}
	}
}

func TestDurationInJSON(t *testing.T) {
	type options struct {
		Lease Duration            `json:"lease"`
		Other map[Duration]string `json:"other,omitempty"`
	}
	for _, row := range []struct {
		claim, text string
		want        options
		refusal     string
	}{
		{"a string is read", `{"lease":"1d"}`, options{Lease: Duration(day)}, ""},
		{"the empty string is 0", `{"lease":""}`, options{}, ""},
		{"null changes nothing", `{"lease":null}`, options{}, ""},
		{"an escape is read", `{"lease":"1\u0064"}`, options{Lease: Duration(day)}, ""},
		{"a key is read", `{"lease":"1s","other":{"1h":"x"}}`, options{Lease: Duration(time.Second), Other: map[Duration]string{Duration(time.Hour): "x"}}, ""},
		{"a number", `{"lease":30}`, options{}, `duration "30" has no unit: write 30s`},
		{"a negative number", `{"lease":-1}`, options{}, `duration "-1" is negative or not a duration: write 0s for none`},
		{"an object", `{"lease":{}}`, options{}, "write a number and a unit"},
		{"a bad string", `{"lease":"5x"}`, options{}, "write a number and a unit"},
	} {
		var got options
		err := json.Unmarshal([]byte(row.text), &got)
		switch {
		case row.refusal != "":
			if err == nil || !strings.Contains(err.Error(), row.refusal) {
				t.Errorf("%s: Unmarshal of %s = %v, want %q", row.claim, row.text, err, row.refusal)
			}
		case err != nil || got.Lease != row.want.Lease || len(got.Other) != len(row.want.Other) || got.Other[Duration(time.Hour)] != row.want.Other[Duration(time.Hour)]:
			t.Errorf("%s: Unmarshal of %s = %v, %v, want %v", row.claim, row.text, got, err, row.want)
		}
	}
	if text, err := json.Marshal(options{Lease: Duration(90 * time.Minute)}); err != nil || string(text) != `{"lease":"1h30m"}` {
		t.Errorf("Marshal = %s, %v", text, err)
	}
	for _, d := range []time.Duration{-time.Second, time.Microsecond, math.MaxInt64, math.MinInt64} {
		if text, err := json.Marshal(Duration(d)); err == nil {
			t.Errorf("Marshal of %v = %s, want an error, since Parse refuses it", d, text)
		}
	}
}

func TestDurationAsAFlag(t *testing.T) {
	set := flag.NewFlagSet("curfew", flag.ContinueOnError)
	set.SetOutput(new(strings.Builder))
	d := Duration(time.Second)
	set.Var(&d, "lease", "how long")
	if err := set.Parse([]string{"-lease", "1d"}); err != nil || d != Duration(day) {
		t.Errorf("-lease 1d gives %v, %v", d, err)
	}
	if err := set.Parse([]string{"-lease", "30"}); err == nil || !strings.Contains(err.Error(), "write 30s") || d != Duration(day) {
		t.Errorf("-lease 30 gives %v, %v, want an error that says what to write, and no change", d, err)
	}
}

// FuzzDuration checks that every text is refused with a short error, or is a whole number of ms that
// is formatted as a text with the same value. time.ParseDuration returns the same.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{
		"", "0", "0s", "1ms", "500ms", "30s", "5m", "2h", "1d", "1h30m", "1d12h", "1.5h", "0.5d", ".5s", "5m1h", "1h2d", "2000us", "2000µs", "2000μs", "1ns",
		"30", "-1s", "+5s", "1 d", " 1d ", "5x", "abc", "1e3", "0x10", "1_000s", "1,5s", "P1DT12H", "P1M", "١s", "NaN", "Infd", "1d0", "1d-5s", "1dd", "d", ".d",
		"106751d23h47m16.854s", "106751d23h47m16.855s", "9007199254740993ms", "9223372036854775807ns", "99999999999999999999h", "0.00000000000000000001d",
		"1s\x00", "\xff", strings.Repeat("9", 400), strings.Repeat("1h", 40),
	} {
		f.Add(text, int64(len(text))*1_234_567)
	}
	f.Fuzz(func(t *testing.T, text string, ns int64) {
		d, err := Parse(text)
		theirs, goErr := time.ParseDuration(text)
		switch {
		case err != nil:
			if !errors.Is(err, refusal.ErrInvalid) || d != 0 || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x00") || !strings.Contains(err.Error(), "write ") {
				t.Errorf("Parse(%q) = %v, %q: want 0 and a short error that says what to write", text, d, err)
			}
			if goErr == nil && theirs >= 0 && theirs%time.Millisecond == 0 && !strings.ContainsAny(text, "+-") && len(text) <= 64 {
				t.Errorf("Parse(%q) = %v, but time.ParseDuration returns %v", text, err, theirs)
			}
			if _, better, found := strings.Cut(err.Error(), "write "); found && !strings.Contains(better, " ") {
				if _, err := Parse(better); err != nil {
					t.Errorf("Parse(%q) says to write %q, which is refused: %v", text, better, err)
				}
			}
		case d < 0 || d%time.Millisecond != 0:
			t.Errorf("Parse(%q) = %v", text, d)
		case goErr == nil && theirs != d:
			t.Errorf("Parse(%q) = %v, but time.ParseDuration returns %v", text, d, theirs)
		default:
			roundTrip(t, d)
		}
		roundTrip(t, time.Duration(ns&math.MaxInt64).Truncate(time.Millisecond))
	})
}

func roundTrip(t *testing.T, d time.Duration) {
	t.Helper()
	printed := Duration(d).String()
	if again, err := Parse(printed); err != nil || again != d {
		t.Errorf("%d ns is formatted as %q, which is parsed as %v, %v", d, printed, again, err)
	}
	text, err := json.Marshal(Duration(d))
	var again Duration
	if err != nil || json.Unmarshal(text, &again) != nil || again != Duration(d) {
		t.Errorf("%d ns is %s in JSON, which is parsed as %v, %v", d, text, again, err)
	}
}
