package harness

import (
	"bytes"
	"strings"
	"sync"
)

// Logs collects log output. It is safe for concurrent use.
type Logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything that was logged.
func (l *Logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often a text was logged.
func (l *Logs) Count(s string) int { return strings.Count(l.String(), s) }

// Reset forgets what was logged.
func (l *Logs) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
