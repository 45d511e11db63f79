package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/jsonline"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const (
	// maxListed is the maximum number of tasks in a page of [List].
	maxListed = 1000
	// looksEach is how many tasks a page looks at unless the filter says otherwise.
	looksEach = 10_000
)

// Filter says which tasks to list. The zero value means all tasks. A task must have all that is set.
type Filter struct {
	Kind, Queue string
	Statuses    []queue.Status // one of these
	TimedOut    bool           // it timed out
	Owner       string         // it is a child of this task
	Since       time.Time      // it was created or ended at this time or later
	Before      time.Time      // it was created before this time, and if it has ended, it ended before this time
	ErrorText   string         // its error, or the error of its newest failed attempt, contains this

	// Bodies adds payloads and results to the lines. They are read after the tasks were found.
	Bodies bool
	// Looks is how many tasks one page looks at, at most. Defaults to 10,000. A page looks at one task of each
	// partition at least.
	Looks int
}

// Line is a task in a list. Its record has no Payload and no Result unless [Filter].Bodies is set.
type Line struct {
	*queue.Record
	Partition int
	// Index is the index that the task was found in, as ready, and Of the queue, worker or owner that the
	// index belongs to.
	Index, Of string
}

// MarshalJSON encodes the line as one object: the id, the index, overdue, and the fields of the record.
func (l Line) MarshalJSON() ([]byte, error) {
	var o jsonline.Object
	o.Word("id", l.ID)
	o.Word("index", l.Index)
	if l.Of != "" {
		o.Word("of", l.Of)
	}
	o.Number("partition", int64(l.Partition))
	o.Flag("overdue", l.Overdue)
	if l.Payload != nil {
		o.Word("payload", string(l.Payload))
	}
	o.Fields(l.Fields)
	return o.Close(), nil
}

// ListPage is a page of a list.
type ListPage struct {
	Lines []Line `json:"tasks"`
	// Next is the argument for the next page; "" after the last page.
	Next string `json:"next"`
	// Looked is how many entries of indexes this page looked at.
	Looked int `json:"looked"`
	// Broken is how many of them have a record that cannot be read. Audit names them.
	Broken int `json:"broken"`
	// Index is the index in which the page ended, as "ready" or "dead:mail". The indexes behind it were not
	// looked at yet. It is "" after the last page.
	Index string `json:"index"`
	// Unlisted says which tasks the whole list cannot contain although they may match the filter, a
	// sentence each: they are in no index but the children of their owner.
	Unlisted []string `json:"unlisted"`
}

// List returns the tasks that match a filter, one page in each call. Pass "" as page for the first page, then
// the Next of the page before, with the same filter.
//
// List reads the indexes in which tasks stand, one after the other: delayed, ready of each queue, waits, limits,
// deadlines, claims of each worker, dead of each queue, and retained. It reads only those that the filter needs. It
// lists each task in one of them, the newest first: in ready the last in line, in dead the last that ended, in
// delayed, waits, limits and deadlines the last that is due, in claims the last that was claimed, in retained the last
// whose record will be removed. The partitions are merged. With an Owner, List reads the children of this task, the
// newest first, and then, if the task has ended, what is retained of them.
//
// Some tasks are in no index but the children of their owner, so that only a list with this Owner has them. Unlisted
// says which, if the filter can match them:
//   - promises without a deadline,
//   - agents that wait without any limit and have no deadline,
//   - children that have ended while their owner lives.
//
// A page has up to n lines (1 to 1,000). It looks at up to Filter.Looks tasks, so that it takes a bounded time; it can
// be empty and not be the last. No command takes Redis more than some milliseconds: 250 tasks are read in each.
//
// A list is not a snapshot: a task whose state changes while List reads can be listed twice or be missing. Tasks that
// are added or removed do not move others from one page to the next.
//
// List returns [refusal.ErrInvalid] if the filter, page or n is not valid.
func List(ctx context.Context, q *queue.Queue, f Filter, page string, n int) (ListPage, error) {
	if err := q.Ready(ctx); err != nil {
		return ListPage{}, refusal.Failed("list", "", err)
	}
	if n < 1 || n > maxListed {
		return ListPage{}, refusal.Failed("list", "", refusal.Invalid("n", "%d must be 1 to %d", n, maxListed))
	}
	if err := f.check(q.Partitions()); err != nil {
		return ListPage{}, refusal.Failed("list", "", err)
	}
	at, err := f.readPlace(page, q.Partitions())
	if err != nil {
		return ListPage{}, refusal.Failed("list", "", err)
	}
	l := lister{Queue: q, filter: f, most: n, args: f.args(), seen: map[string]bool{}}
	l.page = ListPage{Lines: []Line{}, Unlisted: f.unlisted()} // in JSON [], not null
	if err := l.list(ctx, at); err != nil {
		return ListPage{}, refusal.Failed("list", "", err)
	}
	if f.Bodies {
		if err := l.addBodies(ctx); err != nil {
			return ListPage{}, refusal.Failed("list", "", err)
		}
	}
	return l.page, nil
}

// Each calls do with each page of a list, until the last page or until do returns an error, which Each returns. The
// pages have up to 500 tasks, as many as a call takes, and can be empty. do can cancel, delete or retry the tasks: that
// does not move others from one page to the next. A task that do has cancelled can be listed again as CANCELLED, unless
// the filter has Statuses.
func Each(ctx context.Context, q *queue.Queue, f Filter, do func(ListPage) error) error {
	if do == nil {
		return refusal.Failed("list", "", refusal.Invalid("do", "is nil"))
	}
	for page := ""; ; {
		got, err := List(ctx, q, f, page, 500)
		if err != nil {
			return err
		}
		if err := do(got); err != nil {
			return err
		}
		if page = got.Next; page == "" {
			return nil
		}
	}
}

var statuses = []queue.Status{queue.Pending, queue.Running, queue.Waiting, queue.Completed, queue.Failed, queue.Cancelled}

func (f *Filter) check(partitions int) error {
	for field, name := range map[string]string{"kind": f.Kind, "queue": f.Queue} {
		if name != "" && !names.Valid(name, map[string]string{"kind": "._-:/", "queue": "._-"}[field]) {
			return refusal.Invalid(field, "%q is not the name of a %s", refusal.Clip(name), field)
		}
	}
	for _, s := range f.Statuses {
		if !slices.Contains(statuses, s) {
			return refusal.Invalid("status", "%q must be PENDING, RUNNING, WAITING, COMPLETED, FAILED or CANCELLED", refusal.Clip(string(s)))
		}
	}
	if f.Owner != "" {
		if _, err := names.PartitionIn(f.Owner, partitions); err != nil {
			return err
		}
	}
	if f.Looks < 0 {
		return refusal.Invalid("looks", "%d must be at least 1, or 0 for %d", f.Looks, looksEach)
	}
	if f.Looks == 0 {
		f.Looks = looksEach
	}
	return nil
}

// may reports whether the filter can match a task of one of these statuses.
func (f *Filter) may(of ...queue.Status) bool {
	return slices.ContainsFunc(of, func(s queue.Status) bool {
		return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, s)) && (!f.TimedOut || s == queue.Failed)
	})
}

// args returns the filter as arguments of the call list.
func (f *Filter) args() []any {
	var args []any
	for _, pair := range [][2]string{{"kind", f.Kind}, {"queue", f.Queue}, {"owner", f.Owner}, {"error", f.ErrorText}} {
		if pair[1] != "" {
			args = append(args, pair[0], pair[1])
		}
	}
	var of []string
	for _, s := range statuses {
		if slices.Contains(f.Statuses, s) {
			of = append(of, string(s))
		}
	}
	if len(of) > 0 {
		args = append(args, "status", strings.Join(of, ","))
	}
	if f.TimedOut {
		args = append(args, "timed_out", 1)
	}
	if ms := f.Since.UnixMilli(); !f.Since.IsZero() && ms > 0 {
		args = append(args, "since", ms)
	}
	if !f.Before.IsZero() {
		args = append(args, "before", max(f.Before.UnixMilli(), 0))
	}
	return args
}

// unlisted returns the sentences of [ListPage].Unlisted.
func (f *Filter) unlisted() []string {
	told := []string{}
	if f.Owner != "" {
		return told
	}
	if f.may(queue.Pending) {
		told = append(told, "promises without a deadline are listed with their owner only")
	}
	if f.may(queue.Waiting) {
		told = append(told, "agents that wait without a limit and have no deadline are listed with their owner only")
	}
	if f.may(queue.Completed, queue.Failed, queue.Cancelled) {
		told = append(told, "children that have ended while their owner lives are listed with their owner only")
	}
	return told
}

// listPlace is the position of a list: behind an entry of an index. An entry stands before another if its score is
// higher, of one score if its partition is lower, and in one partition if its id is greater.
type listPlace struct {
	Filter    string `json:"f"` // a digest: a position belongs to one filter
	Index     string `json:"i"`
	Of        string `json:"o,omitempty"`
	Score     string `json:"s,omitempty"` // "" at the newest entry of the index
	Partition int    `json:"p,omitempty"`
	ID        []byte `json:"e,omitempty"` // an index can hold bytes that are not UTF-8
}

func (f *Filter) digest() string {
	sum := sha256.Sum256(fmt.Append(nil, f.args()))
	return hex.EncodeToString(sum[:6])
}

func (at listPlace) page() string {
	b, _ := json.Marshal(at) // of numbers and strings
	return base64.RawURLEncoding.EncodeToString(b)
}

// readPlace decodes the result of page. The text may be made up.
func (f *Filter) readPlace(page string, partitions int) (at listPlace, err error) {
	if page == "" {
		return listPlace{Filter: f.digest()}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(page)
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	if err != nil || !slices.Contains(listIndexes, at.Index) || at.Score != "" && !isScore(at.Score) || at.Partition < 0 {
		return at, refusal.Invalid("page", "%q is not valid: it must be \"\" for the first, or the Next of the page before", refusal.Clip(page))
	}
	if at.Filter != f.digest() {
		return at, refusal.Invalid("page", "is of a list with another filter: begin with \"\"")
	}
	if at.Partition >= partitions {
		return at, refusal.Invalid("page", "is for partition %d, and this namespace has %d partitions: it is from another namespace", at.Partition, partitions)
	}
	return at, nil
}
