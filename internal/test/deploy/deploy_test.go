package deploy

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/curfew-dev/curfew/internal/test/pages"
	"github.com/curfew-dev/curfew/metrics"
)

func TestTheAlertsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules(t, read(t, "prometheus/rules.yml")).Groups[0].Rules {
		found, _ := faults(r.Expr)
		for _, f := range found {
			t.Errorf("%s: %s", r.Alert, f)
		}
		if seen[r.Alert] || !regexp.MustCompile(`^Curfew[A-Z]\w+$`).MatchString(r.Alert) {
			t.Errorf("the name %s is there twice, or is no name of an alert", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		if _, err := time.ParseDuration(r.For); err != nil || r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "{{ $value") {
			t.Errorf("%s has no time, no summary, or no value in its description: %+v", r.Alert, r)
		}
		if want := "https://github.com/curfew-dev/curfew/blob/main/docs/how-to/alert.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s has the runbook %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
	}
	if len(seen) != 17 {
		t.Errorf("there are %d alerts", len(seen))
	}
}

// Each fault is found, so the tests of alerts and panels can fail.
func TestAFaultOfAnExpressionIsFound(t *testing.T) {
	for _, row := range []struct{ expression, want string }{
		{"max by (namespace, queue) (curfew_deadlines_overdue) > 0", ""},
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

// The page shows a command that writes the files for another prefix and more labels.
func TestTheFilesForAnotherPrefixAndMoreLabels(t *testing.T) {
	for _, name := range []string{"grafana/curfew.json", "prometheus/rules.yml", "prometheus/rules_test.yml"} {
		text := adapted(t, read(t, name))
		if strings.Contains(text, metrics.DefaultPrefix) || !strings.Contains(text, "flovyn_task_timeouts_total") {
			t.Errorf("%s has the prefix %s", name, metrics.DefaultPrefix)
		}
		if strings.Contains(text, "(namespace") || !strings.Contains(name, "_test") && !strings.Contains(text, "by (env, region, namespace, queue)") {
			t.Errorf("%s aggregates without the labels", name)
		}
	}
}

// adapted returns what the sed of docs/how-to/alert.md makes of a text.
func adapted(t *testing.T, text string) string {
	t.Helper()
	page, err := pages.Read(top, "docs/how-to/alert.md")
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile(`sed -i\.orig -E '([^']+)'`).FindStringSubmatch(page.Text)
	if script == nil {
		t.Fatal("docs/how-to/alert.md shows no sed -i.orig -E")
	}
	sed := exec.Command("sed", "-E", script[1])
	sed.Stdin = strings.NewReader(text)
	out, err := sed.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
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
	for _, r := range rules(t, read(t, "prometheus/rules.yml")).Groups[0].Rules {
		text, found := sections[r.Alert]
		for _, must := range []string{"**Means.** ", "**Look.** ", "**Do.** ", "`curfew "} {
			if !strings.Contains(text, must) {
				t.Errorf("docs/how-to/alert.md: the section %s (there: %v) has no %s", r.Alert, found, must)
			}
		}
		delete(sections, r.Alert)
	}
	for name := range sections {
		t.Errorf("docs/how-to/alert.md has a section %s, which is no alert", name)
	}
}

// Each alert has a story in which it is silent, fires, and is silent again.
func TestEachAlertFiresAndStopsInAStory(t *testing.T) {
	var file storyFile
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "prometheus/rules_test.yml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t, read(t, "prometheus/rules.yml")).Groups[0].Rules {
		if !slices.ContainsFunc(file.Tests, func(s story) bool {
			n := len(s.Looks)
			return strings.HasPrefix(s.Name, r.Alert+": ") && n >= 3 && len(s.Looks[0].Alerts) == 0 && len(s.Looks[1].Alerts) > 0 && len(s.Looks[n-1].Alerts) == 0
		}) {
			t.Errorf("no story shows that %s fires and stops", r.Alert)
		}
	}
	for _, s := range file.Tests {
		for _, l := range s.Looks {
			if !strings.HasPrefix(s.Name, l.Alert+": ") {
				t.Errorf("the story %q looks at %s", s.Name, l.Alert)
			}
		}
		for _, one := range s.Series {
			name, rest, _ := strings.Cut(one.Series, "{")
			if name == "up" {
				continue
			}
			m, found := find(name)
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(rest, -1) {
				if !slices.Contains(append([]string{"namespace", "instance", "le"}, m.Labels...), label[1]) {
					t.Errorf("%s: %s has no label %s", s.Name, name, label[1])
				}
			}
			if got := strings.Count(rest, `="`) - strings.Count(rest, `le="`); !found || got != len(m.Labels)+2 {
				t.Errorf("%s: %s has %d labels, want namespace, instance and %q", s.Name, name, got, m.Labels)
			}
		}
	}
}

// What Grafana needs of a dashboard, checked in the file.
func TestTheDashboardIsSound(t *testing.T) {
	d := board(t)
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
		if p.FieldConfig.Defaults.Unit == "" || p.Description == "" || p.Options == nil || len(p.Targets) == 0 {
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
