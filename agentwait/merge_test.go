package agentwait

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/refusal"
)

// arrived are results in the order in which they came, each with its place among the
// members.
func arrived(t *testing.T, texts ...string) (all []branch) {
	t.Helper()
	for _, text := range texts {
		var b branch
		place, output, _ := strings.Cut(text, " ")
		if _, err := fmt.Sscan(place, &b.place); err != nil {
			t.Fatal(err)
		}
		b.output = json.RawMessage(output)
		all = append(all, b)
	}
	return all
}

func TestMerge(t *testing.T) {
	const whole, items = "_branch.output", "_branch.output.items"
	for _, c := range []struct {
		claim string
		merge Merge
		of    []string
		want  string
	}{
		{"append is what nobody needs to say", Merge{}, []string{`0 1`, `1 2`}, `[1,2]`},
		{"append stands in the order of the members, not of their ends", Merge{Strategy: Append}, []string{`2 "c"`, `0 "a"`, `1 "b"`}, `["a","b","c"]`},
		{"append takes no list apart", Merge{Strategy: Append}, []string{`0 [1,2]`, `1 3`}, `[[1,2],3]`},
		{"append takes lists apart if told to, one level deep", Merge{Strategy: Append, Flatten: true}, []string{`0 [1,[2]]`, `1 3`, `2 []`}, `[1,[2],3]`},
		{"null is a value to append", Merge{Strategy: Append, Flatten: true}, []string{`0 null`, `1 {"a":1}`}, `[null,{"a":1}]`},
		{"merge_object is one object", Merge{Strategy: MergeObject}, []string{`0 {"a":1}`, `1 {"b":2}`}, `{"a":1,"b":2}`},
		{"merge_object: the later member counts, whoever came last", Merge{Strategy: MergeObject}, []string{`1 {"a":"one"}`, `0 {"a":"zero"}`}, `{"a":"one"}`},
		{"merge_object is not deep", Merge{Strategy: MergeObject}, []string{`0 {"a":{"x":1}}`, `1 {"a":{"y":2}}`}, `{"a":{"y":2}}`},
		{"keyed_by_branch is keyed by place", Merge{Strategy: KeyedByBranch}, []string{`2 "c"`, `0 "a"`}, `{"0":"a","2":"c"}`},
		{"last_wins is the last to come", Merge{Strategy: LastWins}, []string{`2 "c"`, `0 "a"`, `1 "b"`}, `"b"`},
		{"last_wins by index is the last of the members", Merge{Strategy: LastWins, ByIndex: true}, []string{`2 "c"`, `0 "a"`, `1 "b"`}, `"c"`},

		{"the whole output is what nobody needs to say", Merge{Source: whole}, []string{`0 {"items":1}`}, `[{"items":1}]`},
		{"a source is a path into each output", Merge{Source: items}, []string{`0 {"items":[1],"more":2}`, `1 {"items":3}`}, `[[1],3]`},
		{"a source goes into lists by number", Merge{Source: items + ".1.n"}, []string{`0 {"items":[{"n":1},{"n":2}]}`}, `[2]`},
		{"an output that has nothing there is left out", Merge{Source: items}, []string{`0 {}`, `1 {"items":3}`, `2 [1]`, `3 7`, `4 null`}, `[3]`},
		{"and is not the last to win", Merge{Source: items, Strategy: LastWins}, []string{`0 {"items":1}`, `1 {}`}, `1`},
		{"nor the last of the members", Merge{Source: items, Strategy: LastWins, ByIndex: true}, []string{`0 {"items":1}`, `1 {}`}, `1`},
		{"a place in a list that is not there", Merge{Source: items + ".5"}, []string{`0 {"items":[1]}`, `1 {"items":[1]}`}, ``},
		{"no output at all is left out", Merge{}, []string{`0 `, `1 1`}, `[1]`},
		{"nothing came", Merge{Target: "state.results"}, nil, ``},

		{"a target is a path to where it stands", Merge{Target: "state.results"}, []string{`0 1`}, `{"state":{"results":[1]}}`},
		{"of each strategy", Merge{Strategy: LastWins, Source: items, Target: "last"}, []string{`0 {"items":1}`}, `{"last":1}`},
		{"large numbers and spaces stay as they are", Merge{Strategy: KeyedByBranch}, []string{`0 12345678901234567890`}, `{"0":12345678901234567890}`},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := c.merge.merge(arrived(t, c.of...))
			if err != nil || string(got) != c.want {
				t.Errorf("merged to %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestMergeRefuses(t *testing.T) {
	for _, c := range []struct {
		claim string
		merge Merge
		of    []string
		says  string
	}{
		{"a strategy that there is not", Merge{Strategy: "sum"}, []string{`0 1`}, `strategy "sum" must be append, merge_object, keyed_by_branch or last_wins`},
		{"a source elsewhere", Merge{Source: "state.results"}, nil, `source "state.results" must be _branch.output`},
		{"a source of a similar name", Merge{Source: "_branch.outputs"}, nil, `source "_branch.outputs" must be _branch.output`},
		{"a gap in the source", Merge{Source: "_branch.output..a"}, nil, `path "_branch.output..a" has an empty part`},
		{"a gap in the target", Merge{Target: ".a"}, nil, `path ".a" has an empty part`},
		{"an object of what is none", Merge{Strategy: MergeObject}, []string{`0 {}`, `1 [1]`}, "the result of member 1 is not an object"},
		{"an object of null", Merge{Strategy: MergeObject}, []string{`0 null`}, "the result of member 0 is not an object"},
		{"what is no JSON", Merge{}, []string{`0 1`, `1 {"a"`}, "the result of member 1: invalid argument: it is not JSON"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := c.merge.merge(arrived(t, c.of...))
			if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("merged to %s, %v; want an ErrInvalid that says %q", got, err, c.says)
			}
		})
	}
}
