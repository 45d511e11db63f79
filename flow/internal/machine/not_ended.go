package machine

// notEnded is the value of a node that has not ended, in which everything is nil. It must not be
// changed, because all such nodes share it.
var notEnded = map[string]any{"phase": nil, "code": nil, "msg": nil, "outputs": map[string]any{"parameters": map[string]any(nil), "result": nil}}

// withNotEnded adds notEnded for the readable nodes that have not ended.
func (g *graph) withNotEnded(nodes map[string]any) map[string]any {
	for _, name := range g.of.Read {
		if nodes[name] == nil {
			nodes[name] = notEnded
		}
	}
	return nodes
}
