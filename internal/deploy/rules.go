package deploy

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// header is the first line of each file that people could want to change.
const header = "# Written by `make docs`. To change it, edit internal/deploy.\n"

// ruleFile is the file of rules, as Prometheus reads it.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// rules returns the file of rules.
func rules(alerts []alert) (string, error) {
	group := ruleGroup{Name: "curfew"}
	for _, a := range alerts {
		group.Rules = append(group.Rules, rule{
			Alert:  a.name,
			Expr:   strings.ReplaceAll(a.condition, "$after", strconv.FormatFloat(a.after.Seconds(), 'f', -1, 64)),
			For:    span(a.lasts),
			Labels: map[string]string{"severity": a.severity},
			Annotations: map[string]string{
				"summary": a.summary, "description": a.description, "runbook_url": a.runbookURL(),
			},
		})
	}
	return toYAML(ruleFile{Groups: []ruleGroup{group}})
}

// span writes a duration as Prometheus reads it: in the largest unit that divides it.
func span(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d%unit.of == 0 {
			return strconv.FormatInt(int64(d/unit.of), 10) + unit.name
		}
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

func toYAML(v any) (string, error) {
	var text bytes.Buffer
	text.WriteString(header)
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	return text.String(), encoder.Close()
}
