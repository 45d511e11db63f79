package metrics_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/curfew-dev/curfew/metrics"
)

var update = flag.Bool("update", false, "write the golden text")

// vary are lines that depend on the machine and on the run.
var vary = regexp.MustCompile(`(?m)^curfew_scrape_duration_seconds\{.*\n|^curfew_redis_info\{.*\n|^curfew_totals_read_timestamp_seconds\{.*\n`)

// suffix is the random part of the name of a namespace.
var suffix = regexp.MustCompile(`namespace="curfewtest-[a-z0-9]+"`)

func TestTheTextOfABusyNamespaceIsKnown(t *testing.T) {
	_, namespace, _, _ := busy(t, "")
	got := vary.ReplaceAll(suffix.ReplaceAll([]byte(scrape(t, "", namespace)), []byte(`namespace="shop"`)), nil)
	const golden = "testdata/busy.txt"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the text differs from %s (go test ./metrics -update writes it):\n%s", golden, got)
	}
}

func TestLintFindsNothing(t *testing.T) {
	for _, prefix := range []string{"", "flovyn_", "a"} {
		_, namespace, ofWorker, process := busy(t, prefix)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(namespace, ofWorker, process)
		problems, err := testutil.GatherAndLint(registry)
		if err != nil || len(problems) > 0 {
			t.Errorf("prefix %q: %v, %v, want no problem", prefix, problems, err)
		}
	}
}

// Both directions: a row that nothing exports is a promise that is not kept, and a metric without a row is not documented.
func TestABusyNamespaceExportsTheWholeTableAndNothingElse(t *testing.T) {
	for _, prefix := range []string{"curfew_", "flovyn_"} {
		_, namespace, ofWorker, process := busy(t, prefix)
		from := map[metrics.Source]map[string]*dto.MetricFamily{metrics.FromNamespace: gather(t, namespace),
			metrics.FromWorker: gather(t, ofWorker), metrics.FromProcess: gather(t, process)}
		for _, m := range metrics.All() {
			f := from[m.Source][prefix+m.Name]
			delete(from[m.Source], prefix+m.Name)
			if f == nil {
				t.Errorf("%s%s is in the table, and the collector of a %s does not export it", prefix, m.Name, m.Source)
				continue
			}
			if f.GetHelp() != m.Help || strings.ToLower(f.GetType().String()) != string(m.Type) {
				t.Errorf("%s is a %s with the help %q, want a %s with %q", m.Name, f.GetType(), f.GetHelp(), m.Type, m.Help)
			}
			for _, one := range f.GetMetric() {
				checkLabels(t, m, one)
				checkBuckets(t, m, one)
			}
		}
		for source, rest := range from {
			if len(rest) > 0 {
				t.Errorf("the collector of a %s exports %v, which are not in the table", source, slices.Collect(maps.Keys(rest)))
			}
		}
	}
}

func checkLabels(t *testing.T, m metrics.Metric, of *dto.Metric) {
	t.Helper()
	var got []string
	for _, l := range of.GetLabel() {
		got = append(got, l.GetName())
	}
	want := slices.Sorted(slices.Values(append(slices.Clone(m.Labels), "namespace")))
	if !slices.Equal(got, want) {
		t.Errorf("%s has the labels %v, want %v", m.Name, got, want)
	}
}

// checkBuckets compares the buckets of the table with those that Redis counts in.
func checkBuckets(t *testing.T, m metrics.Metric, of *dto.Metric) {
	t.Helper()
	var got []float64
	for _, b := range of.GetHistogram().GetBucket() {
		got = append(got, b.GetUpperBound())
	}
	if !slices.Equal(got, m.Buckets()) {
		t.Errorf("%s has the buckets %v, want %v", m.Name, got, m.Buckets())
	}
}

// The names that other programs of the family use come from the prefix alone.
func TestThePrefixGivesTheNamesOfFlovyn(t *testing.T) {
	_, namespace, _, _ := busy(t, "flovyn_")
	all := gather(t, namespace)
	if n := value(all, "flovyn_task_timeouts_total"); n != 2 {
		t.Errorf("flovyn_task_timeouts_total = %v, want 2", n)
	}
	counts := map[string]uint64{}
	for _, m := range all["flovyn_task_duration_seconds"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "timeout" {
				counts[l.GetValue()] += m.GetHistogram().GetSampleCount()
			}
		}
	}
	if fmt.Sprint(counts) != "map[false:6 true:1]" {
		t.Errorf("flovyn_task_duration_seconds has %v values by the label timeout, want 6 false, and 1 true", counts)
	}
}
