package plan

import "time"

// LongestMeeting is the greatest time of a synchronization that gives none.
const LongestMeeting = 30 * time.Minute

// MeetingTime returns the time of a synchronization that gives none: the longest time of a node between the fan-out and the
// synchronization × tokens × 1.5, at most 30 min; 30 min if no node has a time. Of an adaptive time it takes the longest.
func (g *Graph) MeetingTime(group string, tokens int) time.Duration {
	longest := g.longestOf(group)
	if longest == 0 || longest > LongestMeeting {
		return LongestMeeting
	}
	return min(time.Duration(float64(longest)*float64(tokens)*1.5), LongestMeeting)
}

// Fan returns the transition that makes the tokens of a group, nil if there is none.
func (g *Graph) Fan(group string) *Transition {
	for _, t := range g.Transitions {
		if t.ID == group && t.FanOut != nil {
			return t
		}
	}
	return nil
}

// longestOf returns the longest time of the nodes to which the tokens of a fan-out come before they meet.
func (g *Graph) longestOf(group string) (longest time.Duration) {
	fan := g.Fan(group)
	if fan == nil {
		return 0
	}
	seen, next := map[string]bool{}, []string{fan.To}
	for ; len(next) > 0; next = next[1:] {
		c := g.Node(next[0])
		if c == nil || seen[c.Name] {
			continue
		}
		seen[c.Name] = true
		times := c.Times.AtMost()
		longest = max(longest, times.Attempt.Over(times.Total).Time)
		for _, t := range g.from[c.Name] {
			if t.Meet == nil || t.Meet.Group != group {
				next = append(next, t.To)
			}
		}
	}
	return longest
}
