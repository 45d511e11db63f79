package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const top = "../../.."

// read returns the text of a file of the folder deploy.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "deploy", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ruleFile is the file of rules, as Prometheus reads it.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// change returns the file with each rule changed.
func change(t *testing.T, text string, edit func(*rule)) string {
	t.Helper()
	file := rules(t, text)
	for i := range file.Groups[0].Rules {
		edit(&file.Groups[0].Rules[i])
	}
	changed, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}

func rules(t *testing.T, text string) (file ruleFile) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil || len(file.Groups) != 1 {
		t.Fatalf("%d groups, %v", len(file.Groups), err)
	}
	return file
}

// storyFile is the file of tests of the rules, as promtool reads it.
type storyFile struct {
	RuleFiles          []string `yaml:"rule_files"`
	EvaluationInterval string   `yaml:"evaluation_interval"`
	Tests              []story
}

// story is series of samples, one a minute, and the alerts that fire at some minutes.
type story struct {
	Name     string
	Interval string
	Series   []struct{ Series, Values string } `yaml:"input_series"`
	Looks    []struct {
		Time   string `yaml:"eval_time"`
		Alert  string `yaml:"alertname"`
		Alerts []struct {
			Labels      map[string]string `yaml:"exp_labels"`
			Annotations map[string]string `yaml:"exp_annotations"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

// dashboard is what the tests read of the dashboard.
type dashboard struct {
	UID           string
	SchemaVersion int
	Annotations   struct{ List []struct{ Expr string } }
	Templating    struct{ List []struct{ Name string } }
	Panels        []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Options                  map[string]any
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ UID string }
		Instant, Range            bool
	}
}

func board(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, "grafana/curfew.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}
