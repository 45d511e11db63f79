package agentwait

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/refusal"
)

// arrived returns results in the order they came, each with its place among the members.
func arrived(t *testing.T, texts ...string) (all []Branch) {
	t.Helper()
	for _, text := range texts {
		var b Branch
		place, output, _ := strings.Cut(text, " ")
		if _, err := fmt.Sscan(place, &b.Index); err != nil {
			t.Fatal(err)
		}
		b.Output = json.RawMessage(output)
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
		{"append is the default", Merge{}, []string{`0 1`, `1 2`}, `[1,2]`},
		{"append uses the order of the members, not of their ends", Merge{Strategy: Append}, []string{`2 "c"`, `0 "a"`, `1 "b"`}, `["a","b","c"]`},
		{"append adds a list as one element", Merge{Strategy: Append}, []string{`0 [1,2]`, `1 3`}, `[[1,2],3]`},
		{"append with Flatten adds the elements of lists, one level deep", Merge{Strategy: Append, Flatten: true}, []string{`0 [1,[2]]`, `1 3`, `2 []`}, `[1,[2],3]`},
		{"null is a value to append", Merge{Strategy: Append, Flatten: true}, []string{`0 null`, `1 {"a":1}`}, `[null,{"a":1}]`},
		{"merge_object makes one object", Merge{Strategy: MergeObject}, []string{`0 {"a":1}`, `1 {"b":2}`}, `{"a":1,"b":2}`},
		{"merge_object uses the value of the later member, not of the last to end", Merge{Strategy: MergeObject}, []string{`1 {"a":"one"}`, `0 {"a":"zero"}`}, `{"a":"one"}`},
		{"merge_object is not deep", Merge{Strategy: MergeObject}, []string{`0 {"a":{"x":1}}`, `1 {"a":{"y":2}}`}, `{"a":{"y":2}}`},
		{"keyed_by_branch is keyed by place", Merge{Strategy: KeyedByBranch}, []string{`2 "c"`, `0 "a"`}, `{"0":"a","2":"c"}`},
		{"last_wins is the last to end", Merge{Strategy: LastWins}, []string{`2 "c"`, `0 "a"`, `1 "b"`}, `"b"`},
		{"last_wins by index is the last of the members", Merge{Strategy: LastWins, ByIndex: true}, []string{`2 "c"`, `0 "a"`, `1 "b"`}, `"c"`},

		{"_branch.output is the whole output", Merge{Source: whole}, []string{`0 {"items":1}`}, `[{"items":1}]`},
		{"a source is a path into each output", Merge{Source: items}, []string{`0 {"items":[1],"more":2}`, `1 {"items":3}`}, `[[1],3]`},
		{"a source has the index of a list element", Merge{Source: items + ".1.n"}, []string{`0 {"items":[{"n":1},{"n":2}]}`}, `[2]`},
		{"an output without the source is left out", Merge{Source: items}, []string{`0 {}`, `1 {"items":3}`, `2 [1]`, `3 7`, `4 null`}, `[3]`},
		{"last_wins ignores an output without the source", Merge{Source: items, Strategy: LastWins}, []string{`0 {"items":1}`, `1 {}`}, `1`},
		{"last_wins by index ignores an output without the source", Merge{Source: items, Strategy: LastWins, ByIndex: true}, []string{`0 {"items":1}`, `1 {}`}, `1`},
		{"an index that is not in the list", Merge{Source: items + ".5"}, []string{`0 {"items":[1]}`, `1 {"items":[1]}`}, ``},
		{"an empty output is left out", Merge{}, []string{`0 `, `1 1`}, `[1]`},
		{"without results there is no value", Merge{Target: "state.results"}, nil, ``},

		{"a target is the path of the merged value", Merge{Target: "state.results"}, []string{`0 1`}, `{"state":{"results":[1]}}`},
		{"a target works with last_wins", Merge{Strategy: LastWins, Source: items, Target: "last"}, []string{`0 {"items":1}`}, `{"last":1}`},
		{"large numbers are unchanged", Merge{Strategy: KeyedByBranch}, []string{`0 12345678901234567890`}, `{"0":12345678901234567890}`},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := c.merge.Branches(arrived(t, c.of...))
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
		{"an unknown strategy", Merge{Strategy: "sum"}, []string{`0 1`}, `strategy "sum" must be append, merge_object, keyed_by_branch or last_wins`},
		{"a source that is not in the output", Merge{Source: "state.results"}, nil, `source "state.results" must be _branch.output`},
		{"a source of a similar name", Merge{Source: "_branch.outputs"}, nil, `source "_branch.outputs" must be _branch.output`},
		{"an empty part in the source", Merge{Source: "_branch.output..a"}, nil, `path "_branch.output..a" has an empty part`},
		{"an empty part in the target", Merge{Target: ".a"}, nil, `path ".a" has an empty part`},
		{"merge_object of a list", Merge{Strategy: MergeObject}, []string{`0 {}`, `1 [1]`}, "the result of member 1 is not an object"},
		{"merge_object of null", Merge{Strategy: MergeObject}, []string{`0 null`}, "the result of member 0 is not an object"},
		{"an output that is not JSON", Merge{}, []string{`0 1`, `1 {"a"`}, "the result of member 1: invalid argument: it is not JSON"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := c.merge.Branches(arrived(t, c.of...))
			if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("merged to %s, %v; want an ErrInvalid with the text %q", got, err, c.says)
			}
		})
	}
}
