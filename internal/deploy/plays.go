package deploy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// playFile is the file of tests of rules, as promtool reads it.
type playFile struct {
	RuleFiles          []string `yaml:"rule_files"`
	EvaluationInterval string   `yaml:"evaluation_interval"`
	Tests              []play   `yaml:"tests"`
}

type play struct {
	Name        string       `yaml:"name"`
	Interval    string       `yaml:"interval"`
	InputSeries []playSeries `yaml:"input_series"`
	AlertTests  []playLook   `yaml:"alert_rule_test"`
}

type playSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type playLook struct {
	Time   string      `yaml:"eval_time"`
	Name   string      `yaml:"alertname"`
	Alerts []playAlert `yaml:"exp_alerts"`
}

type playAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// plays returns the file of tests of the rules.
func plays(alerts []alert, stories []story) (string, error) {
	file := playFile{RuleFiles: []string{"rules.yml"}, EvaluationInterval: "30s"}
	for _, s := range stories {
		at := slices.IndexFunc(alerts, func(a alert) bool { return a.name == s.alert })
		if at < 0 {
			return "", fmt.Errorf("a story is about %s, which is no alert", s.alert)
		}
		p := play{Name: s.alert + ": " + s.claim, Interval: "1m"}
		for _, one := range s.series {
			p.InputSeries = append(p.InputSeries, playSeries{one.name, one.samples})
		}
		for _, l := range s.looks {
			seen := playLook{Time: fmt.Sprintf("%dm", l.minute), Name: s.alert, Alerts: []playAlert{}}
			if l.labels != nil {
				seen.Alerts = append(seen.Alerts, expected(alerts[at], l))
			}
			p.AlertTests = append(p.AlertTests, seen)
		}
		file.Tests = append(file.Tests, p)
	}
	return toYAML(file)
}

// templated is a value or a label in a sentence of an alert.
var templated = regexp.MustCompile(`{{ \$(value|labels\.\w+)[^}]* }}`)

// expected is an alert that fires, with its sentences as a reader sees them.
func expected(a alert, l look) playAlert {
	fill := func(sentence string) string {
		return templated.ReplaceAllStringFunc(sentence, func(part string) string {
			name := templated.FindStringSubmatch(part)[1]
			if name == "value" {
				return l.value
			}
			return l.labels[name[len("labels."):]]
		})
	}
	labels := maps.Clone(l.labels)
	labels["severity"] = a.severity
	return playAlert{labels, map[string]string{
		"summary": fill(a.summary), "description": fill(a.description), "runbook_url": a.runbookURL(),
	}}
}
