package engine

import (
	"strconv"
	"strings"
)

// Root is the key that a partition begins with. It holds the hash tag, so that
// the whole partition lives in one slot of a cluster; scripts derive every other
// key from it (lua/store/keys.lua).
func (e *Engine) Root(partition int) string {
	return e.namespace + ":{" + strconv.Itoa(partition) + "}"
}

// WakeKey is the list of tokens that workers of a queue wait for.
func (e *Engine) WakeKey(p int, queue string) string { return e.Root(p) + ":wake:" + queue }

// AlarmChannel tells that something falls due sooner.
func (e *Engine) AlarmChannel(p int) string { return e.Root(p) + ":alarm" }

// EndedChannel tells that a watched task has ended.
func (e *Engine) EndedChannel(p int) string { return e.Root(p) + ":ended" }

// StopChannel tells a worker which attempts must stop.
func (e *Engine) StopChannel(p int, worker string) string { return e.Root(p) + ":stop:" + worker }

// EventsKey is the stream of a partition's events.
func (e *Engine) EventsKey(partition int) string { return e.Root(partition) + ":events" }

var noPattern = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// KeysFrom is the pattern for SCAN of the keys that begin with a prefix, whatever it is made of.
func KeysFrom(prefix string) string { return noPattern.Replace(prefix) + "*" }
