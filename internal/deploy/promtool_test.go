package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// promtool runs promtool in a folder that has these files beside those of the repository, and returns what it prints.
func promtool(t *testing.T, files map[string]string, args ...string) (said string, ok bool) {
	t.Helper()
	path := program(t, "promtool")
	folder := t.TempDir()
	scrape, err := os.ReadFile(filepath.Join(top, "deploy/prometheus/prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(scrape), "/secrets/prometheus/", "", 1) // promtool looks for the token
	for name, text := range map[string]string{"prometheus.yml": config, "token": "t", "rules.yml": files["prometheus/rules.yml"], "rules_test.yml": files["prometheus/rules_test.yml"]} {
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
	files := written(t, Config{})
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"check", "config", "prometheus.yml"}} {
		if said, ok := promtool(t, files, args...); !ok || !strings.Contains(said, "14 rules found") {
			t.Errorf("promtool %q: %s", args, said)
		}
	}
}

func TestEachAlertFiresAndIsSilent(t *testing.T) {
	for name, c := range map[string]Config{"the files of the repository": {}, "another prefix and more labels": {Prefix: "flovyn_", Keep: []string{"env"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if said, ok := promtool(t, written(t, c), "test", "rules", "rules_test.yml"); !ok {
				t.Error(said)
			}
		})
	}
}

// The stories notice an alert that never fires, one that always fires, and one that fires at once.
func TestTheStoriesNoticeAWrongRule(t *testing.T) {
	for name, change := range map[string]func(a *alert){
		"never": func(a *alert) { a.condition = "vector(1) > 2" },
		"always": func(a *alert) {
			a.condition, a.lasts = "vector(1)", 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := slices.Clone(alerts)
			for i := range changed {
				change(&changed[i])
			}
			files := written(t, Config{})
			text, err := rules(changed)
			if err != nil {
				t.Fatal(err)
			}
			files["prometheus/rules.yml"] = text
			said, ok := promtool(t, files, "test", "rules", "rules_test.yml")
			if ok {
				t.Fatal("promtool accepts rules that are all wrong")
			}
			for _, a := range alerts {
				if !strings.Contains(said, "alertname: "+a.name+",") {
					t.Errorf("no story notices that %s is wrong:\n%s", a.name, said)
				}
			}
		})
	}
}

// Two servers have a namespace of the same name. A label that is kept distinguishes them.
func TestAKeptLabelDistinguishesNamespaces(t *testing.T) {
	files := written(t, Config{Keep: []string{"env"}})
	at := slices.IndexFunc(alerts, func(a alert) bool { return a.name == "CurfewNoReaper" })
	text, err := plays(alerts, []story{{"CurfewNoReaper", "nobody sweeps in one of two environments",
		[]series{
			{`curfew_last_sweep_timestamp_seconds{env="test",namespace="shop",instance="a"}`, "0+0x20"},
			{`curfew_last_sweep_timestamp_seconds{env="live",namespace="shop",instance="b"}`, "0+60x20"},
		},
		[]look{fires(10, "10m 0s", "namespace", "shop", "env", "test")}}})
	if err != nil || at < 0 {
		t.Fatal(err)
	}
	files["prometheus/rules_test.yml"] = text
	if said, ok := promtool(t, files, "test", "rules", "rules_test.yml"); !ok {
		t.Error(said)
	}
}
