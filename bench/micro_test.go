package bench

import (
	"context"
	"math"
	"strings"
	"testing"
)

const allCalls = "fetch of nothing, sweep of nothing, heartbeat, enqueue 1, fetch 1, settle 1, enqueue 8, fetch 8, settle 8, " +
	"enqueue 50, fetch 50, settle 50, enqueue 500, fetch 500, settle 500, curfew_enqueue, sweep 100, suspend 10, settle and wake 10"

func TestMicroMeasuresEveryCall(t *testing.T) {
	got, err := Micro(context.Background(), server(t), 200)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, f := range got.Figures {
		name, of, _ := strings.Cut(f.Name, ": ")
		if want := []string{"CPU", "within scripts", "median call"}[i%3]; of != want || f.Value <= 0 {
			t.Errorf("%+v, want %s above 0", f, want)
		}
		if i%3 == 0 {
			names = append(names, name)
		}
	}
	if got := strings.Join(names, ", "); got != allCalls {
		t.Errorf("measured %q, want %q", got, allCalls)
	}
}

func TestScriptTimeIncludesAllWaysToCallAScript(t *testing.T) {
	info := infoFields("# Commandstats\r\ncmdstat_evalsha:calls=2,usec=50,usec_per_call=25.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_fcall:calls=10,usec=300,usec_per_call=30.00,rejected_calls=0,failed_calls=0\r\ncmdstat_get:calls=90,usec=90\r\n" +
		"latency_percentiles_usec_evalsha:p50=25.087,p99=26\r\nlatency_percentiles_usec_fcall:p50=29.055,p99=40\r\n")
	if got, err := scriptUse(info); err != nil || got != (use{script: 350, median: 29.055}) {
		t.Errorf("scriptUse = %+v, %v, want 350 µs in scripts and a median of 29.055", got, err)
	}
	if _, err := scriptUse(map[string]string{"cmdstat_evalsha": "calls=x"}); err == nil {
		t.Error("scriptUse accepts a line without its numbers")
	}
}

func TestCPUIsThatOfTheMainThreadIfTheServerReportsIt(t *testing.T) {
	for _, row := range []struct {
		claim, info string
		want        float64
	}{
		{"the main thread is reported", "used_cpu_sys:9\r\nused_cpu_user:9\r\nused_cpu_sys_main_thread:0.25\r\nused_cpu_user_main_thread:1.5\r\n", 1.75e6},
		{"only the whole server is reported", "used_cpu_sys:0.5\r\nused_cpu_user:1\r\n", 1.5e6},
	} {
		if got, err := mainThread(infoFields(row.info)); err != nil || math.Abs(got-row.want) > 1e-6 {
			t.Errorf("%s: %v, %v, want %v", row.claim, got, err, row.want)
		}
	}
	if _, err := mainThread(nil); err == nil {
		t.Error("mainThread returns no error for an INFO without the field")
	}
}
