package plan

import "strings"

// checkTokens finds synchronizations to which no token of their fan-out can come. It follows all ways through the graph, with the fan-outs to
// which a token belongs there, the outermost first. It gives up when there are very many.
func (r *reader) checkTokens(g *Graph) {
	type place struct{ node, open string }
	const most = 10_000
	first := place{node: g.Initial}
	seen, next := map[place]bool{first: true}, []place{first}
	reached, met := map[*Transition]bool{}, map[*Transition]bool{}
	for ; len(next) > 0; next = next[1:] {
		for _, t := range g.Transitions {
			if t.From != next[0].node {
				continue
			}
			to := place{t.To, next[0].open}
			if t.Meet != nil {
				reached[t] = true
				i := strings.LastIndex(to.open+"/", "/"+t.Meet.Group+"/")
				if i < 0 {
					continue // such a token ends the run
				}
				to.open, met[t] = to.open[:i], true
			}
			if t.FanOut != nil {
				to.open += "/" + t.ID
			}
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
		if len(seen) > most {
			return
		}
	}
	for _, t := range g.Transitions {
		if reached[t] && !met[t] {
			r.at(r.field(t.Meet, "sibling_group"), "no token of %s comes here: its tokens have met before, or are made on another way", t.Meet.Group)
		}
	}
}
