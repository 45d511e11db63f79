package bench

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// rates returns a comparison in which every load has the same rates.
func rates() Comparison {
	t := ThroughputTrial(ThroughputLoad{Tasks: 10, Servers: 1})
	all := samples{}
	for _, f := range t.figures {
		all[sampled{f.name, "curfew"}] = []float64{20000, 30000, 10000}
		all[sampled{f.name, "asynq"}] = []float64{10000, 10000, 20000}
		all[sampled{f.name, "floor"}] = []float64{100000, 100000, 100000}
	}
	out := compare(t, 3, []System{Curfew(0), Asynq(), Floor()}, all)
	out.Redis = "7.0.15"
	return out
}

// delays returns a comparison whose smaller values are better. asynq never does a part of it,
// and reaches the bound in the rest.
func delays() Comparison {
	t := DetectTrial(DeadlineLoad{Pending: 10, Running: 10})
	t.bound = 40
	all := samples{}
	for _, f := range t.figures {
		all[sampled{f.name, "curfew"}] = []float64{2, 4, 1}
		all[sampled{f.name, "asynq"}] = []float64{20, 10, 40}
		all[sampled{f.name, "floor"}] = []float64{1, 1, 1}
	}
	return compare(t, 3, []System{Curfew(0), Asynq(), Floor()}, all)
}

func TestComparisonDividesRunsSideBySide(t *testing.T) {
	for _, row := range rates().Rows {
		if want := (Spread{2, 0.5, 3}); row.Ratios["asynq"] != want {
			t.Errorf("%s: ratio %v, want %v", row.Name, row.Ratios["asynq"], want)
		}
		if want := (Spread{0.2, 0.1, 0.3}); row.Ratios["floor"] != want {
			t.Errorf("%s: ratio to the floor %v, want %v", row.Name, row.Ratios["floor"], want)
		}
	}
	for _, row := range delays().Rows[3:] {
		if want := (Spread{10, 2.5, 40}); row.Ratios["asynq"] != want {
			t.Errorf("%s: ratio %v, want %v: a smaller delay is better", row.Name, row.Ratios["asynq"], want)
		}
	}
}

func TestComparisonAsTable(t *testing.T) {
	for _, test := range []struct {
		claim string
		of    Comparison
		lines int
		line  int
		want  string
	}{
		{"the title says how it was measured", rates(), 2 + len(loads), 0,
			"tasks/s, median (min-max) of 3 runs of 10 tasks; asynq, redis 7.0.15, no append-only file"},
		{"each System has a column, and a ratio", rates(), 2 + len(loads), 5,
			"drain, concurrency 50 20000 (10000-30000) 10000 (10000-20000) 2.00 (0.50-3.00) 100000 0.20"},
		{"a System that never does it has never", delays(), 2 + 9 + 2, 2,
			"pending task, its end is seen, p50 2 (1-4) never - 1 0.50"},
		{"a value that reaches the bound has >", delays(), 2 + 9 + 2, 5,
			"running task, its end is seen, p50 2 (1-4) 20 (10-> 40) 10.00 (2.50-40.00) 1 0.50"},
		{"never is explained", delays(), 2 + 9 + 2, 11, "never: this System does not do this"},
		{"the bound is explained", delays(), 2 + 9 + 2, 12, "> 40: took longer than that, and the measurement stopped waiting"},
	} {
		var out strings.Builder
		if err := test.of.WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != test.lines {
			t.Fatalf("%s: %d lines, want %d:\n%s", test.claim, len(lines), test.lines, out.String())
		}
		got := strings.Join(strings.Fields(lines[test.line]), " ")
		if got = strings.Replace(got, Asynq().Version(), "", 1); strings.Join(strings.Fields(strings.Replace(got, "asynq ;", "asynq;", 1)), " ") != test.want {
			t.Errorf("%s: the line is %q, want %q", test.claim, got, test.want)
		}
	}
}

// Scripts read these names, so they must not change.
func TestComparisonAsJSON(t *testing.T) {
	for _, test := range []struct {
		of   Comparison
		want []string
	}{
		{rates(), []string{
			`"bench":"throughput --vs asynq"`, `"against":"asynq`, `"redis":"7.0.15"`, `"aof":false`, `"tasks":10`, `"runs":3`, `"servers":1`,
			`"systems":["curfew","asynq","floor"]`, `"name":"enqueue_16"`, `"name":"enqueue_64"`, `"name":"enqueue_lists"`,
			`"name":"drain"`, `"name":"enqueue_and_drain"`, `"unit":"tasks/s"`, `"curfew":{"median":20000,"min":10000,"max":30000}`,
			`"asynq":{`, `"floor":{`, `"ratio":{"median":2,`, `"of_floor":{"median":0.2,`, `"ratios":{"asynq":{"median":2,`,
		}},
		{delays(), []string{`"bench":"detect --vs asynq"`, `"bound":40`, `"name":"detect_pending_p99"`, `"asynq":null`, `"ratio":null`}},
	} {
		text, err := json.Marshal(test.of)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("the JSON has no %s:\n%s", want, text)
			}
		}
	}
}

// benchstat reads each run of each System as a line.
func TestComparisonForBenchstat(t *testing.T) {
	var out strings.Builder
	if err := rates().WriteBenchstat(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"redis: 7.0.15", "aof: false", "Unit tasks/s better=higher",
		"BenchmarkThroughput/enqueue_16/system=curfew 1 20000 tasks/s", "BenchmarkThroughput/enqueue_16/system=curfew 1 30000 tasks/s"} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	if n := strings.Count(out.String(), "/drain/system="); n != 9 {
		t.Errorf("drain has %d lines, want 9: three Systems in three runs", n)
	}
	out.Reset()
	if err := delays().WriteBenchstat(&out); err != nil || strings.Contains(out.String(), "detect_pending_p50/system=asynq") {
		t.Errorf("%v: asynq has a value of what it never does:\n%s", err, out.String())
	}
}

func TestReportsForBenchstat(t *testing.T) {
	r := Report{Bench: "memory", Redis: "7.0.15", Figures: []Figure{{"memory a pending task", 516.5, "B"}, {"tasks lost", 0, ""}, {"enqueue 8: CPU", 3, "µs a task"}}}
	var out strings.Builder
	if err := WriteBenchstat(&out, r, r); err != nil {
		t.Fatal(err)
	}
	run := "BenchmarkMemory/memory_a_pending_task 1 516.5 B\nBenchmarkMemory/tasks_lost 1 0 count\nBenchmarkMemory/enqueue_8:_CPU 1 3 µs_a_task\n"
	if want := "redis: 7.0.15\nUnit tasks/s better=higher\n" + run + run; out.String() != want {
		t.Errorf("it is\n%s\nwant\n%s", out.String(), want)
	}
}

// renamed is a System with another name.
type renamed struct {
	System
	name string
}

func (r renamed) Name() string { return r.name }

func TestNamesOfSystemsAreChecked(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string // "" for names that are accepted
	}{
		{[]string{"a", "b_2"}, ""},
		{[]string{"a"}, "a comparison needs two Systems or more"},
		{[]string{"a", "a"}, `the System's name "a" must be`},
		{[]string{"a", "B"}, `the System's name "B" must be`},
		{[]string{"a", "2b"}, `the System's name "2b" must be`},
		{[]string{"a", "ratio"}, `the System's name "ratio" must be`},
	} {
		var systems []System
		for _, name := range test.names {
			systems = append(systems, renamed{Curfew(0), name})
		}
		err := checkNames(systems)
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("checkNames of %q = %v, want %q", test.names, err, test.want)
		}
	}
}

func TestZeroLoadsHaveTheirDefaults(t *testing.T) {
	if got, want := ThroughputTrial(ThroughputLoad{}).sizes, (Sizes{Tasks: 20000, Servers: 1}); got != want {
		t.Errorf("throughput has the sizes %+v, want %+v", got, want)
	}
	if got, want := DispatchTrial(DispatchLoad{}).sizes, (Sizes{Tasks: 50}); got != want {
		t.Errorf("dispatch has the sizes %+v, want %+v", got, want)
	}
	recovery := RecoveryTrial(RecoveryLoad{})
	if want := (Sizes{Kills: 10}); recovery.sizes != want || recovery.bound != 240 {
		t.Errorf("recovery has the sizes %+v and the bound %v s, want %+v and 240 s", recovery.sizes, recovery.bound, want)
	}
}

// The seconds at which tasks of two partitions were sent, acknowledged and ended.
func TestGapsAndFlowsOfALoad(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time {
		if s == 0 {
			return time.Time{}
		}
		return start.Add(time.Duration(s) * time.Second)
	}
	mark := func(sent, acked, ended int) *Mark { return &Mark{Sent: at(sent), Acked: at(acked), Ended: at(ended)} }
	l := &Load{marks: [][]*Mark{
		{mark(1, 2, 3), mark(4, 5, 12), mark(6, 0, 0)},
		{mark(1, 1, 2), mark(7, 8, 9), mark(9, 9, 0)},
	}}
	for _, test := range []struct {
		partitions     []int
		after          int
		acking, ending time.Duration
	}{
		{[]int{0}, 1, 3 * time.Second, 9 * time.Second},
		{[]int{1}, 1, 7 * time.Second, 7 * time.Second},
		{[]int{0, 1}, 1, 7 * time.Second, 9 * time.Second},
		{[]int{0}, 3, 2 * time.Second, 9 * time.Second},
		{[]int{0, 1}, 20, 0, 0}, // a gap that has not ended
	} {
		if acking, ending := l.Gap(test.partitions, at(test.after)); acking != test.acking || ending != test.ending {
			t.Errorf("Gap(%v, %d s) = %v, %v, want %v, %v", test.partitions, test.after, acking, ending, test.acking, test.ending)
		}
	}
	for after, want := range map[int]bool{1: true, 3: true, 4: false, 6: false} {
		if got := l.Flows(0, at(after)); got != want {
			t.Errorf("Flows(0, %d s) = %v, want %v", after, got, want)
		}
	}
}

func TestFiguresHaveTheirNames(t *testing.T) {
	for _, test := range []struct {
		trial Trial
		want  string
	}{
		{ThroughputTrial(ThroughputLoad{}), "enqueue_16 enqueue_64 enqueue_lists drain enqueue_and_drain"},
		{DispatchTrial(DispatchLoad{}), "dispatch_p50 dispatch_p99 dispatch_max"},
		{DetectTrial(DeadlineLoad{}), "detect_pending_p50 detect_pending_p99 detect_pending_max detect_running_p50 detect_running_p99 detect_running_max" +
			" detect_handler_p50 detect_handler_p99 detect_handler_max"},
		{RecoveryTrial(RecoveryLoad{}), "recovery_min recovery_p50 recovery_max"},
	} {
		var names []string
		for _, f := range test.trial.figures {
			names = append(names, f.name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("bench %s has the figures %s, want %s", test.trial.bench, got, test.want)
		}
	}
}

func TestCountdownEndsWithTheFirstError(t *testing.T) {
	failed := make(chan error, 1)
	failed <- errors.New("broken")
	c := newCountdown(2)
	c.decrement()
	if err := c.wait(context.Background(), nil, failed); err == nil || err.Error() != "broken" {
		t.Errorf("wait = %v, want broken", err)
	}
	c.decrement()
	if err := c.wait(context.Background(), nil); err != nil {
		t.Errorf("wait = %v, want nil after the last count", err)
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
		t.Error("fromGoroutines does not return the error of a call")
	}
}

func TestALagOfTheBoundOrMoreCountsAsTheBound(t *testing.T) {
	starts := make(chan start, 2)
	begin := time.Now()
	starts <- start{"a", begin.Add(time.Second)}
	starts <- start{"other", begin}
	killed := map[string]time.Time{"a": begin, "b": begin}
	lags, err := awaitStarts(t.Context(), killed, starts, nil, 20*time.Millisecond)
	if err != nil || len(lags) != 2 || lags[0] != 20*time.Millisecond || lags[1] != 20*time.Millisecond {
		t.Errorf("awaitStarts = %v, %v, want the bound twice", lags, err)
	}
}

func TestThresholdsAreRead(t *testing.T) {
	throughput, dispatch := ThroughputTrial(ThroughputLoad{}), DispatchTrial(DispatchLoad{})
	detect, recovery := DetectTrial(DeadlineLoad{}), RecoveryTrial(RecoveryLoad{})
	for _, test := range []struct {
		text  string
		trial Trial
		want  Threshold
		err   string // a part of the refusal
	}{
		{"enqueue_16>=1.2x", throughput, Threshold{figure: "enqueue_16", atLeast: true, ratio: true, limit: 1.2}, ""},
		{"drain>=50000", throughput, Threshold{figure: "drain", atLeast: true, limit: 50000}, ""},
		{" drain <= 50000 ", throughput, Threshold{text: "drain <= 50000", figure: "drain", limit: 50000}, ""},
		{"dispatch_p99<=10ms", dispatch, Threshold{figure: "dispatch_p99", limit: 10}, ""},
		{"dispatch_p99<=0.5s", dispatch, Threshold{figure: "dispatch_p99", limit: 500}, ""},
		{"recovery_max<=1m", recovery, Threshold{figure: "recovery_max", limit: 60}, ""},
		{"detect_pending_p99<=10ms", detect, Threshold{figure: "detect_pending_p99", limit: 10}, ""},
		{"detect_running_p99>=0.9x", detect, Threshold{figure: "detect_running_p99", atLeast: true, ratio: true, limit: 0.9}, ""},
		{"", throughput, Threshold{}, "write enqueue_and_drain>=50000"},
		{"drain", throughput, Threshold{}, "is not a figure, >= or <=, and a limit"},
		{"drain>50000", throughput, Threshold{}, "is not a figure, >= or <=, and a limit"},
		{"drain==50000", throughput, Threshold{}, "is not a figure"},
		{"drain>=", throughput, Threshold{}, "is not a figure"},
		{"drain>=-1", throughput, Threshold{}, "is not a figure"},
		{"drain>=NaN", throughput, Threshold{}, "is not a figure"},
		{"drain>=1.2.3x", throughput, Threshold{}, `the limit "1.2.3x" of drain is not a number`},
		{"drain>=" + strings.Repeat("9", 400), throughput, Threshold{}, "is not a number"},
		{"drain>=10ms", throughput, Threshold{}, `the limit "10ms" of drain is not a number`},
		{"drained>=1", throughput, Threshold{}, `"drained" is not a figure of bench throughput: write`},
		{"drain>=1", dispatch, Threshold{}, "the figures are dispatch_p50, dispatch_p99, dispatch_max"},
		{"dispatch_p50<=10", dispatch, Threshold{}, `the limit "10" of dispatch_p50 is not a duration`},
		{"dispatch_p50<=10days", dispatch, Threshold{}, "write dispatch_max<=20ms"},
		{"detect_pending_p99>=2x", detect, Threshold{}, "has no ratio, because asynq never does this"},
	} {
		got, err := ParseThreshold(test.text, test.trial, Curfew(0), Asynq(), Floor())
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("ParseThreshold(%q): %v, want %q", test.text, err, test.err)
			}
			continue
		}
		if test.want.text == "" {
			test.want.text = test.text
		}
		if err != nil || got != test.want {
			t.Errorf("ParseThreshold(%q) = %+v, %v, want %+v", test.text, got, err, test.want)
		}
	}
}

func TestMissedThresholdsAreListed(t *testing.T) {
	throughput, detect := ThroughputTrial(ThroughputLoad{}), DetectTrial(DeadlineLoad{})
	slow := delays() // in which Curfew reaches the bound
	for i := range slow.Rows {
		slow.Rows[i].Of["curfew"] = Spread{40, 40, 40}
	}
	for _, test := range []struct {
		of    Comparison
		trial Trial
		text  string
		want  string // "" for a limit that holds
	}{
		{rates(), throughput, "drain>=20000", ""},
		{rates(), throughput, "drain<=20000", ""},
		{rates(), throughput, "drain>=2x", ""},
		{rates(), throughput, "drain>=20001", "missed: drain is 20000 tasks/s, and the limit is drain>=20001"},
		{rates(), throughput, "drain>=2.1x", "missed: drain is 2.00 times as good as that of asynq, and the limit is drain>=2.1x"},
		{rates(), throughput, "drain<=1.9x", "missed: drain is 2.00 times as good as that of asynq, and the limit is drain<=1.9x"},
		{delays(), detect, "detect_pending_p50<=2ms", ""},
		{delays(), detect, "detect_running_p50>=10x", ""},
		{delays(), detect, "detect_pending_p50<=1ms", "missed: detect_pending_p50 is 2 ms, and the limit is detect_pending_p50<=1ms"},
		{slow, detect, "detect_pending_p50<=1s", "missed: detect_pending_p50 is > 40 ms, and the limit is detect_pending_p50<=1s"},
		{slow, detect, "detect_running_p50>=1x", "missed: detect_running_p50 is 10.00 times as good as that of asynq, and the limit is detect_running_p50>=1x"},
	} {
		h, err := ParseThreshold(test.text, test.trial, Curfew(0), Asynq())
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		if test.want != "" {
			want = []string{test.want}
		}
		if got := test.of.Missed([]Threshold{h}); !slices.Equal(got, want) {
			t.Errorf("%s: missed %q, want %q", test.text, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, row := range []struct {
		claim  string
		values []float64
		want   Spread
	}{
		{"no values have a zero spread", nil, Spread{}},
		{"one value is median, least and most", []float64{7}, Spread{7, 7, 7}},
		{"the median is the value in the middle, in any order", []float64{9, 1, 2}, Spread{2, 1, 9}},
		{"the median of an even number is the mean of the two in the middle", []float64{4, 1, 2, 100}, Spread{3, 1, 100}},
	} {
		if got := spread(row.values); got != row.want {
			t.Errorf("%s: spread(%v) = %v, want %v", row.claim, row.values, got, row.want)
		}
	}
	values := []float64{3, 1, 2}
	if spread(values); !slices.Equal(values, []float64{3, 1, 2}) {
		t.Errorf("spread changed the order of its values to %v", values)
	}
}

func TestRatiosAreOfRunsSideBySide(t *testing.T) {
	for _, row := range []struct {
		claim      string
		a, b, want []float64
	}{
		{"runs are divided one by one", []float64{10, 30}, []float64{5, 10}, []float64{2, 3}},
		{"a run of zero is left out", []float64{10, 30}, []float64{0, 10}, []float64{3}},
		{"a run without a partner is left out", []float64{10, 30}, []float64{5}, []float64{2}},
	} {
		if got := ratios(row.a, row.b); !slices.Equal(got, row.want) {
			t.Errorf("%s: ratios(%v, %v) = %v, want %v", row.claim, row.a, row.b, got, row.want)
		}
	}
}

func TestDigitsAreThreeOrWhole(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.12345: "0.123", 15.678: "15.7", 999.4: "999", 21345.6: "21346"} {
		if got := Digits(v); got != want {
			t.Errorf("Digits(%v) = %s, want %s", v, got, want)
		}
	}
}
