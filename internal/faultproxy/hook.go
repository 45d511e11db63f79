package faultproxy

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hook is a fault that was ordered.
type Hook struct {
	kind  kind
	match func(args [][]byte) bool
	hits  chan struct{}
	done  chan struct{} // of a hold: closed by Release

	mu   sync.Mutex
	left int // how many more; below zero: without end
}

type kind int

const (
	cutReply kind = iota
	cutRequest
	hold
)

// Await blocks until the fault has hit once more than was awaited before.
func (h *Hook) Await(tb testing.TB) {
	tb.Helper()
	select {
	case <-h.hits:
	case <-time.After(30 * time.Second):
		tb.Fatal("faultproxy: after 30 s no request has met this fault")
	}
}

// take tells whether the fault hits this time.
func (h *Hook) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 {
		return false
	}
	if h.left > 0 {
		h.left--
	}
	select {
	case h.hits <- struct{}{}:
	default: // nobody waits for that many
	}
	return true
}

// Command matches requests by their first word, in any case.
func Command(names ...string) func(args [][]byte) bool {
	return func(args [][]byte) bool {
		for _, name := range names {
			if len(args) > 0 && strings.EqualFold(string(args[0]), name) {
				return true
			}
		}
		return false
	}
}

// Script matches a call by its handle: as FCALL of a function, as EVALSHA of a digest, or as
// EVAL of the text that has the digest.
func Script(handle string) func(args [][]byte) bool {
	return func(args [][]byte) bool {
		if len(args) < 2 {
			return false
		}
		switch {
		case bytes.EqualFold(args[0], []byte("fcall")), bytes.EqualFold(args[0], []byte("evalsha")):
			return strings.EqualFold(string(args[1]), handle)
		case bytes.EqualFold(args[0], []byte("eval")):
			sum := sha1.Sum(args[1])
			return strings.EqualFold(hex.EncodeToString(sum[:]), handle)
		}
		return false
	}
}
