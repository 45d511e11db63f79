package bench

import (
	"bytes"
	"encoding/json"
)

// Comparison is what Compare found. Its JSON has the names below, which stay as they are.
type Comparison struct {
	Bench   string `json:"bench"`   // "throughput --vs asynq": the trial and the others
	Against string `json:"against"` // the others and their versions, but for the floor
	Redis   string `json:"redis"`   // the server's version
	AOF     bool   `json:"aof"`     // the server had an append-only file
	Runs    int    `json:"runs"`
	Sizes
	Systems []string `json:"systems"` // the names, in the order of the columns
	Rows    []Row    `json:"rows"`

	load string // in words
}

// Sizes are those of the load, as far as a Trial has them.
type Sizes struct {
	Tasks   int   `json:"tasks,omitempty"`
	Servers int   `json:"servers,omitempty"`
	Running int   `json:"running,omitempty"`
	Others  int   `json:"others,omitempty"`
	OverMS  int64 `json:"over_ms,omitempty"`
	Kills   int   `json:"kills,omitempty"`
}

// Row is one figure of a comparison, of all Systems.
//
// In JSON each System is a field by its name, null if it never does what is measured.
// "ratio" is that of the first System and the second, "of_floor" that of the first System
// and the floor, and "ratios" has those of all others by name.
type Row struct {
	Name string // stable, such as drain or dispatch_p50
	What string
	Unit string // tasks/s, ms or s
	// Bound is the most that a value can be, 0 for no limit. A value that is as large
	// stands for all that is larger.
	Bound float64
	// Of has the values of each System that does what is measured.
	Of map[string]Spread
	// Ratios say how many times better the first System is than another, of the runs that
	// stood side by side: above 1 it is faster.
	Ratios map[string]Spread

	systems []System
}

// rowFields are the names in JSON that no System may have.
var rowFields = []string{"name", "what", "unit", "bound", "ratio", "ratios", "of_floor"}

// MarshalJSON keeps the order of the fields: the name first, then the Systems.
func (r Row) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	add := func(name string, value any) error {
		encoded, err := json.Marshal(value)
		text.WriteString(`,"` + name + `":`)
		text.Write(encoded)
		return err
	}
	for _, field := range r.fields() {
		if err := add(field.name, field.value); err != nil {
			return nil, err
		}
	}
	return append(append([]byte("{"), bytes.TrimPrefix(text.Bytes(), []byte(","))...), '}'), nil
}

type rowField struct {
	name  string
	value any
}

func (r Row) fields() []rowField {
	fields := []rowField{{"name", r.Name}, {"what", r.What}, {"unit", r.Unit}}
	if r.Bound > 0 {
		fields = append(fields, rowField{"bound", r.Bound})
	}
	for _, s := range r.systems {
		fields = append(fields, rowField{s.Name(), orNull(r.Of, s.Name())})
	}
	fields = append(fields, rowField{"ratio", orNull(r.Ratios, r.systems[1].Name())})
	if _, floor := r.Of[floorName]; floor {
		fields = append(fields, rowField{"of_floor", orNull(r.Ratios, floorName)})
	}
	return append(fields, rowField{"ratios", r.Ratios})
}

// orNull returns the value of a key, or nil, which is null in JSON, if there is no such key.
func orNull(of map[string]Spread, key string) *Spread {
	if value, ok := of[key]; ok {
		return &value
	}
	return nil
}
