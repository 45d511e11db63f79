package machine

import (
	"fmt"

	"github.com/curfew-dev/curfew/internal/expr/value"
)

// mostKept bounds the bytes that a run keeps of what its nodes have yielded. The values of many nodes can be one in memory: in a state or a
// result they are as many.
const mostKept = 64 << 20

var errKept = fmt.Errorf("the run keeps more than %d bytes of what its nodes have yielded: let them store what is large, and yield a name of it", mostKept)

// fits refuses what is too large to be kept.
func fits(kept any) error {
	if value.Size(kept, mostKept) > mostKept {
		return errKept
	}
	return nil
}

// weigh counts the bytes of a call that takes no time. Very many of them can follow each other, so the machine does not wait for the next
// checkpoint to see what it keeps. It looks at its state once in so many bytes, and in each replay at the same ends.
func (m *Machine) weigh(bytes int) {
	var err error
	m.held += bytes
	m.state.Yielded += bytes
	switch {
	case m.held > mostKept:
		err = errKept
	case m.state.Yielded > mostKept:
		m.state.Yielded, err = 0, fits(m.state)
	}
	if err != nil {
		m.end(End{Phase: Error, Msg: err.Error()})
	}
}
