package operate

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// Settings are the settings of a namespace. They are fixed when it is created.
type Settings struct {
	Partitions int
	Events     string // all, terminal or none
	EventMiB   int
	Figures    string // on or off
	// DefaultTimeout is that of root tasks without a deadline; 0 if there is none. As a wish of Create, queue.None is that there is none.
	DefaultTimeout time.Duration
}

// Namespace is a namespace in the result of List.
type Namespace struct {
	Name string
	Settings
	Version  string // of its records; Removing while it is being removed
	Created  time.Time
	Missing  []int // partitions that were not created, or are removed
	Queues   int   // that ever had a task or a control
	Live     int64 // tasks that have not ended
	Enqueued int64 // tasks that were ever enqueued
	Err      error // why it could not be read
}

// Removing is the record version of a namespace that is being removed. No program accepts this version, so nothing is
// added meanwhile.
const Removing = "removing"

// Known reports whether this program works with the namespace.
func (n Namespace) Known() bool { return n.Err == nil && knownVersion(n.Version) }

// knownVersion reports whether this program works with records of a version.
func knownVersion(version string) bool {
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		return false
	}
	_, records, _ := lua.VersionsIn(facade.Text())
	return slices.Contains(records.Words(), version)
}

// rootName matches the root of a partition.
var rootName = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._:-]{0,127}):\{(0|[1-9][0-9]{0,2})\}$`)

// rootOf returns the namespace and partition of a root, and false if the key cannot be one.
func rootOf(key string) (namespace string, partition int, ok bool) {
	m := rootName.FindStringSubmatch(key)
	if m == nil {
		return "", 0, false
	}
	partition, _ = strconv.Atoi(m[2])
	return m[1], partition, partition < names.MaxPartitions
}

func root(namespace string, partition int) string {
	return namespace + ":{" + strconv.Itoa(partition) + "}"
}

// checkName returns an error if a namespace cannot have this name.
func checkName(name string) error {
	if _, _, ok := rootOf(root(name, 0)); !ok {
		return refusal.Invalid("namespace", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : and begin with a letter or digit", refusal.Clip(name))
	}
	return nil
}

// List finds all namespaces, sorted by name. It looks at the names of about limit keys of each master; 0: of all. done is called
// now and then, and must return soon.
func (s *Server) List(ctx context.Context, limit int64, done func(Looked)) ([]Namespace, Looked, error) {
	names := map[string]bool{}
	progress, err := s.scan(ctx, "*:{*}", limit, func(keys []string) error {
		for _, key := range keys {
			if name, _, ok := rootOf(key); ok {
				names[name] = true
			}
		}
		return nil
	}, done)
	if err != nil {
		return nil, progress, err
	}
	var list []Namespace
	for name := range names {
		n, err := s.Namespace(ctx, name)
		if errors.Is(err, refusal.ErrNoNamespace) {
			continue // a key of another program that looks like a root, or it was removed since
		}
		if err != nil {
			return nil, progress, err
		}
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return list, progress, nil
}

// Namespace describes a namespace. It returns [refusal.ErrNoNamespace] if it does not exist. If the user has
// no right to read the namespace, the result has only a name and Err.
func (s *Server) Namespace(ctx context.Context, name string) (Namespace, error) {
	n, roots, err := s.uncounted(ctx, name)
	if err != nil || n.Err != nil {
		return n, err
	}
	if n.Err = s.count(ctx, &n, roots); ctx.Err() != nil || errors.Is(n.Err, refusal.ErrUnavailable) {
		return Namespace{}, n.Err
	}
	return n, nil
}

// Settled is like Namespace, and counts nothing, so it is fast and needs only the right to read the roots.
func (s *Server) Settled(ctx context.Context, name string) (Namespace, error) {
	n, _, err := s.uncounted(ctx, name)
	return n, err
}

// uncounted returns a namespace without its counts, and its roots.
func (s *Server) uncounted(ctx context.Context, name string) (Namespace, []partitionRoot, error) {
	if err := checkName(name); err != nil {
		return Namespace{}, nil, err
	}
	roots, err := s.roots(ctx, name)
	if errors.Is(err, refusal.ErrNoRight) {
		return Namespace{Name: name, Err: err}, nil, nil
	}
	if err != nil {
		return Namespace{}, nil, err
	}
	if len(roots) == 0 {
		return Namespace{}, nil, refusal.ErrNoNamespace
	}
	n := Namespace{Name: name, Settings: roots[0].Settings, Version: roots[0].version, Created: roots[0].created}
	present := map[int]bool{}
	for _, r := range roots {
		present[r.partition] = true
		if r.version == Removing {
			n.Version = Removing
		}
	}
	for p := range min(n.Partitions, names.MaxPartitions) {
		if !present[p] {
			n.Missing = append(n.Missing, p)
		}
	}
	return n, roots, nil
}

// partitionRoot holds the fields that are read from the root of a partition.
type partitionRoot struct {
	partition int
	version   string
	created   time.Time
	Settings
}

// someRoots is how many roots are read in one round trip.
const someRoots = 100

// roots returns the roots of a namespace that exist, by partition. It reads as many as the root of partition 0 states, and
// looks for all that there can be if this root is missing.
func (s *Server) roots(ctx context.Context, name string) ([]partitionRoot, error) {
	first, err := s.someRoots(ctx, name, 0, 1)
	if err != nil {
		return nil, err
	}
	list := first
	limit := names.MaxPartitions
	if len(first) == 1 && first[0].Partitions > 0 && first[0].version != Removing {
		limit = min(limit, first[0].Partitions)
	}
	for p := 1; p < limit; p += someRoots {
		page, err := s.someRoots(ctx, name, p, min(p+someRoots, limit))
		if err != nil {
			return nil, err
		}
		list = append(list, page...)
	}
	return list, nil
}

// someRoots returns the roots of the partitions from one to before another that exist. A key of another type is no root.
func (s *Server) someRoots(ctx context.Context, name string, from, to int) (roots []partitionRoot, err error) {
	replies := make([]*redis.SliceCmd, to-from)
	engine.Pipelined(ctx, s.rdb, func(pipe redis.Pipeliner) {
		for i := range replies {
			replies[i] = pipe.HMGet(ctx, root(name, from+i), "version", "partitions", "events", "event_mib", "figures", "created_at", "default_timeout_ms")
		}
	})
	for i, reply := range replies {
		words, err := reply.Result()
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			continue
		}
		if err != nil {
			return nil, s.explainKeys(ctx, name, err)
		}
		if len(words) < 7 || words[0] == nil {
			continue
		}
		r := partitionRoot{partition: from + i, version: engine.Text(words[0]), created: engine.Instant(words[5]), Settings: Settings{
			Partitions: int(engine.Number(words[1])), Events: cmp.Or(engine.Text(words[2]), "terminal"),
			EventMiB: int(cmp.Or(engine.Number(words[3]), 64)), Figures: cmp.Or(engine.Text(words[4]), "on"),
			DefaultTimeout: time.Duration(engine.Number(words[6])) * time.Millisecond}}
		roots = append(roots, r)
	}
	return roots, nil
}

// count adds the queues of a namespace, and their tasks.
func (s *Server) count(ctx context.Context, n *Namespace, roots []partitionRoot) error {
	queues := map[string]bool{}
	for _, r := range roots {
		key := root(n.Name, r.partition)
		counted := map[string]bool{} // a scan can return a queue twice
		for cursor := uint64(0); ; {
			page, next, err := s.rdb.SScan(ctx, key+":queues", cursor, "", 500).Result()
			if err != nil {
				return s.explainKeys(ctx, n.Name, err)
			}
			page = slices.DeleteFunc(page, func(queue string) bool { return counted[queue] })
			counts := make([]*redis.SliceCmd, len(page))
			engine.Pipelined(ctx, s.rdb, func(pipe redis.Pipeliner) {
				for i, queue := range page {
					counts[i] = pipe.HMGet(ctx, key+":queue:"+queue, "enqueued", "completed", "failed", "cancelled")
				}
			})
			for i, queue := range page {
				words, err := counts[i].Result()
				if err != nil {
					return s.explainKeys(ctx, n.Name, err)
				}
				queues[queue], counted[queue] = true, true
				enqueued := engine.Number(words[0])
				n.Enqueued += enqueued
				n.Live += max(enqueued-engine.Number(words[1])-engine.Number(words[2])-engine.Number(words[3]), 0)
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	n.Queues = len(queues)
	return nil
}

// kinds are the kinds of keys of a partition, as lua/store/keys.lua names them: true if the name of a key goes on behind a
// colon. The root itself is the kind "root".
var kinds = map[string]bool{
	"spec": true, "state": true, "payload": true, "result": true, "children": true, "ready": true, "queue": true, "wake": true, "dead": true,
	"claims": true, "worker": true, "wait": true, "pending": true, "settled": true, "patience": true, "journal": true, "figures": true,
	"queues": false, "deadlines": false, "limits": false, "delayed": false, "waits": false, "workers": false, "draining": false,
	"throttled": false, "retained": false, "idem": false, "forget": false, "recount": false, "broken": false, "kinds": false, "events": false,
	"ends": true, "flow": true, "flows": false, "held": true, "holds": false, "isolation": false,
}

// Unknown is the kind of a key with the prefix of a namespace that this version of Curfew does not write. For
// example, a later version may have written it.
const Unknown = "unknown"

// kindOf splits the key of a namespace into partition and kind. It returns false for keys outside the partitions, for
// example the keys of a namespace whose name begins with this name.
func kindOf(key, namespace string) (partition int, kind string, ok bool) {
	rest, ok := strings.CutPrefix(key, namespace+":{")
	number, rest, closed := strings.Cut(rest, "}")
	if !ok || !closed {
		return 0, "", false
	}
	_, partition, ok = rootOf(namespace + ":{" + number + "}")
	if !ok {
		return 0, "", false
	}
	if rest == "" {
		return partition, "root", true
	}
	rest, ok = strings.CutPrefix(rest, ":")
	if !ok {
		return 0, "", false
	}
	kind, name, named := strings.Cut(rest, ":")
	if prefix, exists := kinds[kind]; !exists || prefix != named || named && name == "" {
		return partition, Unknown, true
	}
	return partition, kind, true
}
