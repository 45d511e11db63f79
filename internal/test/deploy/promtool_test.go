package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program returns the path of a program of Prometheus. The test is skipped unless `make doors` runs it.
func program(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv("CURFEW_DOORS") != "1" {
		t.Skipf("CURFEW_DOORS is not 1: this test needs %s, which `make doors` installs", name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// promtool runs promtool in a folder that has these rules and stories beside the configuration of the repository, and returns its output.
func promtool(t *testing.T, rules, stories string, args ...string) (said string, ok bool) {
	t.Helper()
	path := program(t, "promtool")
	folder := t.TempDir()
	config := strings.Replace(read(t, "prometheus/prometheus.yml"), "/secrets/prometheus/", "", 1) // promtool looks for the token
	for name, text := range map[string]string{"prometheus.yml": config, "token": "t", "rules.yml": rules, "rules_test.yml": stories} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestPrometheusAcceptsTheRulesAndTheConfiguration(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"check", "config", "prometheus.yml"}} {
		if said, ok := promtool(t, read(t, "prometheus/rules.yml"), "", args...); !ok || !strings.Contains(said, "17 rules found") {
			t.Errorf("promtool %q: %s", args, said)
		}
	}
}

func TestEachAlertFiresAndIsSilent(t *testing.T) {
	rules, stories := read(t, "prometheus/rules.yml"), read(t, "prometheus/rules_test.yml")
	t.Run("the files of the repository", func(t *testing.T) {
		if said, ok := promtool(t, rules, stories, "test", "rules", "rules_test.yml"); !ok {
			t.Error(said)
		}
	})
	t.Run("another prefix and more labels", func(t *testing.T) {
		if said, ok := promtool(t, adapted(t, rules), adapted(t, stories), "test", "rules", "rules_test.yml"); !ok {
			t.Error(said)
		}
	})
}

// The stories notice an alert that never fires, and one that always fires.
func TestTheStoriesNoticeAWrongRule(t *testing.T) {
	for name, wrong := range map[string]func(*rule){
		"never":  func(r *rule) { r.Expr = "vector(1) > 2" },
		"always": func(r *rule) { r.Expr, r.For = "vector(1)", "0s" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := change(t, read(t, "prometheus/rules.yml"), wrong)
			said, ok := promtool(t, text, read(t, "prometheus/rules_test.yml"), "test", "rules", "rules_test.yml")
			if ok {
				t.Fatal("promtool accepts rules that are all wrong")
			}
			for _, r := range rules(t, text).Groups[0].Rules {
				if !strings.Contains(said, "alertname: "+r.Alert+",") {
					t.Errorf("no story notices that %s is wrong:\n%s", r.Alert, said)
				}
			}
		})
	}
}

// Two servers have a namespace of the same name. A label that is kept distinguishes them.
func TestAKeptLabelDistinguishesNamespaces(t *testing.T) {
	const stories = `rule_files: [rules.yml]
evaluation_interval: 30s
tests:
  - name: nobody sweeps in one of two environments
    interval: 1m
    input_series:
      - {series: 'flovyn_last_sweep_timestamp_seconds{env="test",region="eu",namespace="shop",instance="a"}', values: 0+0x20}
      - {series: 'flovyn_last_sweep_timestamp_seconds{env="live",region="eu",namespace="shop",instance="b"}', values: 0+60x20}
    alert_rule_test:
      - eval_time: 10m
        alertname: CurfewNoReaper
        exp_alerts:
          - exp_labels: {namespace: shop, env: test, region: eu, severity: page}
            exp_annotations:
              description: A partition was last swept 10m 0s ago, so its deadlines are not kept.
              runbook_url: https://github.com/curfew-dev/curfew/blob/main/docs/how-to/alert.md#curfewnoreaper
              summary: No reaper sweeps in shop
`
	if said, ok := promtool(t, adapted(t, read(t, "prometheus/rules.yml")), stories, "test", "rules", "rules_test.yml"); !ok {
		t.Error(said)
	}
}
