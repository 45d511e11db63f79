package bench

import (
	"bytes"
	"encoding/json"
)

// Comparison is the result of Compare. Its JSON has the names below, which are stable.
type Comparison struct {
	Bench   string `json:"bench"`   // the trial and the other Systems: "throughput --vs asynq"
	Against string `json:"against"` // the other Systems and their versions, without the floor
	Redis   string `json:"redis"`   // the server's version
	AOF     bool   `json:"aof"`     // the server had an append-only file
	Runs    int    `json:"runs"`
	Sizes
	Systems []string `json:"systems"` // the names, in the order of the columns
	Rows    []Row    `json:"rows"`

	load string // in words
}

// Sizes are the sizes of the load. A size that the Trial does not have is 0.
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
// In JSON each System is a field with its name. It is null if the System never does this.
// "ratio" compares the first System with the second, "of_floor" compares it with the floor, and
// "ratios" has the ratios to all other Systems by name.
type Row struct {
	Name string // stable, such as drain or dispatch_p50
	What string
	Unit string // tasks/s, ms or s
	// Bound is the largest value that is measured, or 0 if there is no such limit. A value
	// that is equal to it means "this or more".
	Bound float64
	// Of has the values of each System that does this, by name.
	Of map[string]Spread
	// Ratios say how many times better the first System is than each other one: above 1 it
	// is faster. Each ratio is of two turns of the same run.
	Ratios map[string]Spread

	systems []System
}

// rowFields are the names of JSON fields, which a System cannot have.
var rowFields = []string{"name", "what", "unit", "bound", "ratio", "ratios", "of_floor"}

// MarshalJSON writes the fields in their order: the name first, the Systems after the unit.
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

// orNull returns the value of a key, or nil, which is null in JSON, if the key does not exist.
func orNull(of map[string]Spread, key string) *Spread {
	if value, ok := of[key]; ok {
		return &value
	}
	return nil
}
