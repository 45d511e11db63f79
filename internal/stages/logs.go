package stages

import (
	"bytes"
	"strings"
	"sync"
)

// Logs keeps what was logged. It is safe for concurrent use.
type Logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write is io.Writer's.
func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all of it.
func (l *Logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count tells how often something was logged.
func (l *Logs) Count(s string) int { return strings.Count(l.String(), s) }
