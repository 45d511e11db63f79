package audit

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// clocks lists the sorted sets of tasks that exist once in a partition.
var clocks = []string{"deadlines", "limits", "delayed", "waits", "draining", "retained"}

// ofAgent lists the kinds of keys that a task has only if it has children or is an agent.
var ofAgent = []string{"children:", "wait:", "pending:", "settled:", "patience:", "journal:", "ends:"}

// part selects tasks, and how to read them.
type part struct {
	ids  []string
	also []string // sets in which they were found, beside those in which they belong
	// agents is the result of reader.agents for these tasks; nil if it was not called yet.
	agents map[string]int64
	// With sure, the owner's list is searched for each child. Otherwise the child counts as listed, because
	// lookAtChildren checks each list once.
	sure bool
}

// readPart reads everything that the checks of these tasks need: their records, owners and wait members, and their
// scores in the sorted sets.
func (r *reader) readPart(ctx context.Context, p part) (*Snapshot, error) {
	s := newSnapshot()
	ids := slices.Clone(p.ids)
	for _, id := range p.ids {
		ids = append(ids, nearTo(id)...)
	}
	if err := r.readTasks(ctx, s, ids); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context, *Snapshot, part) error{r.readAgents, r.readTexts, r.readOwners, r.readPlaces, r.readKeysOf} {
		if err := step(ctx, s, p); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// agents returns the tasks with keys that only owners and agents have, and the number of members in each wait.
func (r *reader) agents(ctx context.Context, ids []string) (map[string]int64, error) {
	exist := make([]*redis.Cmd, len(ids))
	for i, id := range ids {
		words := make([]string, 0, len(ofAgent))
		for _, kind := range ofAgent[1:] {
			words = append(words, r.root+":"+kind+id)
		}
		exist[i] = r.command(ctx, "exists", ofAgent[0]+id, words...)
	}
	if err := r.ask(ctx, exist); err != nil {
		return nil, err
	}
	counts := map[string][2]*redis.Cmd{}
	var commands []*redis.Cmd
	for i, id := range ids {
		if n, _ := exist[i].Int64(); n > 0 {
			c := [2]*redis.Cmd{r.command(ctx, "zcard", "pending:"+id), r.command(ctx, "llen", "settled:"+id)}
			counts[id], commands = c, append(commands, c[:]...)
		}
	}
	if err := r.ask(ctx, commands); err != nil {
		return nil, err
	}
	sizes := make(map[string]int64, len(counts))
	for id, c := range counts {
		pending, _ := c[0].Int64()
		settled, _ := c[1].Int64()
		sizes[id] = pending + settled
	}
	return sizes, nil
}

// readAgents reads the waits and journals of tasks, and the members of their waits.
func (r *reader) readAgents(ctx context.Context, s *Snapshot, p part) error {
	if p.agents == nil {
		agents, err := r.agents(ctx, p.ids)
		if err != nil {
			return err
		}
		p.agents = agents
	}
	for _, id := range p.ids {
		if _, agent := p.agents[id]; !agent {
			continue
		}
		if err := r.readAgent(ctx, s, id); err != nil {
			return err
		}
		var members []string
		for _, name := range append(strings.Fields(s.Hashes["wait:"+id]["members"]), s.Lists["ends:"+id]...) {
			members = append(members, id+"."+name)
		}
		if err := r.readTasks(ctx, s, members); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readAgent(ctx context.Context, s *Snapshot, id string) error {
	for key, n := range map[string]int64{"wait:" + id: atOnce, "journal:" + id: journalAtOnce} {
		err := r.eachField(ctx, key, n, func(fields map[string]string) error {
			merge(s.Hashes, key, fields)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, key := range []string{"pending:" + id, "patience:" + id} {
		err := r.eachMember(ctx, key, func(members map[string]float64) error {
			merge(s.Zsets, key, members)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, key := range []string{"settled:" + id, "ends:" + id} {
		if err := r.readList(ctx, s, key); err != nil {
			return err
		}
	}
	children := r.command(ctx, "llen", "children:"+id)
	err := r.ask(ctx, []*redis.Cmd{children})
	if n, _ := children.Int64(); n > 0 {
		s.Lists["children:"+id] = []string{} // readOwners adds the children that are checked
	}
	return err
}

func (r *reader) readList(ctx context.Context, s *Snapshot, key string) error {
	return r.eachElement(ctx, key, func(elements []string) {
		if len(elements) > 0 {
			s.Lists[key] = append(s.Lists[key], elements...)
		}
	})
}

// readTexts finds the texts of tasks that have no record.
func (r *reader) readTexts(ctx context.Context, s *Snapshot, p part) error {
	var commands []*redis.Cmd
	var notes []func()
	for _, id := range p.ids {
		if _, ok := s.Tasks[id]; ok {
			continue
		}
		for kind, ids := range s.Texts {
			c := r.command(ctx, "type", kind+id)
			commands = append(commands, c)
			notes = append(notes, func() {
				if text, _ := c.Text(); text == "string" {
					ids[id] = true
				}
			})
		}
	}
	err := r.ask(ctx, commands)
	for _, note := range notes {
		note()
	}
	return err
}

// readOwners adds the children that are in the lists of their owners.
func (r *reader) readOwners(ctx context.Context, s *Snapshot, p part) error {
	for _, id := range p.ids {
		owner := names.OwnerOf(id)
		if owner == "" || !Live(s.Tasks[owner]) {
			continue
		}
		key := "children:" + owner
		if !p.sure {
			s.Lists[key] = append(s.Lists[key], id)
		} else if len(s.Lists[key]) == 0 {
			if err := r.readList(ctx, s, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPlaces reads the scores of the tasks in the sets that they belong to.
func (r *reader) readPlaces(ctx context.Context, s *Snapshot, p part) error {
	asked := map[string][]string{}
	for _, key := range slices.Concat(clocks, p.also) {
		asked[key] = p.ids
	}
	for _, id := range p.ids {
		asked["draining"] = append(slices.Clip(asked["draining"]), nearTo(id)...)
		t := s.Tasks[id]
		if owner := names.OwnerOf(id); owner != "" && t["status"] == string(queue.Waiting) {
			for _, key := range []string{"pending:" + owner, "patience:" + owner} {
				asked[key] = append(asked[key], id[len(owner)+1:])
			}
		}
		if t["queue"] != "" {
			for _, key := range []string{"ready:" + t["queue"], "dead:" + t["queue"]} {
				asked[key] = append(slices.Clip(asked[key]), id)
			}
		}
		if held := heldSet(t); held != "" {
			asked["held:"+held] = append(slices.Clip(asked["held:"+held]), id)
			asked["holds"] = append(asked["holds"], held)
		}
		if t["worker"] != "" {
			asked["claims:"+t["worker"]] = append(slices.Clip(asked["claims:"+t["worker"]]), id)
			asked["workers"] = append(asked["workers"], t["worker"])
		}
	}
	return r.readScores(ctx, s, asked)
}

// readScores reads the scores of these members in their sorted sets.
func (r *reader) readScores(ctx context.Context, s *Snapshot, asked map[string][]string) error {
	var commands []*redis.Cmd
	var notes []func()
	for key, members := range asked {
		for chunk := range slices.Chunk(members, atOnce) {
			c := r.command(ctx, "zmscore", key, chunk...)
			commands = append(commands, c)
			notes = append(notes, func() {
				scores, _ := c.Slice()
				for i, value := range scores {
					if value != nil {
						merge(s.Zsets, key, map[string]float64{chunk[i]: score(value)})
					}
				}
			})
		}
	}
	err := r.ask(ctx, commands)
	for _, note := range notes {
		note()
	}
	return err
}

// readKeysOf reads the entries of the tasks' idempotency keys.
func (r *reader) readKeysOf(ctx context.Context, s *Snapshot, p part) error {
	var keys []string
	for _, id := range p.ids {
		if key := s.Tasks[id]["idempotency_key"]; key != "" {
			keys = append(keys, key)
		}
	}
	return r.readFields(ctx, s, "idem", keys)
}

// readFields reads some fields of a hash.
func (r *reader) readFields(ctx context.Context, s *Snapshot, key string, fields []string) error {
	for chunk := range slices.Chunk(fields, atOnce) {
		c := r.command(ctx, "hmget", key, chunk...)
		if err := r.ask(ctx, []*redis.Cmd{c}); err != nil {
			return err
		}
		values, _ := c.Slice()
		for i, value := range values {
			if value != nil {
				merge(s.Hashes, key, map[string]string{chunk[i]: engine.Text(value)})
			}
		}
	}
	return nil
}

// merge adds names and values to those under a key.
func merge[V any](groups map[string]map[string]V, key string, values map[string]V) {
	if groups[key] == nil {
		groups[key] = values
		return
	}
	for name, value := range values {
		groups[key][name] = value
	}
}

// score decodes a score, which is a text in version 2 of the Redis protocol.
func score(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	f, _ := strconv.ParseFloat(engine.Text(v), 64)
	return f
}
