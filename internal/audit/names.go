package audit

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
)

// readIdempotency reads some idempotency keys and their tasks.
func (w *walk) readIdempotency(ctx context.Context, keys []string) (*Snapshot, error) {
	s := newSnapshot()
	if err := w.readFields(ctx, s, "idem", keys); err != nil {
		return nil, err
	}
	if err := w.readScores(ctx, s, map[string][]string{"forget": keys}); err != nil {
		return nil, err
	}
	var ids []string
	for _, value := range s.Hashes["idem"] {
		id, _, _ := strings.Cut(value, " ")
		ids = append(ids, id)
	}
	return s, w.readTasks(ctx, s, ids)
}

// lookAtIdempotency checks all idempotency keys, also the keys that are due for removal.
func (w *walk) lookAtIdempotency(ctx context.Context) error {
	look := func(keys []string) (*Snapshot, []Finding, error) {
		s, err := w.readIdempotency(ctx, keys)
		if err != nil {
			return nil, nil, err
		}
		a := audit{Snapshot: s, partition: w.partition}
		a.keys()
		return s, a.findings, nil
	}
	lookAtSome := func(keys []string) error {
		for chunk := range slices.Chunk(keys, together) {
			_, findings, err := look(chunk)
			if err != nil {
				return err
			}
			suspects := map[string]bool{}
			for _, f := range findings {
				suspects[f.Subject] = true
			}
			if err := w.confirm(ctx, suspects, look); err != nil {
				return err
			}
		}
		return nil
	}
	err := w.eachField(ctx, "idem", atOnce, func(fields map[string]string) error { return lookAtSome(slices.Collect(maps.Keys(fields))) })
	if err != nil {
		return err
	}
	return w.eachMember(ctx, "forget", func(members map[string]float64) error {
		s := newSnapshot()
		if err := w.readFields(ctx, s, "idem", slices.Collect(maps.Keys(members))); err != nil {
			return err
		}
		for key := range s.Hashes["idem"] {
			delete(members, key) // checked above
		}
		return lookAtSome(slices.Collect(maps.Keys(members)))
	})
}

// lookAtNames checks the records of queues, workers and kinds. A finding counts if it is seen three times in a row.
func (w *walk) lookAtNames(ctx context.Context) error {
	var sure []Finding
	for try := range 3 {
		if err := rest(ctx, try); err != nil {
			return err
		}
		s, err := w.readNames(ctx)
		if err != nil {
			return err
		}
		a := audit{Snapshot: s, partition: w.partition}
		a.queues()
		if try == 0 {
			sure = a.findings
		}
		sure = slices.DeleteFunc(sure, func(f Finding) bool { return !slices.Contains(a.findings, f) })
		if len(sure) == 0 {
			break
		}
	}
	w.findings = append(w.findings, sure...)
	return nil
}

func (w *walk) readNames(ctx context.Context) (*Snapshot, error) {
	s := newSnapshot()
	var commands []*redis.Cmd
	var notes []func()
	ask := func(c *redis.Cmd, note func()) {
		commands, notes = append(commands, c), append(notes, note)
	}
	for _, name := range w.named["queue:"] {
		c := w.command(ctx, "hmget", "queue:"+name, controls...)
		ask(c, func() { s.Hashes["queue:"+name] = fields(controls, c) })
		has := w.command(ctx, "sismember", "queues", name)
		ask(has, func() { s.addName("queues", name, has) })
		tokens := w.command(ctx, "lrange", "wake:"+name, "0", "1")
		ask(tokens, func() {
			if list, _ := tokens.StringSlice(); len(list) > 0 {
				s.Lists["wake:"+name] = list
			}
		})
	}
	for _, name := range w.named["figures:"] {
		has := w.command(ctx, "sismember", "kinds", name)
		ask(has, func() { s.Hashes["figures:"+name] = nil; s.addName("kinds", name, has) })
	}
	for _, kind := range []string{"worker:", "claims:"} {
		for _, name := range w.named[kind] {
			c := w.command(ctx, "exists", kind+name)
			ask(c, func() {
				if n, _ := c.Int64(); n == 0 {
					return
				} else if kind == "worker:" {
					s.Hashes[kind+name] = nil
				} else {
					s.Zsets[kind+name] = map[string]float64{}
				}
			})
		}
	}
	ofRoot, args := append(slices.Collect(maps.Keys(settingRules)), "controlled"), []any{"hmget", w.root}
	for _, name := range ofRoot {
		args = append(args, name)
	}
	root := redis.NewCmd(ctx, args...)
	ask(root, func() { s.Hashes[""] = fields(ofRoot, root) })
	if err := w.ask(ctx, commands); err != nil {
		return nil, err
	}
	for _, note := range notes {
		note()
	}
	for _, kind := range w.named["figures:"] {
		if err := w.readOddFigures(ctx, s, "figures:"+kind); err != nil {
			return nil, err
		}
	}
	err := w.readScores(ctx, s, map[string][]string{"workers": slices.Concat(w.named["worker:"], w.named["claims:"])})
	if err != nil {
		return nil, err
	}
	return s, w.eachMember(ctx, "throttled", func(members map[string]float64) error {
		merge(s.Zsets, "throttled", members)
		return nil
	})
}

// readOddFigures reads the fields of a kind's figures that are no counts. There can be many others.
func (w *walk) readOddFigures(ctx context.Context, s *Snapshot, key string) error {
	return w.eachField(ctx, key, atOnce, func(fields map[string]string) error {
		maps.DeleteFunc(fields, isFigure)
		merge(s.Hashes, key, fields)
		return nil
	})
}

// controls lists the fields of a queue that control it.
var controls = []string{"paused", "max_running", "max_length", "rate", "per_ms", "burst"}

// fields returns the requested fields that the hash has.
func fields(names []string, c *redis.Cmd) map[string]string {
	has := map[string]string{}
	values, _ := c.Slice()
	for i, value := range values {
		if value != nil {
			has[names[i]] = engine.Text(value)
		}
	}
	return has
}

func (s *Snapshot) addName(set, name string, has *redis.Cmd) {
	if n, _ := has.Int64(); n == 1 {
		s.Sets[set] = append(s.Sets[set], name)
	}
}

// tallies returns the counters of each queue. The counters of the partition are under "".
func (w *walk) tallies(ctx context.Context) (map[string]map[string]string, error) {
	root := redis.NewCmd(ctx, "hmget", w.root, "seq", "front")
	if err := w.ask(ctx, []*redis.Cmd{root}); err != nil {
		return nil, err
	}
	counts := map[string]map[string]string{"": fields([]string{"seq", "front"}, root)}
	err := w.eachName(ctx, "queues", func(names []string) error {
		commands := make([]*redis.Cmd, len(names))
		for i, name := range names {
			commands[i] = w.command(ctx, "hmget", "queue:"+name, counters...)
		}
		err := w.ask(ctx, commands)
		for i, name := range names {
			counts[name] = fields(counters, commands[i])
		}
		return err
	})
	return counts, err
}

// lookAtTallies compares the counters of queues with the tasks. Running tasks can be counted
// again at any time. Waiting agents are compared only for a queue that has not changed since
// the walk began.
func (w *walk) lookAtTallies(ctx context.Context, before map[string]map[string]string) error {
	now, err := w.tallies(ctx)
	if err != nil {
		return err
	}
	waiting, running := map[string]waitTally{}, map[string]int64{}
	for _, t := range w.tasks {
		switch {
		case t.waiting:
			tallyOf(waiting, w.words[t.queue]).add(w.words[t.counted])
		case t.running:
			running[w.words[t.queue]]++
		}
	}
	var doubted []string
	for name, has := range now {
		if name == "" {
			continue
		}
		if text, right := waiting[name].wrong(has); text != "" && unchanged(before, now, name) {
			w.findings = append(w.findings, Finding{w.partition, name, text, ofWaiting(right, now[""], has)})
		}
		if engine.Number(has["running"]) != running[name] {
			doubted = append(doubted, name)
		}
	}
	return w.recount(ctx, doubted)
}
