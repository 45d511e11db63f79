package plan

import "time"

// LongestMeeting is the longest default time of a synchronization.
const LongestMeeting = 30 * time.Minute

// MeetingTime returns the time of a synchronization that gives none: the longest time of a node between the fan-out and the
// synchronization × tokens × 1.5, at most 30 min; 30 min if no node has a time.
func MeetingTime(longest time.Duration, tokens int) time.Duration {
	if longest == 0 || longest > LongestMeeting {
		return LongestMeeting
	}
	return min(time.Duration(float64(longest)*float64(tokens)*1.5), LongestMeeting)
}

// Fan returns the transition whose fan-out has this id, or nil.
func (g *Graph) Fan(group string) *Transition {
	for _, t := range g.Transitions {
		if t.ID == group && t.FanOut != nil {
			return t
		}
	}
	return nil
}

// Longest returns the longest time of some nodes, 0 if none has a time. Of an adaptive time it takes the longest.
func (g *Graph) Longest(nodes map[string]bool) (longest time.Duration) {
	for name := range nodes {
		if c := g.Node(name); c != nil {
			times := c.Times.AtMost()
			longest = max(longest, times.Attempt.Over(times.Total).Time)
		}
	}
	return longest
}
