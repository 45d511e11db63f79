package queue

import "strconv"

// Root is the key that a partition begins with. It holds the hash tag, so that
// the whole partition lives in one slot of a cluster; scripts derive every other
// key from it (lua/store/keys.lua).
func (q *Queue) Root(partition int) string {
	return q.config.Namespace + ":{" + strconv.Itoa(partition) + "}"
}

// The keys that Go names itself: what it blocks on and subscribes to.
func (q *Queue) wakeKey(p int, queue string) string      { return q.Root(p) + ":wake:" + queue }
func (q *Queue) alarmChannel(p int) string               { return q.Root(p) + ":alarm" }
func (q *Queue) endedChannel(p int) string               { return q.Root(p) + ":ended" }
func (q *Queue) stopChannel(p int, worker string) string { return q.Root(p) + ":stop:" + worker }

// EventsKey is the stream of a partition's events.
func (q *Queue) EventsKey(partition int) string { return q.Root(partition) + ":events" }
