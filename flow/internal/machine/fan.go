package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/internal/expr/value"
)

// fan is a fan-out whose tokens have not all ended.
type fan struct {
	ID         int       `json:"id,omitempty"`
	Transition string    `json:"transition,omitempty"` // the transition that created it
	Outer      int       `json:"outer,omitempty"`      // the fan-out around it
	Branch     branch    `json:"branch,omitzero"`      // its place there
	Size       int       `json:"size,omitempty"`
	Live       int       `json:"live"` // tokens, and fan-outs within it whose tokens have not met
	Arrived    []arrival `json:"arrived,omitempty"`
	Came       int       `json:"came,omitempty"`   // number of siblings of which a token has arrived
	First      time.Time `json:"first,omitzero"`   // when the first token arrived or was lost
	Failed     string    `json:"failed,omitempty"` // error of the first token that failed
	Fired      bool      `json:"fired,omitempty"`  // whether its tokens have met

	Siblings map[int]*sibling `json:"siblings,omitempty"` // siblings that have arrived or still can; the run itself has only 0
	Last     map[string]*End  `json:"last,omitempty"`     // the newest end of each node within it that an expression reads
	Counts   map[string]int   `json:"counts,omitempty"`   // number of visits of its tokens to a node, by the beginning of the key
}

// sibling is one of the tokens that a fan-out has made, with all tokens that descend from it.
type sibling struct {
	Live int             `json:"live,omitempty"` // tokens, and fan-outs within it
	Came bool            `json:"came,omitempty"` // whether one of its tokens has arrived
	Ends map[string]*End `json:"ends,omitempty"` // the newest end of each node that its tokens can read
}

// add adds n to the tokens of a sibling. A sibling without tokens is lost if it has not arrived.
func (f *fan) add(index, n int) {
	f.Live += n
	s := f.Siblings[index]
	if s == nil {
		return // the siblings have met
	}
	if s.Live += n; s.Live > 0 || f.ID == 0 {
		return
	}
	if s.Ends = nil; !s.Came {
		delete(f.Siblings, index)
	}
}

// count counts a visit.
func (f *fan) count(key string) int {
	if f.Counts == nil {
		f.Counts = map[string]int{}
	}
	f.Counts[key]++
	return f.Counts[key]
}

// arrival is a token that waits for its siblings, or a token of a fan-out within theirs.
type arrival struct {
	Index  int    `json:"index"`
	Within string `json:"within,omitempty"` // its place in the fan-outs within
	Output any    `json:"output"`

	key string // of the token's call; not stored, because only Meetings needs it
}

// place returns the name of the token in its fan-out, such as 2, or 2-0 for a token of a fan-out within.
func (a arrival) place() string { return strconv.Itoa(a.Index) + a.Within }

// fanOut makes tokens for a transition, in place of one token of the fan-out around them.
func (g *graph) fanOut(m *Machine, x *plan.Transition, t *token, variables map[string]any) {
	items := make([]any, x.FanOut.Count)
	if x.FanOut.Items != nil {
		v, err := x.FanOut.Items.Value(variables)
		list, ok := v.([]any)
		switch {
		case err != nil:
			m.end(End{Phase: Error, Msg: fmt.Sprintf("the items of the transition %s: %v", x.ID, err)})
			return
		case !ok:
			m.end(End{Phase: Error, Msg: fmt.Sprintf("the items of the transition %s must be a list", x.ID)})
			return
		}
		items = list
	}
	path := t.Branch.Path
	if path != "" {
		path += "-"
	}
	if n := g.Fans[t.Fan].count("-" + path); n > 1 {
		path += strconv.Itoa(n) + "_" // a further fan-out at this place
	}
	g.Fanned++
	f := &fan{ID: g.Fanned, Transition: x.ID, Outer: t.Fan, Branch: t.Branch, Size: len(items), Siblings: make(map[int]*sibling, len(items))}
	g.Fans[f.ID] = f
	for i := range items {
		f.Siblings[i] = &sibling{}
		f.add(i, 1)
	}
	if g.settle(m, f.ID); g.Fans[f.ID] != f {
		return // without items the fan-out is over at once
	}
	for i, item := range items {
		g.enter(m, x.To, f.ID, branch{i, item, path + strconv.Itoa(i)})
	}
}

// meet makes a token wait for its siblings. The token leaves the fan-outs within theirs.
func (g *graph) meet(m *Machine, x *plan.Transition, t *token, e End) {
	id := t.Fan
	b := t.Branch
	for id != 0 && g.Fans[id].Transition != x.Meet.Group {
		b, id = g.Fans[id].Branch, g.Fans[id].Outer
	}
	f := g.Fans[id]
	switch {
	case id == 0:
		m.end(End{Phase: Error, Msg: fmt.Sprintf("a token has come to the synchronization before %s, and the transition %s has not made it", x.To, x.Meet.Group)})
		return
	}
	f.begin(m.at)
	f.Arrived = append(f.Arrived, arrival{b.Index, strings.TrimPrefix(t.Branch.Path, b.Path), e.yield(), t.key})
	if s := f.Siblings[b.Index]; !s.Came {
		s.Came = true
		f.Came++
	}
	g.Fans[t.Fan].add(t.Branch.Index, -1) // follow has counted it for this transition
	g.check(m, id)
}

// begin starts the time limit of the meeting.
func (f *fan) begin(at time.Time) {
	if f.First.IsZero() {
		f.First = at
	}
}

// meeting returns the transition at which the tokens of a fan-out meet, nil if they do not.
func (f *fan) meeting(g *graph) *plan.Transition {
	if f.ID == 0 {
		return nil
	}
	return g.of.Meeting(f.Transition)
}

// check replaces the tokens of a fan-out with one token if enough have arrived. If that is no longer
// possible, the run fails.
func (g *graph) check(m *Machine, of int) {
	f := g.Fans[of]
	if f == nil || f.Fired || m.state.Over {
		return
	}
	meet, can := f.meeting(g).Meet, len(f.Siblings)
	enough := f.Live == 0 && (f.Came > 0 || f.Size == 0)
	if meet.Any {
		enough = f.Came > 0
	} else if meet.M > 0 {
		enough = f.Came >= meet.M
	}
	switch {
	case enough:
		g.fire(m, f)
	case meet.M > can:
		m.end(End{Phase: Failed, Msg: fmt.Sprintf("%d tasks must complete, and at most %d can: %s", meet.M, can, f.cause())})
	case f.Live == 0:
		m.end(End{Phase: Failed, Msg: "All tasks failed: " + f.cause()})
	}
}

// cause describes why tokens are missing.
func (f *fan) cause() string {
	if f.Failed != "" {
		return f.Failed
	}
	if len(f.Siblings) == f.Size {
		return fmt.Sprintf("the transition %s has made %d", f.Transition, f.Size)
	}
	return fmt.Sprintf("no condition led a token of the transition %s to the synchronization", f.Transition)
}

// fire replaces the tokens that have arrived with one token, which continues after the fan-in.
func (g *graph) fire(m *Machine, f *fan) {
	x := f.meeting(g)
	merged, err := merge(x.Meet.Merge, f.Arrived)
	if err != nil {
		m.end(End{Phase: Error, Msg: fmt.Sprintf("the merge before %s: %v", x.To, err)})
		return
	}
	if target := x.Meet.Merge.Target; len(target) > 0 {
		g.State = write(g.State, target, merged)
	}
	g.leave(f)
	f.Fired, f.Arrived, f.Siblings, f.Counts = true, nil, nil, nil
	if f.Live == 0 {
		delete(g.Fans, f.ID)
	}
	g.enter(m, x.To, f.Outer, f.Branch)
}

// merge combines the results of tokens into one value. The tokens are in the order of their arrival.
// Tokens of fan-outs within are numbered anew, because several descend from the token of the same
// number; keyed_by_branch names them by their places, such as 2-0.
func merge(how plan.Merge, arrived []arrival) (merged any, err error) {
	if err := fits(arrived); err != nil {
		return nil, err
	}
	order := slices.Clone(arrived)
	slices.SortFunc(order, func(a, b arrival) int {
		return cmp.Or(a.Index-b.Index, slices.Compare(places(a.Within), places(b.Within)))
	})
	nested := slices.ContainsFunc(arrived, func(a arrival) bool { return a.Within != "" })
	number := make(map[string]int, len(order)) // of each token, by its place
	for i, a := range order {
		number[a.place()] = i
	}
	branches, renamed := make([]agentwait.Branch, len(arrived)), map[string]string{}
	for i, a := range arrived {
		output, err := json.Marshal(a.Output)
		if err != nil {
			return nil, err
		}
		branches[i] = agentwait.Branch{Index: a.Index, Output: output}
		if nested {
			branches[i].Index = number[a.place()]
			renamed[strconv.Itoa(branches[i].Index)] = a.place()
		}
	}
	source := "_branch"
	for _, name := range how.Source {
		source += "." + name
	}
	text, err := agentwait.Merge{Strategy: agentwait.Strategy(how.Strategy), Source: source}.Branches(branches)
	switch {
	case err != nil:
		return nil, err
	case text != nil:
	case how.Strategy == "append":
		return []any{}, nil // no result has the source
	case how.Strategy != "last_wins":
		return map[string]any{}, nil
	default:
		return nil, nil
	}
	if err := value.Decode(text, &merged, false); err != nil || !nested || how.Strategy != "keyed_by_branch" {
		return merged, err
	}
	byPlace := map[string]any{}
	for at, result := range merged.(map[string]any) {
		byPlace[renamed[at]] = result
	}
	return byPlace, nil
}

// places returns the numbers of a path such as -2-0.
func places(path string) (numbers []int) {
	for _, text := range strings.FieldsFunc(path, func(c rune) bool { return c == '-' || c == '_' }) {
		n, _ := strconv.Atoi(text)
		numbers = append(numbers, n)
	}
	return numbers
}

// until returns the instant at which the meeting of a fan-out is out of time, zero if it has no
// limit or the limit has not started.
func (f *fan) until(g *graph) (at time.Time) {
	if f.Fired || f.First.IsZero() || f.meeting(g) == nil {
		return at
	}
	limit := f.meeting(g).Meet.Timeout
	if !limit.Set {
		limit.Time = plan.MeetingTime(g.region(f.Transition).longest, f.Size)
	}
	if limit.Time == 0 {
		return at
	}
	return f.First.Add(limit.Time)
}
