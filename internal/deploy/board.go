package deploy

import (
	"encoding/json"
	"regexp"
)

// The dashboard as Grafana reads it.
type dashboard struct {
	UID           string           `json:"uid"`
	Title         string           `json:"title"`
	Description   string           `json:"description"`
	Tags          []string         `json:"tags"`
	SchemaVersion int              `json:"schemaVersion"`
	Version       int              `json:"version"`
	Editable      bool             `json:"editable"`
	Refresh       string           `json:"refresh"`
	Timezone      string           `json:"timezone"`
	Time          timeRange        `json:"time"`
	GraphTooltip  int              `json:"graphTooltip"` // 1: one crosshair for all panels
	Annotations   annotationList   `json:"annotations"`
	Templating    variableList     `json:"templating"`
	Panels        []dashboardPanel `json:"panels"`
	Links         []any            `json:"links"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type annotationList struct {
	List []annotation `json:"list"`
}

type annotation struct {
	Name        string     `json:"name"`
	Enable      bool       `json:"enable"`
	IconColor   string     `json:"iconColor"`
	Datasource  datasource `json:"datasource"`
	Expr        string     `json:"expr"`
	Step        string     `json:"step"`
	TitleFormat string     `json:"titleFormat"`
	TextFormat  string     `json:"textFormat"`
}

type variableList struct {
	List []variable `json:"list"`
}

type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      string      `json:"query"`
	Datasource *datasource `json:"datasource,omitempty"`
	Refresh    int         `json:"refresh"` // 1: when the dashboard is opened, 2: also when its time range changes
	Sort       int         `json:"sort,omitempty"`
	Options    []any       `json:"options"`
	Current    struct{}    `json:"current"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type dashboardPanel struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	Collapsed   *bool          `json:"collapsed,omitempty"` // of rows only
	GridPos     gridPos        `json:"gridPos"`
	Datasource  *datasource    `json:"datasource,omitempty"`
	FieldConfig *fieldConfig   `json:"fieldConfig,omitempty"`
	Options     map[string]any `json:"options,omitempty"`
	Targets     []target       `json:"targets,omitempty"`
	Panels      []any          `json:"panels,omitzero"`
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []any         `json:"overrides"`
}

type fieldDefaults struct {
	Unit string `json:"unit"`
}

type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Format       string     `json:"format"`
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
}

const (
	screen = 24 // the width of a row
	height = 8  // of a panel
)

// chosen is the data source that the reader chooses.
var chosen = datasource{"prometheus", "${datasource}"}

// board returns the dashboard.
func board(rows []row) (string, error) {
	d := dashboard{
		UID: "curfew", Title: "Curfew", Description: "Deadlines, queues, agents, reapers and Redis of one namespace.", Tags: []string{"curfew"},
		SchemaVersion: 39, Version: 1, Editable: true, Refresh: "30s", Timezone: "browser", Time: timeRange{"now-3h", "now"}, GraphTooltip: 1,
		Annotations: annotationList{[]annotation{{
			Name: "Deploys", Enable: true, IconColor: "blue", Datasource: chosen, Step: "60s", TitleFormat: "Deploy", TextFormat: "Curfew {{version}}",
			// A version that was not there five minutes before.
			Expr: inNamespace("max by (namespace, version) (curfew_build_info) unless max by (namespace, version) (curfew_build_info offset 5m)"),
		}}},
		Templating: variableList{[]variable{
			{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1, Options: []any{}},
			{Name: "namespace", Label: "Namespace", Type: "query", Query: "label_values(curfew_up, namespace)", Datasource: &chosen, Refresh: 2, Sort: 1, Options: []any{}},
		}},
		Links: []any{},
	}
	y := 0
	for _, r := range rows {
		d.Panels = append(d.Panels, dashboardPanel{ID: len(d.Panels) + 1, Type: "row", Title: r.title, Collapsed: new(bool), GridPos: gridPos{1, screen, 0, y}, Panels: []any{}})
		y++
		x := 0
		for _, p := range r.panels {
			if x+p.width > screen {
				x, y = 0, y+height
			}
			d.Panels = append(d.Panels, p.at(len(d.Panels)+1, x, y))
			x += p.width
		}
		y += height
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return string(text) + "\n", err
}

// at returns the panel at a place.
func (p panel) at(id, x, y int) dashboardPanel {
	made := dashboardPanel{
		ID: id, Type: p.kind, Title: p.title, Description: p.about, GridPos: gridPos{height, p.width, x, y}, Datasource: &chosen,
		FieldConfig: &fieldConfig{fieldDefaults{p.unit}, []any{}}, Options: options[p.kind],
	}
	for i, l := range p.lines {
		t := target{RefID: string(rune('A' + i)), Datasource: chosen, Expr: inNamespace(l.expression), LegendFormat: l.legend, Format: "time_series", Range: true}
		switch p.kind {
		case "heatmap":
			t.Format = "heatmap"
		case "table":
			t.Format, t.Instant, t.Range = "table", true, false
		}
		made.Targets = append(made.Targets, t)
	}
	return made
}

// options is what each kind of panel needs besides its data.
var options = map[string]map[string]any{
	"timeseries": {
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	},
	"stat": {
		"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		"colorMode":     "value", "graphMode": "area",
	},
	"heatmap": {
		"calculate":    false, // the buckets are those of the histogram
		"cellGap":      1,
		"color":        map[string]any{"mode": "scheme", "scheme": "Oranges", "steps": 64},
		"filterValues": map[string]any{"le": 1e-9},
		"yAxis":        map[string]any{"axisPlacement": "left", "unit": "s"},
		"tooltip":      map[string]any{"mode": "single", "yHistogram": false},
		"legend":       map[string]any{"show": true},
	},
	"table": {"showHeader": true},
}

// selector is a metric in an expression, with its labels or without.
var selector = regexp.MustCompile(metricName.String() + `(\{)?`)

// inNamespace restricts each metric of an expression to the namespace that the reader chooses.
func inNamespace(expression string) string {
	return selector.ReplaceAllStringFunc(expression, func(s string) string {
		if name := metricName.FindString(s); name != s {
			return name + `{namespace="$namespace",`
		}
		return s + `{namespace="$namespace"}`
	})
}
