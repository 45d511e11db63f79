package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// listTogether is the greatest number of index entries that one call looks at. A call takes about 15
// µs for each.
const listTogether = 250

// listIndexes are the indexes in the order in which List reads them. A task moves through them in
// this order while it is worked on, so that it is listed twice rather than not at all.
var listIndexes = []string{"children", "delayed", "ready", "held", "waits", "limits", "deadlines", "claims", "dead", "retained"}

// lister makes one page of a list.
type lister struct {
	*queue.Queue
	filter   Filter
	args     []any
	pageSize int
	page     ListPage
	seen     map[string]bool // ids in the page
}

// list fills the page from a position on.
func (l *lister) list(ctx context.Context, at listPlace) error {
	indexes, err := l.indexes(ctx)
	if err != nil {
		return err
	}
	for _, index := range indexes[max(slices.Index(indexes, at.Index), 0):] {
		lists, err := l.lists(ctx, index)
		if err != nil {
			return err
		}
		for _, owner := range slices.Sorted(maps.Keys(lists)) {
			if index == at.Index && owner < at.Of {
				continue
			}
			start := listPlace{Filter: at.Filter, Index: index, Of: owner}
			if index == at.Index && owner == at.Of {
				start = at
			}
			next, err := l.walk(ctx, lists[owner], start)
			if err != nil {
				return err
			}
			if next != nil {
				l.page.Next, l.page.Index = next.page(), index
				if owner != "" {
					l.page.Index += ":" + owner
				}
				return nil
			}
		}
	}
	return nil
}

// indexes returns the indexes that can contain tasks of the filter.
func (l *lister) indexes(ctx context.Context) ([]string, error) {
	f := &l.filter
	if f.Owner != "" {
		owners, err := l.GetAll(ctx, []string{f.Owner})
		if err != nil {
			return nil, err
		}
		if owners[0] != nil && !owners[0].Status.Ended() {
			return []string{"children"}, nil
		}
		return []string{"children", "retained"}, nil
	}
	pending, waiting := f.canMatch(queue.Pending), f.canMatch(queue.Waiting)
	needed := map[string]bool{"delayed": pending, "ready": pending, "held": pending, "waits": waiting, "limits": pending || waiting, "deadlines": (pending || waiting) && !f.Unbounded,
		"claims": f.canMatch(queue.Running), "dead": f.canMatch(queue.Failed, queue.Cancelled), "retained": f.canMatch(queue.Completed)}
	return slices.DeleteFunc(slices.Clone(listIndexes), func(index string) bool { return !needed[index] }), nil
}

// lists returns the names of an index's lists, with the partitions that have entries: queues,
// workers, an owner, or "" for an index with a single list.
func (l *lister) lists(ctx context.Context, index string) (map[string][]int, error) {
	var partitions []int
	for p := range l.Partitions() {
		partitions = append(partitions, p)
	}
	switch {
	case index == "children":
		p, err := names.PartitionIn(l.filter.Owner, l.Partitions())
		return map[string][]int{l.filter.Owner: {p}}, err
	case index == "retained" && l.filter.Owner != "":
		p, err := names.PartitionIn(l.filter.Owner, l.Partitions())
		return map[string][]int{"": {p}}, err
	case (index == "ready" || index == "dead") && l.filter.Queue != "":
		return map[string][]int{l.filter.Queue: partitions}, nil
	case index == "ready" || index == "dead":
		return l.named(ctx, "read_queues", 2, func(row []any) []string { return nameIf(row, countOf(row, index) > 0) })
	case index == "held":
		return l.named(ctx, "read_queues", 2, l.heldSets)
	case index == "claims":
		return l.named(ctx, "read_workers", 1, func(row []any) []string { return nameIf(row, engine.Number(row[2]) > 0) })
	}
	return map[string][]int{"": partitions}, nil
}

// countOf returns a number in a row of a name and pairs.
func countOf(row []any, name string) int64 {
	for i := 1; i+1 < len(row); i += 2 {
		if engine.Text(row[i]) == name {
			return engine.Number(row[i+1])
		}
	}
	return 0
}

// heldSets returns the sets of held tasks in a queue's row that can contain tasks of the filter.
func (l *lister) heldSets(row []any) (sets []string) {
	name := engine.Text(row[0])
	for i := 1; i+1 < len(row) && (l.filter.Queue == "" || l.filter.Queue == name); i += 2 {
		if set, ok := strings.CutPrefix(engine.Text(row[i]), "held,"); ok && engine.Number(row[i+1]) > 0 {
			sets = append(sets, name+","+set)
		}
	}
	return sets
}

func nameIf(row []any, wanted bool) []string {
	if wanted {
		return []string{engine.Text(row[0])}
	}
	return nil
}

// named returns the names that wanted finds in rows, with their partitions. In the reply of a call
// that returns pages, the rows follow the element next.
func (l *lister) named(ctx context.Context, call string, next int, wanted func(row []any) []string) (map[string][]int, error) {
	byPartition := make([]map[string]bool, l.Partitions())
	err := l.Engine().EachPartition(func(p int) error {
		byPartition[p] = map[string]bool{}
		return l.Engine().Pages(ctx, p, call, next, func(reply []any) error {
			for _, answer := range reply[next+1:] {
				row, err := engine.List(answer, nil, 3)
				if err != nil {
					return err
				}
				for _, name := range wanted(row) {
					byPartition[p][name] = true
				}
			}
			return nil
		})
	})
	partitions := map[string][]int{}
	for p, names := range byPartition {
		for name := range names {
			partitions[name] = append(partitions[name], p)
		}
	}
	return partitions, err
}

// listStream is an index in one partition.
type listStream struct {
	partition int
	at        listEntry // the last entry that was looked at, or the start
	begun     bool      // at is set
	end       bool      // there are no more entries
	found     []listEntry
}

// listEntry is an entry of an index. task is set if the task matches.
type listEntry struct {
	score     float64
	text      string // the score as Redis wrote it
	partition int
	id        string
	task      *queue.Record
}

// order returns a negative number if e comes before o.
func (e listEntry) order(o listEntry) int {
	return cmp.Or(cmp.Compare(o.score, e.score), cmp.Compare(e.partition, o.partition), cmp.Compare(o.id, e.id))
}

// walk adds the tasks of an index from a position on. It returns the position after the page, or nil
// if the index has no more entries.
func (l *lister) walk(ctx context.Context, partitions []int, from listPlace) (*listPlace, error) {
	var streams []*listStream
	for _, p := range partitions {
		streams = append(streams, newStream(p, from))
	}
	each := min(max(l.filter.Looks/max(len(streams), 1), 1), listTogether)
	if len(l.args) == 0 {
		each = min(each, l.pageSize) // every entry matches
	}
	last := listEntry{id: string(from.ID), text: from.Score, partition: from.Partition}
	for {
		var empty []*listStream
		for _, s := range streams {
			if !s.end && len(s.found) == 0 {
				empty = append(empty, s)
			}
		}
		if len(l.page.Lines) == l.pageSize || len(empty) > 0 && l.page.Looked > 0 && l.page.Looked+len(empty)*each > l.filter.Looks {
			return &listPlace{from.Filter, from.Index, from.Of, last.text, last.partition, []byte(last.id)}, nil
		}
		if err := l.look(ctx, from, empty, each); err != nil {
			return nil, err
		}
		if last = l.take(streams, from, last); !slices.ContainsFunc(streams, (*listStream).hasMore) {
			return nil, nil
		}
	}
}

// hasMore reports whether a stream has entries that are not in a page.
func (s *listStream) hasMore() bool { return !s.end || len(s.found) > 0 }

func newStream(p int, from listPlace) *listStream {
	s := &listStream{partition: p}
	if from.Score != "" {
		score, _ := strconv.ParseFloat(from.Score, 64)
		s.begun, s.at = true, listEntry{score: score, text: from.Score, partition: p, id: string(from.ID)}
		switch {
		case p < from.Partition:
			s.at.id = "" // after all entries with this score
		case p > from.Partition:
			s.at.id = "\xff" // before all entries with this score
		}
	}
	return s
}

func isScore(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && len(text) < 30
}

// look reads the next entries of streams.
func (l *lister) look(ctx context.Context, from listPlace, streams []*listStream, each int) error {
	looked, broken := make([]int, len(streams)), make([]int, len(streams))
	err := engine.Each(len(streams), func(i int) error {
		s := streams[i]
		args := append([]any{from.Index, from.Of, s.at.text, s.at.id, each}, l.args...)
		reply, err := l.Engine().Call(ctx, s.partition, "list", args...)
		answers, err := engine.List(reply, err, 6)
		if err != nil {
			return err
		}
		looked[i], broken[i], s.end = int(engine.Number(answers[1])), int(engine.Number(answers[5])), engine.Number(answers[4]) == 0
		if looked[i] > 0 {
			s.begun, s.at = true, entryOf(engine.Text(answers[2]), engine.Text(answers[3]), s.partition)
		}
		for _, answer := range answers[6:] {
			words, err := engine.List(answer, nil, 3)
			if err != nil {
				return err
			}
			e := entryOf(engine.Text(words[1]), engine.Text(words[0]), s.partition)
			if e.task, err = queue.ReadRecord(e.id, append([]any{words[2], ""}, words[3:]...)); err != nil {
				return err
			}
			s.found = append(s.found, e)
		}
		return nil
	})
	for i := range streams {
		l.page.Looked += looked[i]
		l.page.Broken += broken[i]
	}
	return err
}

func entryOf(score, id string, partition int) listEntry {
	n, _ := strconv.ParseFloat(score, 64)
	return listEntry{score: n, text: score, partition: partition, id: id}
}

// take moves entries into the page, in their order, as long as no entry that was not looked at can
// come before them. It returns the position up to which the page is complete.
func (l *lister) take(streams []*listStream, from listPlace, last listEntry) listEntry {
	var limit *listEntry // entries after it cannot be taken yet
	for _, s := range streams {
		if !s.end && s.begun && (limit == nil || s.at.order(*limit) < 0) {
			limit = &s.at
		}
	}
	for len(l.page.Lines) < l.pageSize {
		var first *listStream
		for _, s := range streams {
			if len(s.found) > 0 && (first == nil || s.found[0].order(first.found[0]) < 0) {
				first = s
			}
		}
		if first == nil || limit != nil && first.found[0].order(*limit) > 0 {
			if limit != nil {
				last = *limit
			}
			return last
		}
		last = first.found[0]
		first.found = first.found[1:]
		if !l.seen[last.id] {
			l.seen[last.id] = true
			l.page.Lines = append(l.page.Lines, Line{Record: last.task, Partition: last.partition, Index: from.Index, Of: from.Of})
		}
	}
	return last
}

// addBodies reads the payloads and results of the tasks in the page. A task that was removed
// meanwhile stays as it is.
func (l *lister) addBodies(ctx context.Context) error {
	ids := make([]string, len(l.page.Lines))
	for i, line := range l.page.Lines {
		ids[i] = line.ID
	}
	records, err := l.GetAll(ctx, ids)
	if err != nil {
		return err
	}
	for i, r := range records {
		if r != nil {
			l.page.Lines[i].Record = r
		}
	}
	return nil
}
