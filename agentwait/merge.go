package agentwait

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Strategy is a way to merge results into one value.
type Strategy string

// The strategies. "The order of the members" is their order in the call.
const (
	Append        Strategy = "append"          // a list, in the order of the members
	MergeObject   Strategy = "merge_object"    // one object; for equal names the value of the later member is used; not deep
	KeyedByBranch Strategy = "keyed_by_branch" // an object with the index of each member as key: "0", "1", …
	LastWins      Strategy = "last_wins"       // the result of the last member that completed
)

// Merge combines the results of tasks that have completed into one JSON value.
type Merge struct {
	Strategy Strategy // defaults to Append
	// Source is the path of the part of each result to merge. "_branch.output", the default, is the
	// whole result; "_branch.output.items.0" is a part. A result without that part is left out.
	Source string
	// Target is the path of the merged value in the object that is returned, for example
	// "state.results". With "" the value itself is returned.
	Target string
	// Flatten makes Append add the elements of a list instead of the list, one level deep.
	Flatten bool
	// ByIndex makes LastWins use the order of the members instead of the order they ended.
	ByIndex bool
}

// Branch is a result to merge, and its index among the members.
type Branch struct {
	Index  int
	Output json.RawMessage
}

// Of merges the results of the tasks that have completed, Settled.Completed. It returns nil if there
// are none. It returns an error if Merge is invalid, or if a result cannot be decoded or merged.
func (m Merge) Of(s *Settled[json.RawMessage]) (json.RawMessage, error) {
	if s == nil {
		return nil, fmt.Errorf("%w: the outcomes to merge are nil: use what JoinAllSettled returned", refusal.ErrInvalid)
	}
	var branches []Branch
	for _, i := range s.order {
		switch o := s.Outcomes[i]; {
		case o.IsSuccess():
			branches = append(branches, Branch{i, o.Value})
		case o.Status == queue.Completed:
			return nil, o.Err
		}
	}
	return m.Branches(branches)
}

// Branches merges results, which are in the order in which they arrived. It returns nil without
// results.
func (m Merge) Branches(branches []Branch) (json.RawMessage, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	var picked []Branch
	for _, b := range branches {
		output, ok, err := pickPath(b.Output, m.path())
		if err != nil {
			return nil, fmt.Errorf("the result of member %d: %w", b.Index, err)
		}
		if ok {
			picked = append(picked, Branch{b.Index, output})
		}
	}
	if len(picked) == 0 {
		return nil, nil
	}
	last := picked[len(picked)-1]
	slices.SortFunc(picked, func(a, b Branch) int { return a.Index - b.Index })
	var merged any
	var err error
	switch m.Strategy {
	case "", Append:
		merged, err = m.list(picked)
	case MergeObject:
		merged, err = objects(picked)
	case KeyedByBranch:
		byIndex := map[string]json.RawMessage{}
		for _, b := range picked {
			byIndex[strconv.Itoa(b.Index)] = b.Output
		}
		merged = byIndex
	case LastWins:
		if m.ByIndex {
			last = picked[len(picked)-1]
		}
		merged = last.Output
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Backward(m.target()) {
		merged = map[string]any{name: merged}
	}
	return json.Marshal(merged)
}

func (m Merge) check() error {
	switch m.Strategy {
	case "", Append, MergeObject, KeyedByBranch, LastWins:
	default:
		return fmt.Errorf("%w: strategy %q must be append, merge_object, keyed_by_branch or last_wins", refusal.ErrInvalid, m.Strategy)
	}
	if m.Source != "" && m.Source != branchOutput && !strings.HasPrefix(m.Source, branchOutput+".") {
		return fmt.Errorf("%w: source %q must be %s, or a path that begins with it", refusal.ErrInvalid, m.Source, branchOutput)
	}
	for _, path := range []string{m.Source, m.Target} {
		if path != "" && slices.Contains(strings.Split(path, "."), "") {
			return fmt.Errorf("%w: path %q has an empty part", refusal.ErrInvalid, path)
		}
	}
	return nil
}

const branchOutput = "_branch.output"

// path returns the parts of Source after "_branch.output".
func (m Merge) path() []string {
	rest := strings.TrimPrefix(strings.TrimPrefix(m.Source, branchOutput), ".")
	if rest == "" {
		return nil
	}
	return strings.Split(rest, ".")
}

func (m Merge) target() []string {
	if m.Target == "" {
		return nil
	}
	return strings.Split(m.Target, ".")
}

// pickPath follows a path through objects and lists. ok is false if the path leads to nothing.
func pickPath(v json.RawMessage, path []string) (part json.RawMessage, ok bool, err error) {
	if len(bytes.TrimSpace(v)) == 0 {
		return nil, false, nil
	}
	if !json.Valid(v) {
		return nil, false, fmt.Errorf("%w: it is not JSON, so it cannot be merged", refusal.ErrInvalid)
	}
	for _, name := range path {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if json.Unmarshal(v, &object) == nil {
			if v, ok = object[name]; !ok {
				return nil, false, nil
			}
			continue
		}
		i, numeric := strconv.Atoi(name)
		if json.Unmarshal(v, &list) != nil || numeric != nil || i < 0 || i >= len(list) {
			return nil, false, nil
		}
		v = list[i]
	}
	return v, true, nil
}

func (m Merge) list(picked []Branch) ([]json.RawMessage, error) {
	list := []json.RawMessage{}
	for _, b := range picked {
		var inner []json.RawMessage
		if m.Flatten && json.Unmarshal(b.Output, &inner) == nil && inner != nil {
			list = append(list, inner...)
		} else {
			list = append(list, b.Output)
		}
	}
	return list, nil
}

func objects(picked []Branch) (map[string]json.RawMessage, error) {
	merged := map[string]json.RawMessage{}
	for _, b := range picked {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(b.Output, &object); err != nil || object == nil {
			return nil, fmt.Errorf("%w: the result of member %d is not an object, and merge_object merges only objects: use append", refusal.ErrInvalid, b.Index)
		}
		for name, value := range object {
			merged[name] = value
		}
	}
	return merged, nil
}
