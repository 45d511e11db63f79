package flow

import "github.com/curfew-dev/curfew/flow/internal/plan"

// Schema returns a JSON Schema of definitions, of the draft 2020-12. `make docs` writes it to docs/reference/flow.schema.json.
// A definition that it refuses is refused by [Check]. Check also finds what needs the whole definition: names that nothing has,
// cycles, and expressions that do not compile.
func Schema() []byte { return plan.Schema() }

// Reference returns the tables of recommended times, types and fields of docs/reference/flow.md, as Markdown.
func Reference() string { return plan.Reference() }

// Preset is a recommended time of attempts. A definition has it only where it names it: attempt_timeout: preset llm_call.
type Preset = plan.Preset

// Presets returns the recommended times.
func Presets() []Preset { return append([]Preset(nil), plan.Presets...) }
