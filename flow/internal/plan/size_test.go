package plan

import (
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/size"
)

// repeated returns n parts with commas between them. In each of them # is its number, and ~ the number before it.
func repeated(n int, part string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(strings.ReplaceAll(part, "#", strconv.Itoa(i)), "~", strconv.Itoa(max(i-1, 0)))
	}
	return strings.Join(all, ",")
}

func graphOf(nodes, transitions, more string) string {
	return `{"actions":[{"id":"a","kind":"x"}],"initial":"n0","nodes":[` + nodes + `],"transitions":[` + transitions + `]` + more + `}`
}

type largeDefinition struct{ name, text string }

// largeDefinitions returns definitions of up to 1 MiB, good and bad, each with many parts of one sort.
func largeDefinitions() []largeDefinition {
	return []largeDefinition{
		{"a chain of nodes", dag(`{"name":"m","executor":{"type":"a"}},{"name":"n0","executor":{"type":"a"}},` + repeated(14_000, `{"name":"p#","executor":{"type":"a"},"dependencies":["m","n0"]}`))},
		{"nodes that read the first one", dag(`{"name":"p","executor":{"type":"x"}},{"name":"n0","executor":{"type":"x"},"dependencies":["p"]},` + strings.ReplaceAll(repeated(7_000, `{"name":"q#","executor":{"type":"x"},"dependencies":["q~"],"inputs":{"parameters":[{"name":"v","value":"{{ tasks.p.phase }}"}]}}`), `["q0"]`, `["n0"]`))},
		{"nodes that read the one before", dag(`{"name":"n0","executor":{"type":"x"}},` + strings.ReplaceAll(repeated(7_000, `{"name":"q#","executor":{"type":"x"},"dependencies":["q~"],"inputs":{"parameters":[{"name":"v","value":"{{ tasks.q~.phase }}"}]}}`), `["q0"]`, `["n0"]`))},
		{"one node that awaits all", dag(repeated(10_000, `{"name":"n#","executor":{"type":"x"}}`) + `,{"name":"z","executor":{"type":"x"},"dependencies":[` + repeated(10_000, `"n#"`) + `]}`)},
		{"a cycle", dag(strings.Replace(repeated(14_000, `{"name":"n#","executor":{"type":"a"},"dependencies":["n~"]}`), `["n0"]`, `["n13999"]`, 1))},
		{"unknown dependencies", dag(repeated(14_000, `{"name":"node#","executor":{"type":"a"},"dependencies":["nude#"]}`))},
		{"templates within each other", `{"spec":{"entrypoint":"t0","templates":[` + repeated(18_000, `{"name":"u#","task":{"template":"u~"}}`) + `,{"name":"t0","task":{"template":"u17999"}}]}}`},
		{"calls of a template with many inputs", `{"spec":{"entrypoint":"main","templates":[{"name":"in","dag":{"tasks":[{"name":"a","executor":{"type":"x"}}]},"inputs":{"parameters":[` + repeated(10_000, `{"name":"p#","value":1}`) + `]}},{"name":"main","dag":{"tasks":[` + repeated(18_000, `{"name":"n#","template":"in"}`) + `]}}]}}`},
		{"a node with many inputs", dag(`{"name":"a","executor":{"type":"x"},"inputs":{"parameters":[` + repeated(24_000, `{"name":"p#","value":1}`) + `]}}`)},
		{"a fan-out within itself", graphOf(`{"id":"n0","action_id":"a"}`, `{"id":"`+strings.Repeat("f", 60)+`","from":"n0","to":"n0","fan_out":{"spawn_count":2}}`, "")},
		{"two fan-outs within themselves, and fan-ins", graphOf(`{"id":"n0","action_id":"a"}`, repeated(2, `{"id":"f#","from":"n0","to":"n0","fan_out":{"spawn_count":2}}`)+`,`+repeated(2, `{"from":"n0","to":"n0","synchronization":{"strategy":"any","sibling_group":"f#"}}`), "")},
		{"many members", dag(`{"name":"a","executor":{"type":"x"},"inputs":{"parameters":[{"name":"a","value":{` + repeated(90_000, `"k#":0`) + `}}]}}`)},
		{"many numbers", dag(`{"name":"a","executor":{"type":"x"},"inputs":{"parameters":[{"name":"a","value":[` + repeated(500_000, `0`) + `]}]}}`)},
		{"many lines", dag(`{"name":"a","executor":{"type":"x"},"inputs":{"parameters":[{"name":"a","value":[` + repeated(300_000, "0\n") + `]}]}}`)},
		{"a long graph", graphOf(repeated(11_000, `{"id":"n#","action_id":"a"}`), repeated(11_000, `{"from":"n~","to":"n#"}`), "")},
		{"a graph with many actions", strings.Replace(graphOf(repeated(8_000, `{"id":"n#","action_id":"b#"}`), repeated(8_000, `{"from":"n~","to":"n#"}`), ""), `{"id":"a","kind":"x"}`, repeated(8_000, `{"id":"b#","kind":"x"}`), 1)},
		{"fan-outs and fan-ins", graphOf(repeated(6_000, `{"id":"n#","action_id":"a"}`), `{"from":"n0","to":"n1"},`+repeated(3_000, `{"id":"f#","from":"n~","to":"n#","fan_out":{"spawn_count":2}},{"from":"n#","to":"n~","synchronization":{"strategy":"all","sibling_group":"f#"}}`), "")},
		{"a state with many values", strings.Replace(graphOf(`{"id":"n0","action_id":"a"}`, "", ""), `{"id":"a","kind":"x"}`, `{"id":"a","kind":"set","implementation":{"values":{`+repeated(50_000, `"state.v#":1`)+`}}}`, 1)},
		{"many unknown fields", dag(repeated(30_000, `{"nome":"n#","tmeplate":"x"}`))},
		{"nodes that read all of tasks", dag(repeated(10_000, `{"name":"n#","executor":{"type":"x"},"inputs":{"parameters":[{"name":"v","value":"{{ tasks }}"}]}}`))},
	}
}

// cost returns the time that f takes, and the bytes that it allocates.
func cost(f func()) (time.Duration, uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	f()
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

// Whatever the parts of a definition are, the time and the memory to read it grow with its length, and not with the square of it. The
// measure is a decoder of JSON, which reads each byte once; reading a definition is 5 to 40 times as much work, and what grows with the square
// takes 500 times as much or more.
func TestReadingTakesTimeForEachByte(t *testing.T) {
	for _, d := range largeDefinitions() {
		if !size.Drawn(d.name, 2) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			if len(d.text) > maxBytes {
				t.Fatalf("the definition has %d bytes: no reader takes so much", len(d.text))
			}
			var ratio float64
			for range 3 { // another program can have the processor in one of them
				var v any
				unit, _ := cost(func() { _ = json.Unmarshal([]byte(d.text), &v) })
				unit = max(unit, 10*time.Millisecond)
				took, bytes := cost(func() { _, _ = Read([]byte(d.text)) })
				if bytes > 512<<20 {
					t.Fatalf("reading %d bytes allocates %d MiB", len(d.text), bytes>>20)
				}
				if ratio = float64(took) / float64(unit); ratio < 200 {
					return
				}
			}
			t.Errorf("reading %d bytes takes %.0f times as long as decoding them", len(d.text), ratio)
		})
	}
}
