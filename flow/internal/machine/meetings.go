package machine

import (
	"maps"
	"slices"
	"time"
)

// Meeting is a place where tokens wait for their siblings.
type Meeting struct {
	To      string    // the node after the fan-in
	Arrived []string  // keys of the calls whose tokens wait
	Missing []string  // keys of the calls that are under way and whose tokens belong to the same fan-out
	Until   time.Time // zero: no token has arrived, or there is no limit
	Proceed bool      // whether the tokens that have arrived then continue; otherwise the run fails
	Needed  []string  // keys of Missing without which the run fails
}

// Meetings returns the places where tokens wait, or waited when the run ended. It knows all keys
// only if the machine has followed the run from its beginning.
func (m *Machine) Meetings() (list []Meeting) {
	g := m.state.Graph
	if g == nil {
		return nil
	}
	for _, of := range slices.Sorted(maps.Keys(g.Fans)) {
		f := g.Fans[of]
		x := f.meeting(g)
		if x == nil || g.late(of) {
			continue
		}
		meeting := Meeting{To: x.To, Until: f.until(g), Proceed: x.Meet.Proceed}
		for _, a := range f.Arrived {
			meeting.Arrived = append(meeting.Arrived, a.key)
		}
		for _, key := range slices.Sorted(maps.Keys(g.Tokens)) {
			if g.within(g.Tokens[key].Fan, of) {
				meeting.Missing = append(meeting.Missing, key)
				if len(f.Siblings) <= max(x.Meet.M, 1) && g.isLast(g.Tokens[key], of) {
					meeting.Needed = append(meeting.Needed, key)
				}
			}
		}
		list = append(list, meeting)
	}
	return list
}

// within reports whether a fan-out is another fan-out, or lies in it.
func (g *graph) within(fan, of int) bool {
	for fan != 0 && fan != of {
		fan = g.Fans[fan].Outer
	}
	return fan == of
}

// isLast reports whether a sibling of a fan-out is lost with a token, because it has no other token,
// and none of its tokens has arrived.
func (g *graph) isLast(t *token, of int) bool {
	fan, index := t.Fan, t.Branch.Index
	for {
		f := g.Fans[fan]
		s := f.Siblings[index]
		switch {
		case s == nil || s.Live > 1 || s.Came:
			return false
		case fan == of:
			return true
		case f.Live > 1:
			return false
		}
		fan, index = f.Outer, f.Branch.Index
	}
}
