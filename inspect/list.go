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

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const (
	// maxListed is the maximum number of tasks in a page of [List].
	maxListed = 1000
	// looksEach is the default of Filter.Looks.
	looksEach = 10_000
)

// Filter selects tasks. A task must match all fields that are set, so the zero value selects all
// tasks.
type Filter struct {
	Kind, Queue string
	Statuses    []queue.Status // the task has one of these
	TimedOut    bool           // the task timed out
	Unbounded   bool           // the task has not ended, and neither a deadline of its own nor one of an owner ends it
	Owner       string         // the task is a child of this task
	Since       time.Time      // the task was created or ended at this time or later
	Before      time.Time      // the task was created before this time, and it ended before this time or has not ended
	ErrorText   string         // the task's error, or the error of its newest failed attempt, contains this text

	// Bodies adds payloads and results to the lines. They are read after the tasks were found.
	Bodies bool
	// Looks is the greatest number of tasks that one page looks at. Defaults to 10,000. A page looks
	// at one or more tasks of each partition.
	Looks int
}

// Line is a task in a list. Its record has no Payload and no Result unless [Filter].Bodies is set.
type Line struct {
	*queue.Record
	Partition int
	// Index is the index in which the task was found, for example ready. Of is the queue, worker or
	// owner of the index.
	Index, Of string
}

// MarshalJSON encodes the line as one object: the id, the index, overdue, and the fields of the record.
func (l Line) MarshalJSON() ([]byte, error) {
	var o jsonx.Object
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
	// Looked is the number of index entries that this page looked at.
	Looked int `json:"looked"`
	// Broken is the number of these entries whose record cannot be read. Audit names them.
	Broken int `json:"broken"`
	// Index is the index in which the page ended, for example "ready" or "dead:mail". Later indexes
	// were not looked at yet. It is "" after the last page.
	Index string `json:"index"`
	// Unlisted describes the tasks that the whole list cannot contain although they may match the
	// filter, in a sentence each. They are in no index except the children of their owner.
	Unlisted []string `json:"unlisted"`
}

// List returns the tasks that match a filter, one page in each call. Pass "" as page for the first
// page, then the Next of the previous page, with the same filter.
//
// List reads the indexes of tasks one after the other: delayed, ready of each queue, waits, limits,
// deadlines, claims of each worker, dead of each queue, and retained. It reads only those that the
// filter needs. It lists each task in one of them, the newest first: in ready the last in line, in
// dead the last that ended, in delayed, waits, limits and deadlines the last that is due, in claims
// the last that was claimed, and in retained the last whose record will be removed. The partitions
// are merged. With an Owner, List reads the children of this task, the newest first, and then, if
// the task has ended, its retained children.
//
// Some tasks are in no index except the children of their owner, so only a list with this Owner
// contains them. Unlisted names them, if the filter can match them:
//   - promises without a deadline,
//   - agents that wait without any limit and have no deadline,
//   - children that have ended while their owner lives.
//
// A page has up to n lines (1 to 1,000). Its time is bounded, because it looks at up to Filter.Looks
// tasks. So it can be empty although it is not the last. No command keeps Redis busy for more than
// some milliseconds, because each reads 250 tasks.
//
// A list is not a snapshot: a task whose state changes while List reads can be listed twice or be
// missing. Tasks that are added or removed do not move others from one page to the next.
//
// If the filter, page or n is not valid, List returns [refusal.ErrInvalid].
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
	l := lister{Queue: q, filter: f, pageSize: n, args: f.args(), seen: map[string]bool{}}
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

// Each calls do with each page of a list, until the last page or an error of do, which Each returns.
// The pages have up to 500 tasks, the limit of most calls, and can be empty. do can cancel, delete
// or retry the tasks, because that does not move others from one page to the next. A task that do
// has cancelled can be listed again as CANCELLED, unless the filter has Statuses.
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

// canMatch reports whether the filter can match a task with one of these statuses.
func (f *Filter) canMatch(list ...queue.Status) bool {
	return slices.ContainsFunc(list, func(s queue.Status) bool {
		return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, s)) && (!f.TimedOut || s == queue.Failed) && (!f.Unbounded || !s.Ended())
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
	var words []string
	for _, s := range statuses {
		if slices.Contains(f.Statuses, s) {
			words = append(words, string(s))
		}
	}
	if len(words) > 0 {
		args = append(args, "status", strings.Join(words, ","))
	}
	if f.TimedOut {
		args = append(args, "timed_out", 1)
	}
	if f.Unbounded {
		args = append(args, "unbounded", 1)
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
	sentences := []string{}
	if f.Owner != "" {
		return sentences
	}
	if f.canMatch(queue.Pending) {
		sentences = append(sentences, "promises without a deadline are listed with their owner only")
	}
	if f.canMatch(queue.Waiting) {
		sentences = append(sentences, "agents that wait without a limit and have no deadline are listed with their owner only")
	}
	if f.canMatch(queue.Completed, queue.Failed, queue.Cancelled) {
		sentences = append(sentences, "children that have ended while their owner lives are listed with their owner only")
	}
	return sentences
}

// listPlace is the position of a list, after an entry of an index. Entries are ordered by descending
// score, then by ascending partition, then by descending id.
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
	b, _ := json.Marshal(at) // cannot fail: it has only numbers and strings
	return base64.RawURLEncoding.EncodeToString(b)
}

// readPlace decodes the result of page. A caller can make up the text.
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
