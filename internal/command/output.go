package command

import (
	"bytes"
	"fmt"

	"github.com/curfew-dev/curfew/worker"
)

// bounded keeps the first bytes that are written to it, up to a limit, and counts all. It never
// refuses a write: a command that writes too much must not wait.
type bounded struct {
	limit int
	kept  bytes.Buffer
	size  int64
}

func (b *bounded) Write(p []byte) (int, error) {
	b.size += int64(len(p))
	b.kept.Write(p[:min(len(p), b.limit-b.kept.Len())])
	return len(p), nil
}

func (b *bounded) bytes() []byte { return b.kept.Bytes() }

// result returns all that was written. If that is too much, the task fails for good: another attempt
// would write as much.
func (b *bounded) result(who, what string) ([]byte, error) {
	if b.size > int64(b.limit) {
		return nil, worker.Discard(fmt.Errorf("%s more than the %d bytes that a result can have (%d) %s", who, b.limit, b.size, what))
	}
	return b.kept.Bytes(), nil
}

// tailBytes and tailLines bound the text that becomes the error of a task.
const (
	tailBytes = 4 << 10
	tailLines = 20
)

// tail keeps the last bytes that are written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > tailBytes {
		p = p[n-tailBytes:]
	}
	if len(t.kept)+len(p) > 4*tailBytes { // not at each write: a command can write single bytes
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

// text returns the last lines, clean.
func (t *tail) text() string {
	return lastLines(clean(t.kept[max(len(t.kept)-tailBytes, 0):]), tailLines)
}
