package bench

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// measured is a comparison in which every load had the same rates.
func measured() Comparison {
	of := func(values ...float64) rates {
		all := rates{}
		for _, load := range loads {
			all[load.name] = values
		}
		return all
	}
	return compare(VersusConfig{Tasks: 10, Runs: 3, Servers: 1}, "7.0.15", of(20000, 30000, 10000), of(10000, 10000, 20000), of(100000, 100000, 100000))
}

func TestComparisonDividesRunsSideBySide(t *testing.T) {
	for _, row := range measured().Rows {
		if want := (Spread{2, 0.5, 3}); row.Ratio != want {
			t.Errorf("%s: ratio %v, want %v", row.Name, row.Ratio, want)
		}
		if want := (Spread{0.2, 0.1, 0.3}); row.OfFloor != want {
			t.Errorf("%s: of the floor %v, want %v", row.Name, row.OfFloor, want)
		}
	}
}

func TestComparisonAsTable(t *testing.T) {
	var out strings.Builder
	if err := measured().WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2+len(loads) || !strings.Contains(lines[0], "3 runs of 10 tasks") {
		t.Fatalf("the table is\n%s", out.String())
	}
	want := "drain, concurrency 50 20000 (10000-30000) 10000 (10000-20000) 2.00 (0.50-3.00) 100000 0.20"
	if got := strings.Join(strings.Fields(lines[5]), " "); got != want {
		t.Errorf("the row of drain is %q, want %q", got, want)
	}
}

// The names are what scripts ask for: they stay.
func TestComparisonAsJSON(t *testing.T) {
	text, err := json.Marshal(measured())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"bench":"throughput --vs asynq"`, `"against":"asynq`, `"redis":"7.0.15"`, `"tasks":10`, `"runs":3`, `"servers":1`,
		`"name":"enqueue_16"`, `"name":"enqueue_64"`, `"name":"enqueue_lists"`, `"name":"drain"`, `"name":"enqueue_and_drain"`, `"unit":"tasks/s"`,
		`"curfew":{"median":20000,"min":10000,"max":30000}`, `"asynq":{`, `"floor":{`, `"ratio":{"median":2,`, `"of_floor":{"median":0.2,`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the JSON has no %s:\n%s", want, text)
		}
	}
}

func TestCountdownEndsWithTheFirstError(t *testing.T) {
	failed := make(chan error, 1)
	failed <- errors.New("broken")
	c := newCountdown(2)
	c.one()
	if err := c.wait(context.Background(), nil, failed); err == nil || err.Error() != "broken" {
		t.Errorf("wait = %v, want broken", err)
	}
	c.one()
	if err := c.wait(context.Background(), nil); err != nil {
		t.Errorf("wait = %v, want nil: all has happened", err)
	}
}

func TestFromGoroutinesMakesEachCallOnce(t *testing.T) {
	seen := make([]int32, 100)
	if err := fromGoroutines(len(seen), 7, func(i int) error { seen[i]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("call %d was made %d times", i, n)
		}
	}
	if err := fromGoroutines(10, 3, func(int) error { return errors.New("no") }); err == nil {
		t.Error("the error of a call is lost")
	}
}
