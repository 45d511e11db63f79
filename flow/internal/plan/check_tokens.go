package plan

// opened is a fan-out to which a token belongs, and those around it.
type opened struct {
	by     string // the transition
	around *opened
}

// token is where a token can be.
type token struct {
	node string
	open *opened // the innermost fan-out, nil for none
}

// mostSteps is how far the ways of tokens are followed. A graph that fans out again and again has ways without end.
const mostSteps = 100_000

// checkTokens finds synchronizations to which no token of their fan-out can come. It follows all ways through the graph, with the fan-outs to
// which a token belongs there. It gives up when there are very many.
func (r *reader) checkTokens(g *Graph) {
	unique := map[opened]*opened{} // so that equal ones are the same
	seen, next := map[token]bool{{node: g.Initial}: true}, []token{{node: g.Initial}}
	reached, met := map[*Transition]bool{}, map[*Transition]bool{}
	for steps := 0; len(next) > 0; next = next[1:] {
		for _, t := range g.leaving[next[0].node] {
			to := token{t.To, next[0].open}
			if t.Meet != nil {
				reached[t] = true
				for ; to.open != nil && to.open.by != t.Meet.Group; to.open = to.open.around {
					steps++
				}
				if to.open == nil {
					continue // such a token ends the run
				}
				to.open, met[t] = to.open.around, true
			}
			if t.FanOut != nil {
				within := opened{t.ID, to.open}
				if unique[within] == nil {
					unique[within] = &within
				}
				to.open = unique[within]
			}
			if steps++; steps > mostSteps {
				return
			}
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	for _, t := range g.Transitions {
		if reached[t] && !met[t] {
			r.at(r.field(t.Meet, "sibling_group"), "no token of %s comes here: its tokens have met before, or are made on another way", t.Meet.Group)
		}
	}
}
