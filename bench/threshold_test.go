package bench

import (
	"slices"
	"strings"
	"testing"
)

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
