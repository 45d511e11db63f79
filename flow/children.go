package flow

import (
	"context"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// children reads the children of a run by their names. The next children of a run depend on the ends
// of the previous ones, so the names become known step by step. To need few calls, it also reads the
// names that would follow: after round__7 comes round__8. It reads as many ahead as there were so
// far, so that 10,000 rounds take some tens of calls.
type children struct {
	q       *queue.Queue
	run     string
	records map[string]*queue.Record // by name; nil for a child that does not exist
	counts  map[string]int           // number of records that were read, by the name without its last number
}

// childrenInCall is the greatest number of children that one call reads.
const childrenInCall = 250

func (c *children) load(ctx context.Context, names []string) error {
	var need []string
	isRead := func(name string) bool { _, ok := c.records[name]; return ok }
	for _, name := range names {
		if !isRead(name) {
			need = append(need, name)
		}
	}
	if len(need) == 0 {
		return nil
	}
	requested := map[string]bool{}
	for _, name := range need {
		requested[name] = true
	}
	for _, name := range need {
		stem, n, numbered := lastNumber(name)
		if !numbered {
			continue
		}
		ahead := c.counts[stem]
		c.counts[stem]++
		for i := 1; i <= ahead && len(need) < childrenInCall; i++ {
			if next := stem + strconv.Itoa(n+i); !requested[next] && !isRead(next) {
				requested[next] = true
				need = append(need, next)
				c.counts[stem]++
			}
		}
	}
	records, err := claim.Of(c.q).Children(ctx, c.run, need)
	for name, record := range records {
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

// stored returns the number of children that were found.
func (c *children) stored() (n int) {
	for _, record := range c.records {
		if record != nil {
			n++
		}
	}
	return n
}
