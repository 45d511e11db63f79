package bench

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// timed returns a measurement of two rounds, in which a task took 10 and 30 µs.
func timed() MicroReport {
	name := callName{"enqueue", 50, "task"}
	m := &micro{calls: []callName{name}, samples: map[callName][]sample{name: {
		{cpu: 10, script: 8, median: 400}, {cpu: 30, script: 20, median: 1000},
	}}}
	return m.report("7.0.15", MicroConfig{Rounds: 2, Tasks: 100})
}

func TestMicroReportHasMediansOfRounds(t *testing.T) {
	got := timed()
	want := Cost{"enqueue", 50, "task", Spread{20, 10, 30}, Spread{14, 8, 20}, Spread{700, 400, 1000}}
	if len(got.Costs) != 1 || got.Costs[0] != want {
		t.Errorf("the costs are %v, want %v", got.Costs, want)
	}
}

func TestMicroReportAsTable(t *testing.T) {
	var out strings.Builder
	if err := timed().WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if got, want := strings.Join(strings.Fields(lines[2]), " "), "enqueue 50 task 20 (10-30) 14 700"; got != want {
		t.Errorf("the row is %q, want %q", got, want)
	}
	if !strings.Contains(lines[0], "of 2 rounds") {
		t.Errorf("the first line is %q", lines[0])
	}
}

// Scripts read these names, so they must not change.
func TestMicroReportAsJSON(t *testing.T) {
	text, err := json.Marshal(timed())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"bench":"micro","redis":"7.0.15","rounds":2,"tasks":100,` +
		`"costs":[{"call":"enqueue","batch":50,"per":"task","cpu_us":{"median":20,"min":10,"max":30},` +
		`"script_us":{"median":14,"min":8,"max":20},"median_call_us":{"median":700,"min":400,"max":1000}}]}`
	if string(text) != want {
		t.Errorf("the JSON is\n%s, want\n%s", text, want)
	}
}

const allCalls = "fetch of nothing, sweep of nothing, heartbeat, enqueue 1, fetch 1, settle 1, enqueue 8, fetch 8, settle 8, " +
	"enqueue 50, fetch 50, settle 50, enqueue 500, fetch 500, settle 500, curfew_enqueue, sweep 100, suspend 10, settle and wake 10"

func TestMicroMeasuresEveryCall(t *testing.T) {
	got, err := Micro(context.Background(), server(t), MicroConfig{Rounds: 1, Tasks: 200})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got.Costs {
		names = append(names, c.Name())
		if c.CPU.Median <= 0 || c.Script.Median <= 0 || c.Median.Median <= 0 {
			t.Errorf("%s: %+v, want costs above 0", c.Name(), c)
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
