package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Stored is a version of a definition that Put has stored.
type Stored struct {
	ID, Version string
	New         bool // it was not stored before
}

// Put stores a definition, in JSON or YAML, and returns its version. A stored version never changes,
// because runs under way follow it to their end. If the definition has a version that is stored with
// another text, Put returns [refusal.ErrConflict]. Without a version, Put counts: 1, 2, 3, unless
// the newest version has the same text.
//
// The time, on_timeout and the hooks of a new version become defaults of the kind of the runs. Other
// defaults of the kind stay, and a text that is already stored changes nothing. A run that a hook
// began has no hooks.
func Put(ctx context.Context, q *queue.Queue, text []byte) (Stored, error) {
	d, err := plan.ReadNew(text)
	if err != nil {
		return Stored{}, err
	}
	if d.ID == "" {
		return Stored{}, refusal.Invalid("id", "is missing: the kind of the runs is flow.<id>")
	}
	if err := q.Ready(ctx); err != nil {
		return Stored{}, refusal.Failed("put a flow", d.ID, err)
	}
	stored, number, err := put(ctx, q, 0, d, d.Version, text, "")
	if err != nil || number == "0" {
		return stored, refusal.Failed("put a flow", d.ID, err)
	}
	for p := range q.Partitions() {
		if p == 0 {
			continue
		}
		if _, _, err := put(ctx, q, p, d, stored.Version, nil, number); err != nil {
			return stored, refusal.Failed("put a flow", d.ID, err)
		}
	}
	return stored, nil
}

// put stores a definition in partition 0. In another partition it stores the defaults for the kind
// of the runs. number is the number of the version, or "0" if it is not the newest.
func put(ctx context.Context, q *queue.Queue, partition int, d *plan.Definition, version string, text []byte, number string) (Stored, string, error) {
	reply, err := q.Engine().Call(ctx, partition, "put_flow", append([]any{d.ID, version, text, number}, kindDefaults(d)...)...)
	words, err := engine.List(reply, err, 2)
	if err != nil {
		return Stored{}, "", err
	}
	switch version := engine.Text(words[1]); engine.Text(words[0]) {
	case "OK":
		return Stored{d.ID, version, engine.Text(words[2]) == "1"}, engine.Text(words[3]), nil
	case "CONFLICT":
		return Stored{}, "", describedError(refusal.ErrConflict, "version %s is stored with another text, and runs may follow it: give the definition another version", version)
	default:
		return Stored{}, "", refusal.Invalid(version, "%s", engine.Text(words[2]))
	}
}

// kindDefaults returns the defaults that a definition sets for the kind of its runs: name, value, ….
func kindDefaults(d *plan.Definition) (defaults []any) {
	defaults = append(defaults, "timeout_ms", "none") // the definition's null, which keeps the default of the namespace away
	if d.Timeout.Time > 0 {
		defaults[1] = d.Timeout.Time.Milliseconds()
	}
	if d.Fails {
		defaults = append(defaults, "on_deadline", string(queue.DeadlineFail))
	}
	for _, hook := range []struct {
		field string
		plan.Hook
	}{{"hook_success", d.Hooks.Success}, {"hook_failure", d.Hooks.Failure}, {"hook_timeout", d.Hooks.Timeout}, {"hook_cancel", d.Hooks.Cancel}} {
		if hook.Kind != "" {
			defaults = append(defaults, hook.field, strings.TrimSpace(hook.Kind+" "+hook.Queue))
		}
	}
	return defaults
}

// Check reads a definition, in JSON or YAML, and stores nothing. Its error is nil, or [Faults] with
// everything that is wrong.
func Check(text []byte) error {
	_, err := plan.ReadNew(text)
	return err
}

// Definition is a stored definition.
type Definition struct {
	ID       string
	Version  string   // the newest
	Versions []string // all of them, the oldest first
}

// List returns the definitions of a namespace, sorted by id. Get returns their texts.
func List(ctx context.Context, q *queue.Queue) ([]Definition, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("list flows", "", err)
	}
	reply, err := q.Engine().Call(ctx, 0, "read_flow")
	words, err := engine.List(reply, err, 1)
	if err != nil {
		return nil, refusal.Failed("list flows", "", err)
	}
	var list []Definition
	for i := 1; i+1 < len(words); i += 2 {
		if versions := strings.Fields(engine.Text(words[i+1])); len(versions) > 0 {
			list = append(list, Definition{engine.Text(words[i]), versions[len(versions)-1], versions})
		}
	}
	slices.SortFunc(list, func(a, b Definition) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// versionsOf returns the versions of a definition, the oldest first.
func versionsOf(ctx context.Context, q *queue.Queue, id string) (versions []string, err error) {
	if !plan.GoodName(id) {
		return nil, nil // no definition can have this name
	}
	reply, err := q.Engine().Call(ctx, 0, "read_flow", id, "*")
	words, err := engine.List(reply, err, 2)
	if err != nil {
		return nil, err
	}
	for _, word := range words[2:] {
		versions = append(versions, engine.Text(word))
	}
	return versions, nil
}

func hooksOf(h *plan.Hooks) queue.Hooks {
	convert := func(hook plan.Hook) queue.Hook { return queue.Hook(hook) }
	return queue.Hooks{OnSuccess: convert(h.Success), OnFailure: convert(h.Failure), OnTimeout: convert(h.Timeout), OnCancel: convert(h.Cancel)}
}

// Get returns the text of a definition, and its version. "" means the newest version.
func Get(ctx context.Context, q *queue.Queue, id, version string) (text []byte, storedVersion string, err error) {
	if err := q.Ready(ctx); err != nil {
		return nil, "", refusal.Failed("get a flow", id, err)
	}
	if !plan.GoodName(id) || plan.CheckVersion(version) != nil {
		return nil, "", &unknownError{id, version} // no definition can have this name
	}
	reply, err := q.Engine().Call(ctx, 0, "read_flow", id, version)
	words, err := engine.List(reply, err, 2)
	if err != nil {
		return nil, "", refusal.Failed("get a flow", id, err)
	}
	if len(words) < 3 {
		return nil, "", &unknownError{id, version}
	}
	return []byte(engine.Text(words[2])), engine.Text(words[1]), nil
}

// unknownError reports a definition that is not stored. It matches refusal.ErrNotFound.
type unknownError struct{ id, version string }

func (e *unknownError) Error() string {
	if e.version != "" {
		return fmt.Sprintf("there is no version %s of the flow %s", refusal.Clip(e.version), refusal.Clip(e.id))
	}
	return fmt.Sprintf("there is no flow %s: put its definition first", refusal.Clip(e.id))
}

func (e *unknownError) Is(target error) bool { return target == refusal.ErrNotFound }

// unreadableError reports a definition that this program cannot read. Put stores only definitions
// that it can read, so a newer program has stored it. For a worker the error is a [worker.Release]:
// the run waits, as long as it has time, for a worker that can read it.
type unreadableError struct {
	id, version string
	err         error
}

// unreadablePause is the time that such a run waits before a worker tries again.
const unreadablePause = 5 * time.Second

func (e *unreadableError) Error() string {
	return fmt.Sprintf("version %s of the flow %s cannot be read by this version of the program: %v", e.version, e.id, e.err)
}

func (e *unreadableError) Unwrap() []error { return []error{e.err, worker.Release(unreadablePause)} }

// definitions reads definitions for runs, and caches them, because a version never changes.
type definitions struct {
	q *queue.Queue

	mu    sync.Mutex
	cache map[[2]string]*cached // by id and version
	bytes int                   // of the texts in the cache
	uses  int
}

// cached is a definition in the cache.
type cached struct {
	plan  *plan.Definition
	bytes int
	used  int // the number of its newest use
}

func newDefinitions(q *queue.Queue) *definitions {
	return &definitions{q: q, cache: map[[2]string]*cached{}}
}

// maxCachedBytes bounds the texts in a worker's cache. The parsed definitions take several times as
// much.
const maxCachedBytes = 16 << 20

// version returns the version that a run follows: the requested version, or the newest.
func (d *definitions) version(ctx context.Context, id, version string) (string, error) {
	text, storedVersion, err := Get(ctx, d.q, id, version)
	if errors.Is(err, refusal.ErrNotFound) {
		return "", worker.Discard(err)
	}
	if err != nil {
		return "", err
	}
	if d.use(id, storedVersion) == nil {
		_, _ = d.keep(id, storedVersion, text) // begin reads it next, and reports an error
	}
	return storedVersion, nil
}

// read returns a definition.
func (d *definitions) read(ctx context.Context, id, version string) (*plan.Definition, error) {
	if p := d.use(id, version); p != nil {
		return p, nil
	}
	text, _, err := Get(ctx, d.q, id, version)
	if err != nil {
		return nil, err
	}
	return d.keep(id, version, text)
}

func (d *definitions) keep(id, version string, text []byte) (*plan.Definition, error) {
	definition, err := plan.Read(text)
	if err != nil {
		return nil, &unreadableError{id, version, err}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := [2]string{id, version}
	if d.cache[at] == nil {
		d.bytes += len(text)
		d.uses++
		d.cache[at] = &cached{definition, len(text), d.uses}
		d.forget()
	}
	return definition, nil
}

// use returns a definition that is in memory, or nil.
func (d *definitions) use(id, version string) *plan.Definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.cache[[2]string{id, version}]
	if k == nil {
		return nil
	}
	d.uses++
	k.used = d.uses
	return k.plan
}

// forget drops the least recently used definitions until the rest is within the bound. It always
// keeps one.
func (d *definitions) forget() {
	for d.bytes > maxCachedBytes && len(d.cache) > 1 {
		var oldest [2]string
		for at, k := range d.cache {
			if o := d.cache[oldest]; o == nil || k.used < o.used {
				oldest = at
			}
		}
		d.bytes -= d.cache[oldest].bytes
		delete(d.cache, oldest)
	}
}
