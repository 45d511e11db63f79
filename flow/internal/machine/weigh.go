package machine

import (
	"fmt"

	"github.com/curfew-dev/curfew/internal/expr/value"
)

// maxKept bounds the bytes of results that a run keeps. The values of many nodes can share memory,
// but in a state or a result each counts.
const maxKept = 64 << 20

var errKept = fmt.Errorf("the run keeps more than %d bytes of what its nodes have yielded: let them store what is large, and yield a name of it", maxKept)

// fits returns an error for a value that is too large to keep.
func fits(kept any) error {
	if value.Size(kept, maxKept) > maxKept {
		return errKept
	}
	return nil
}

// weigh counts the bytes of a call that takes no time. Very many such calls can follow each other
// before the next checkpoint. So the machine checks the size of its state each time after so many
// bytes, in a replay at the same ends.
func (m *Machine) weigh(bytes int) {
	var err error
	m.held += bytes
	m.state.Yielded += bytes
	switch {
	case m.held > maxKept:
		err = errKept
	case m.state.Yielded > maxKept:
		m.state.Yielded, err = 0, fits(m.state)
	}
	if err != nil {
		m.end(End{Phase: Error, Msg: err.Error()})
	}
}
