package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// Keys counts keys of a namespace.
type Keys struct {
	Kinds   map[string]int64 // by kind, as docs/reference/keys.md names them: spec, state, …; root
	Unknown int64            // keys of the kind Unknown
	Example string           // one of those
}

// Sum returns the number of keys whose kind is known.
func (k Keys) Sum() (n int64) {
	for _, count := range k.Kinds {
		n += count
	}
	return n
}

// add counts n keys like one.
func (k *Keys) add(key, kind string, n int64) {
	if kind == Unknown {
		k.Unknown += n
		k.Example = key
		return
	}
	if k.Kinds == nil {
		k.Kinds = map[string]int64{}
	}
	k.Kinds[kind] += n
}

// CountKeys counts the keys of a namespace on all masters. It changes nothing.
func (s *Server) CountKeys(ctx context.Context, name string, done func(Looked)) (Keys, error) {
	var keys Keys
	if err := checkName(name); err != nil {
		return keys, err
	}
	_, err := s.scan(ctx, engine.KeysFrom(name+":{"), 0, func(page []string) error {
		for _, key := range page {
			if _, kind, ok := kindOf(key, name); ok {
				keys.add(key, kind, 1)
			}
		}
		return nil
	}, done)
	return keys, err
}

// InUseError names the users of a namespace.
type InUseError struct {
	Name string
	Who  []string // "worker host-1 has a lease for 12s"
}

// Error names some of the programs that use the namespace.
func (e *InUseError) Error() string {
	users := e.Who
	if len(users) > 4 {
		users = append(slices.Clone(users[:3]), fmt.Sprintf("and %d others", len(users)-3))
	}
	return fmt.Sprintf("the namespace %s is in use: %s", e.Name, strings.Join(users, ", "))
}

// InUse returns an *InUseError if workers hold leases in a namespace, or a reaper has the turn.
func (s *Server) InUse(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	roots, err := s.allRoots(ctx, name)
	if err != nil {
		return err
	}
	return s.inUse(ctx, name, roots)
}

func (s *Server) inUse(ctx context.Context, name string, roots []partitionRoot) error {
	e := &InUseError{Name: name}
	reported := map[string]bool{}
	add := func(what, who string, left time.Duration, has string) {
		if !reported[what+who] {
			reported[what+who] = true
			e.Who = append(e.Who, fmt.Sprintf("%s %s has %s for another %v", what, who, has, left.Round(100*time.Millisecond)))
		}
	}
	for chunk := range slices.Chunk(roots, someRoots) {
		now, err := s.times(ctx, name, chunk)
		if err != nil {
			return s.explainKeys(ctx, name, err)
		}
		workers, turns := make([]*redis.ZSliceCmd, len(chunk)), make([]*redis.SliceCmd, len(chunk))
		engine.Pipelined(ctx, s.rdb, func(pipe redis.Pipeliner) {
			for i, r := range chunk {
				key := root(name, r.partition)
				workers[i] = pipe.ZRevRangeByScoreWithScores(ctx, key+":workers", &redis.ZRangeBy{Min: fmt.Sprintf("(%d", now[i].UnixMilli()), Max: "+inf", Count: 1000})
				turns[i] = pipe.HMGet(ctx, key, "turn_of", "turn_until")
			}
		})
		for i := range chunk {
			live, err := workers[i].Result()
			if err != nil {
				return s.explainKeys(ctx, name, err)
			}
			for _, w := range live {
				add("worker", fmt.Sprint(w.Member), time.UnixMilli(int64(w.Score)).Sub(now[i]), "a lease")
			}
			turn, err := turns[i].Result()
			if err != nil {
				return s.explainKeys(ctx, name, err)
			}
			if until := engine.Instant(turn[1]); until.After(now[i]) {
				add("reaper", engine.Text(turn[0]), until.Sub(now[i]), "the turn")
			}
		}
	}
	if len(e.Who) > 0 {
		return e
	}
	return nil
}

// times returns the server time for each partition. It asks each server once.
func (s *Server) times(ctx context.Context, name string, roots []partitionRoot) (list []time.Time, err error) {
	byNode := map[redis.Cmdable]time.Time{}
	for _, r := range roots {
		node := redis.Cmdable(s.rdb)
		if cluster, ok := s.rdb.(*redis.ClusterClient); ok {
			if node, err = cluster.MasterForKey(ctx, root(name, r.partition)); err != nil {
				return nil, err
			}
		}
		if _, asked := byNode[node]; !asked {
			if byNode[node], err = node.Time(ctx).Result(); err != nil {
				return nil, err
			}
		}
		list = append(list, byNode[node])
	}
	return list, nil
}

// Removal adjusts Remove.
type Removal struct {
	Force   bool // also if the namespace is in use, or of a version that this program does not know
	Unknown bool // also keys of the kind Unknown
	// Rate is how many keys to remove in a second at most; 0: as many as possible.
	Rate int
	// Done, if set, is called now and then with the progress of the scan and the number of keys removed so far.
	Done func(Looked, Keys)
}

// removeTogether is how many keys one command removes. It takes Redis less than a millisecond: the memory of large values is
// freed in the background.
const removeTogether = 500

// Remove removes all keys of a namespace, and returns how many it has removed and how many it left, by kind. It returns
// [refusal.ErrNoNamespace] if there are none, and an *InUseError if the namespace is in use.
//
// First the version in each root becomes Removing. From then on no program can open the namespace or change it. The roots
// are removed last. So an interrupted Remove leaves a namespace that nobody can use, and the next one finishes it.
func (s *Server) Remove(ctx context.Context, name string, how Removal) (removed, left Keys, err error) {
	if err := checkName(name); err != nil {
		return removed, left, err
	}
	if how.Done == nil {
		how.Done = func(Looked, Keys) {}
	}
	roots, err := s.allRoots(ctx, name)
	if err != nil {
		return removed, left, err
	}
	if err := s.close(ctx, name, roots, how.Force); err != nil {
		return removed, left, err
	}
	r := &remover{Server: s, name: name, how: how, began: time.Now()}
	// The last look finds no key: nothing was added after it was passed, and no slot has moved.
	for looks := 1; ; looks++ {
		before := r.removed.Sum() + r.removed.Unknown
		r.left = Keys{}
		if _, err = s.scan(ctx, engine.KeysFrom(name+":{"), 0, func(keys []string) error { return r.remove(ctx, keys) },
			func(l Looked) { how.Done(l, r.removed) }); err != nil {
			return r.removed, r.left, err
		}
		if r.removed.Sum()+r.removed.Unknown == before {
			break
		}
		if looks == 10 {
			return r.removed, r.left, fmt.Errorf("%w: somebody keeps writing keys of the namespace %s: stop that, and run the command again", refusal.ErrUnavailable, name)
		}
	}
	for _, p := range slices.Backward(roots) { // programs open partition 0 first, and must find it closed
		n, err := s.rdb.Unlink(ctx, root(name, p.partition)).Result()
		if err != nil {
			return r.removed, r.left, s.explainKeys(ctx, name, err)
		}
		r.removed.add("", "root", n)
	}
	if len(roots) == 0 && r.removed.Sum()+r.removed.Unknown+r.left.Unknown == 0 {
		return removed, left, refusal.ErrNoNamespace
	}
	return r.removed, r.left, nil
}

// allRoots returns the roots of all partitions that a namespace can have.
func (s *Server) allRoots(ctx context.Context, name string) ([]partitionRoot, error) {
	var list []partitionRoot
	for p := 0; p < names.MaxPartitions; p += someRoots {
		roots, err := s.someRoots(ctx, name, p, min(p+someRoots, names.MaxPartitions))
		if err != nil {
			return nil, err
		}
		list = append(list, roots...)
	}
	return list, nil
}

// close makes all programs unable to use a namespace, unless it is in use.
func (s *Server) close(ctx context.Context, name string, roots []partitionRoot, force bool) error {
	for _, r := range roots {
		if !force && r.version != Removing && !knownVersion(r.version) {
			return fmt.Errorf("the records of the namespace %s have version %s, which this program does not know: remove it with a release of curfew that works with them, or give --force", name, r.version)
		}
	}
	if !force {
		if err := s.inUse(ctx, name, roots); err != nil {
			return err
		}
	}
	for _, r := range roots {
		if err := s.setVersion(ctx, name, r.partition, "", Removing); err != nil {
			return err
		}
	}
	if force {
		return nil
	}
	// A worker may have fetched since. Now none can.
	err := s.inUse(ctx, name, roots)
	if used := new(InUseError); errors.As(err, &used) {
		for _, r := range roots {
			err = errors.Join(err, s.setVersion(ctx, name, r.partition, Removing, r.version))
		}
	}
	return err
}

// setVersion sets the version in the root of a partition, if that exists. It changes nothing if the root has another version than from; "" stands
// for any.
func (s *Server) setVersion(ctx context.Context, name string, partition int, from, to string) error {
	const text = `
		local version = redis.call("HGET", KEYS[1], "version")
		if version and (ARGV[1] == "" or ARGV[1] == version) then
			redis.call("HSET", KEYS[1], "version", ARGV[2])
		end
		return 1`
	err := s.rdb.Eval(ctx, text, []string{root(name, partition)}, from, to).Err()
	// Removing a namespace frees memory, so it must work when Redis is full. The flag is not in the first try, since the
	// embedded server does not know flags.
	if redis.HasErrorPrefix(err, "OOM") {
		err = s.rdb.Eval(ctx, "#!lua flags=allow-oom"+text, []string{root(name, partition)}, from, to).Err()
	}
	if lua.MayNotRun(err) {
		return wrapped(refusal.ErrNoRight, "it needs +eval", err)
	}
	return s.explainKeys(ctx, name, err)
}

// remover removes the keys of one namespace, except its roots.
type remover struct {
	*Server
	name          string
	how           Removal
	began         time.Time
	removed, left Keys
}

// remove removes the keys that belong to the namespace.
func (r *remover) remove(ctx context.Context, keys []string) error {
	type group struct {
		partition int
		kind      string
	}
	groups := map[group][]string{} // a command in a cluster removes keys of one partition
	for _, key := range keys {
		partition, kind, ok := kindOf(key, r.name)
		switch {
		case !ok || kind == "root":
		case kind == Unknown && !r.how.Unknown:
			r.left.add(key, kind, 1)
		default:
			g := group{partition, kind}
			groups[g] = append(groups[g], key)
		}
	}
	type unlink struct {
		kind, example string
		reply         *redis.IntCmd
	}
	var sent []unlink
	_, err := r.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for g, names := range groups {
			for chunk := range slices.Chunk(names, removeTogether) {
				sent = append(sent, unlink{g.kind, chunk[0], pipe.Unlink(ctx, chunk...)})
			}
		}
		return nil
	})
	for _, u := range sent {
		r.removed.add(u.example, u.kind, u.reply.Val())
	}
	if err != nil {
		return r.explainKeys(ctx, r.name, err)
	}
	return r.pace(ctx)
}

// pace rests until no more keys have been removed than the rate allows.
func (r *remover) pace(ctx context.Context) error {
	if r.how.Rate <= 0 {
		return ctx.Err()
	}
	due := time.Duration(float64(r.removed.Sum()+r.removed.Unknown) / float64(r.how.Rate) * float64(time.Second))
	return rest(ctx, due-time.Since(r.began))
}
