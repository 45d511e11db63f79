package engine

import (
	"strconv"
	"strings"
)

// Root returns the root key of a partition. It contains the hash tag, so that the whole partition is in
// one slot of a cluster. Scripts derive every other key from it (lua/store/keys.lua).
func (e *Engine) Root(partition int) string {
	return e.namespace + ":{" + strconv.Itoa(partition) + "}"
}

// WakeKey returns the key of a queue's wake tokens: a list on which idle workers block.
func (e *Engine) WakeKey(p int, queue string) string { return e.Root(p) + ":wake:" + queue }

// AlarmChannel returns the channel that reapers are notified on when the next due instant becomes earlier.
func (e *Engine) AlarmChannel(p int) string { return e.Root(p) + ":alarm" }

// EndedChannel returns the channel with the ends of watched tasks.
func (e *Engine) EndedChannel(p int) string { return e.Root(p) + ":ended" }

// StopChannel returns the channel with the attempts that a worker must stop.
func (e *Engine) StopChannel(p int, worker string) string { return e.Root(p) + ":stop:" + worker }

// EventsKey returns the key of a partition's event stream.
func (e *Engine) EventsKey(partition int) string { return e.Root(partition) + ":events" }

var noPattern = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// KeysFrom returns the SCAN pattern for the keys that begin with a prefix. The prefix can contain any characters.
func KeysFrom(prefix string) string { return noPattern.Replace(prefix) + "*" }
