package machine

// notEnded is what expressions read of a node that has not ended: all is nil. It is never changed.
var notEnded = map[string]any{"phase": nil, "code": nil, "msg": nil, "outputs": map[string]any{"parameters": map[string]any(nil), "result": nil}}

// withNotEnded adds the nodes that can be read and have not ended to those that have.
func (g *graph) withNotEnded(nodes map[string]any) map[string]any {
	for _, name := range g.of.Read {
		if nodes[name] == nil {
			nodes[name] = notEnded
		}
	}
	return nodes
}
