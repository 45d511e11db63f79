package flow

import (
	"context"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
)

// children reads the children of a run by their names. What a run creates next depends on how its children have ended, so the
// names become known step by step. To read them in few calls, it also reads the names that would follow: after round__7 comes
// round__8. It reads as many ahead as there were so far, so 10,000 rounds take some tens of calls.
type children struct {
	q       *queue.Queue
	run     string
	records map[string]*queue.Record // by name; nil: there is no such child
	begun   map[string]int           // how many were read of those whose names differ in their last number only
}

// together is how many children one call reads.
const together = 250

func (c *children) learn(ctx context.Context, names []string) error {
	var need []string
	known := func(name string) bool { _, read := c.records[name]; return read }
	for _, name := range names {
		if !known(name) {
			need = append(need, name)
		}
	}
	if len(need) == 0 {
		return nil
	}
	asked := map[string]bool{}
	for _, name := range need {
		asked[name] = true
	}
	for _, name := range need {
		stem, n, numbered := lastNumber(name)
		if !numbered {
			continue
		}
		ahead := c.begun[stem]
		c.begun[stem]++
		for i := 1; i <= ahead && len(need) < together; i++ {
			if next := stem + strconv.Itoa(n+i); !asked[next] && !known(next) {
				asked[next] = true
				need = append(need, next)
				c.begun[stem]++
			}
		}
	}
	found, err := c.q.Attempts().Children(ctx, c.run, need)
	for name, record := range found {
		c.records[name] = record
	}
	return err
}

// lastNumber splits the number off the end of a name.
func lastNumber(name string) (stem string, n int, ok bool) {
	stem = strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(stem):])
	return stem, n, err == nil
}

// stored returns how many children were found.
func (c *children) stored() (n int) {
	for _, record := range c.records {
		if record != nil {
			n++
		}
	}
	return n
}
