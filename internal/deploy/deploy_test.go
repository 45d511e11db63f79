package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/curfew-dev/curfew/internal/test/pages"
	"github.com/curfew-dev/curfew/metrics"
)

const top = "../.."

func written(t *testing.T, c Config) map[string]string {
	t.Helper()
	files, err := Files(c)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestTheFilesAreWhatThisPackageWrites(t *testing.T) {
	for name, want := range written(t, Config{}) {
		if got, err := os.ReadFile(filepath.Join(top, "deploy", name)); err != nil || string(got) != want {
			t.Errorf("deploy/%s is not what internal/deploy writes: run make docs (%v)", name, err)
		}
	}
}

func TestTheExpressionsOfTheAlertsAreSound(t *testing.T) {
	var file ruleFile
	if err := yaml.Unmarshal([]byte(written(t, Config{})["prometheus/rules.yml"]), &file); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range file.Groups[0].Rules {
		found, _ := faults(r.Expr)
		for _, f := range found {
			t.Errorf("%s: %s", r.Alert, f)
		}
		if seen[r.Alert] || !regexp.MustCompile(`^Curfew[A-Z]\w+$`).MatchString(r.Alert) {
			t.Errorf("the name %s is there twice, or is no name of an alert", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; s != page && s != ticket {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		if r.For == "0s" || r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "{{ $value") {
			t.Errorf("%s has no time, no summary, or no value in its description: %+v", r.Alert, r)
		}
	}
	if len(seen) != 14 {
		t.Errorf("there are %d alerts", len(seen))
	}
}

// Each fault is found, so the tests of alerts and panels can fail.
func TestAFaultOfAnExpressionIsFound(t *testing.T) {
	for _, row := range []struct{ expression, want string }{
		{once("curfew_deadlines_overdue") + " > 0", ""},
		{`up{job="curfew"} == 0`, ""},
		{"max by (namespace, queue) (curfew_deadlines_overdu) > 0", "not in the table"},
		{"max by (namespace, kind) (curfew_deadlines_overdue) > 0", "no label kind, by which"},
		{`max by (namespace) (curfew_deadlines_due{within="60s",queue="mail"})`, "no label queue"},
		{"sum by (namespace, queue) (curfew_deadlines_overdue) > 0", "max must be its nearest"},
		{"curfew_deadlines_overdue > 0", "max must be its nearest"},
		{"sum by (namespace) (max by (namespace, queue) (curfew_late_completions_total))", "in a rate: false"},
		{"max by (namespace) (rate(curfew_deadlines[5m]))", "in a rate: true"},
		{"max by (namespace) (rate(curfew_task_wait_seconds[5m]))", "not in the table"},
		{"sum by (namespace, script) (rate(curfew_script_duration_seconds[5m]))", ""},
		{"sum by (namespace, le) (rate(curfew_script_duration_seconds[5m]))", "no label le"},
		{"max by (namespace, le) (rate(curfew_task_wait_seconds_sum[5m]))", "no label le"},
		{"max by (namespace, instance) (curfew_deadlines)", "no label instance"},
		{"max by (namespace, instance) (curfew_worker_stray)", ""},
		{"max(curfew_deadlines)", "max has no labels"},
		{"floor(max by (namespace) (curfew_deadlines))", "floor is unknown"},
		{`up{jab="curfew"}`, "no label jab"},
		{"(time()", "not closed"},
		{"time())", "not opened"},
	} {
		found, _ := faults(row.expression)
		if got := strings.Join(found, "; "); (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.expression, got, row.want)
		}
	}
}

func TestAConfigurationThatIsNotValidIsRefused(t *testing.T) {
	for _, c := range []Config{{Prefix: "9a_"}, {Prefix: "a-b"}, {Keep: []string{""}}, {Keep: []string{"a b"}}, {Keep: []string{"namespace"}}} {
		if files, err := Files(c); err == nil || files != nil {
			t.Errorf("%+v is accepted: %v", c, err)
		}
	}
}

func TestThePrefixAndTheLabelsAreThoseOfTheConfiguration(t *testing.T) {
	for name, text := range written(t, Config{Prefix: "flovyn_", Keep: []string{"env", "region"}}) {
		if strings.Contains(text, metrics.DefaultPrefix) || !strings.Contains(text, "flovyn_task_timeouts_total") {
			t.Errorf("%s has the prefix %s", name, metrics.DefaultPrefix)
		}
		if strings.Contains(text, "(namespace") || !strings.Contains(name, "_test") && !strings.Contains(text, "by (env, region, namespace, queue)") {
			t.Errorf("%s aggregates without the labels", name)
		}
	}
}

func TestEachAlertHasItsSectionInTheRunbook(t *testing.T) {
	page, err := pages.Read(top, "docs/how-to/alert.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(page.Text, "\n### ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		sections[name] = text
	}
	for _, a := range alerts {
		text, found := sections[a.name]
		for _, must := range []string{"**Means.** ", "**Look.** ", "**Do.** ", "`curfew "} {
			if !strings.Contains(text, must) {
				t.Errorf("docs/how-to/alert.md: the section %s (there: %v) has no %s", a.name, found, must)
			}
		}
		delete(sections, a.name)
	}
	for name := range sections {
		t.Errorf("docs/how-to/alert.md has a section %s, which is no alert", name)
	}
}

// Each alert has a story in which it is silent, fires, and is silent again.
func TestEachAlertFiresAndStopsInAStory(t *testing.T) {
	for _, a := range alerts {
		if !slices.ContainsFunc(stories, func(s story) bool {
			n := len(s.looks)
			return s.alert == a.name && n >= 3 && s.looks[0].labels == nil && s.looks[1].labels != nil && s.looks[n-1].labels == nil
		}) {
			t.Errorf("no story shows that %s fires and stops", a.name)
		}
	}
	for _, s := range stories {
		for _, one := range s.series {
			name, rest, _ := strings.Cut(one.name, "{")
			if name == "up" {
				continue
			}
			m, found := find(name)
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(rest, -1) {
				if !slices.Contains(append([]string{"namespace", "instance", "le"}, m.Labels...), label[1]) {
					t.Errorf("%s: %s has no label %s", s.claim, name, label[1])
				}
			}
			if got := strings.Count(rest, `="`) - strings.Count(rest, `le="`); !found || got != len(m.Labels)+2 {
				t.Errorf("%s: %s has %d labels, want namespace, instance and %q", s.claim, name, got, m.Labels)
			}
		}
	}
}

// What Grafana needs of a dashboard, checked in the file.
func TestTheDashboardIsSound(t *testing.T) {
	var d dashboard
	decoder := json.NewDecoder(strings.NewReader(written(t, Config{})["grafana/curfew.json"]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.SchemaVersion < 36 || len(d.Templating.List) != 2 || len(d.Annotations.List) != 1 {
		t.Errorf("uid %q, schema %d, %d variables, %d annotations", d.UID, d.SchemaVersion, len(d.Templating.List), len(d.Annotations.List))
	}
	shown := map[string]bool{}
	check := func(place, text string) {
		t.Helper()
		found, names := faults(text)
		for _, f := range found {
			t.Errorf("%s: %s", place, f)
		}
		for _, name := range names {
			shown[name] = true
		}
		if strings.Count(text, `{namespace="$namespace"`) != len(names) || len(names) == 0 {
			t.Errorf("%s: not each metric is of the chosen namespace: %s", place, text)
		}
	}
	check("annotation", d.Annotations.List[0].Expr)

	var titles []string
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID < 1 || p.Title == "" {
			t.Errorf("the panel %q has the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s overlaps %q, or is too wide, at %d, %d", p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.GridPos.W*p.GridPos.H == 0 {
			t.Errorf("%s has no size", p.Title)
		}
		if p.Type == "row" {
			titles = append(titles, p.Title)
			continue
		}
		if p.FieldConfig == nil || p.FieldConfig.Defaults.Unit == "" || p.Description == "" || p.Options == nil || len(p.Targets) == 0 {
			t.Errorf("%s has no unit, description, options or targets", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.Datasource.UID != "${datasource}" || target.Range == target.Instant {
				t.Errorf("%s: %+v", p.Title, target)
			}
			refs[target.RefID] = true
			check(p.Title, target.Expr)
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if first, _, _ := strings.Cut(target.Expr[max(strings.Index(target.Expr, "by ("), 0):], ")"); !slices.Contains(token.FindAllString(first, -1), label[1]) {
					t.Errorf("%s: the legend has %s, which the expression drops: %s", p.Title, label[1], target.Expr)
				}
			}
		}
	}
	if want := []string{"Deadlines", "Detection lag", "Queues", "Agents", "Flows", "Reapers", "Redis"}; !slices.Equal(titles, want) {
		t.Errorf("the rows are %q, want %q", titles, want)
	}
	for _, m := range metrics.All() {
		if !shown[m.Name] {
			t.Errorf("no panel shows %s", m.Name)
		}
	}
}

func TestSpan(t *testing.T) {
	for want, d := range map[string]time.Duration{"1h": time.Hour, "90m": 90 * time.Minute, "61s": 61 * time.Second, "1500ms": 1500 * time.Millisecond} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %s, want %s", d, got, want)
		}
	}
}
