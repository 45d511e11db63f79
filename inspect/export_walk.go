package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const (
	// scanCount is the COUNT of a SCAN. It does not depend on the size of a page, so that pages of
	// every size give the same lines. A SCAN also covers keys of other programs.
	scanCount = 500
	// scansEach is the maximum number of scans in a step, because a step may find only keys of other
	// programs.
	scansEach = 50
	// readTogether is the number of tasks that one script reads. The script takes about 15 µs for each, and
	// ends early after 4 MiB.
	readTogether = 50
)

var errMoved = errors.New("the server was restarted, or replaced by another server, during the export: begin the export again")

// exportStep returns up to about n lines of one partition, and moves the position behind them.
func (q exporter) exportStep(ctx context.Context, at *exportPlace, n int) ([]ExportLine, error) {
	var lines []ExportLine
	bytes, scans, partition := 0, 0, at.Partition
	for len(lines) < n && bytes < exportBytes && scans < scansEach && at.Partition == partition {
		var page []ExportLine
		var err error
		switch {
		case at.Stage == stageNamespace:
			page = []ExportLine{{Type: "namespace", Name: q.Namespace(), Partitions: q.Partitions()}}
			at.Stage = stageRoot
		case at.Stage == stageRoot:
			page, err = q.exportRoot(ctx, partition)
			at.Stage = stageFirst
		case len(at.Found) > 0:
			page, err = q.exportFound(ctx, at, n-len(lines))
		case at.Stage == stageScan && at.Scan == 0:
			*at = exportPlace{Partition: partition + 1, Stage: stageRoot}
		default:
			err = q.exportScan(ctx, at)
			at.Stage = stageScan
			scans++
		}
		if err != nil {
			return nil, q.Engine().Unread(ctx, partition, err)
		}
		for i := range page {
			page[i].Partition = partition
			bytes += page[i].size()
		}
		lines = append(lines, page...)
	}
	return lines, nil
}

// exportRoot returns the line of the root of a partition. The root exists since the namespace was created,
// unless Redis has lost it.
func (q exporter) exportRoot(ctx context.Context, p int) ([]ExportLine, error) {
	if err := q.Engine().CheckVersion(ctx, p); err != nil {
		return nil, err
	}
	fields, err := q.Engine().Fields(ctx, q.Root(p))
	return []ExportLine{{Type: "partition", Fields: fields}}, err
}

// exportScan finds the next keys and their types. It sorts them by name, so that tasks can be read
// together.
func (q exporter) exportScan(ctx context.Context, at *exportPlace) error {
	root := q.Root(at.Partition)
	node, err := q.Engine().Node(ctx, at.Partition)
	if err != nil {
		return err
	}
	var scan *redis.ScanCmd
	var info *redis.StringCmd
	engine.Pipelined(ctx, node, func(pipe redis.Pipeliner) {
		scan, info = pipe.Scan(ctx, at.Scan, engine.KeysFrom(root+":"), scanCount), pipe.Info(ctx, "server")
	})
	keys, next, err := scan.Result()
	if err != nil {
		return err
	}
	// A cursor of SCAN is valid only in the process that returned it. The embedded server has no run_id.
	facts := map[string]string{}
	engine.ReadInfo(facts, info.Val())
	if at.Stage == stageScan && facts["run_id"] != at.Server {
		return errMoved
	}
	at.Server = facts["run_id"]
	slices.Sort(keys)
	keys = slices.Compact(keys)
	types, err := q.types(ctx, keys)
	if err != nil {
		return err
	}
	at.Scan, at.From, at.Found = next, 0, nil
	for i, key := range keys {
		at.Found = append(at.Found, exportKey{strings.TrimPrefix(key, root+":"), types[i]})
	}
	return nil
}

// types returns the types of keys of one partition, "none" for a key that does not exist.
func (q exporter) types(ctx context.Context, keys []string) ([]string, error) {
	types := make([]string, 0, len(keys))
	for chunk := range slices.Chunk(keys, scanCount) {
		commands := make([]*redis.StatusCmd, len(chunk))
		if _, err := q.Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, key := range chunk {
				commands[i] = pipe.Type(ctx, key)
			}
			return nil
		}); err != nil {
			return nil, err
		}
		for _, c := range commands {
			types = append(types, c.Val())
		}
	}
	return types, nil
}

// exportFound returns lines of the first of the found keys: several tasks, or a part of one key.
func (q exporter) exportFound(ctx context.Context, at *exportPlace, n int) ([]ExportLine, error) {
	first := at.Found[0]
	run := func(prefix, kind string, limit int) []string {
		var ids []string
		for _, k := range at.Found[:min(len(at.Found), limit)] {
			if !strings.HasPrefix(k.Name, prefix) || k.Type != kind {
				break
			}
			ids = append(ids, k.Name[len(prefix):])
		}
		return ids
	}
	if ids := run("spec:", "string", min(n, readTogether)); len(ids) > 0 {
		at.Found = at.Found[len(ids):]
		return q.exportTasks(ctx, at.Partition, ids)
	}
	for _, kind := range []string{"state:", "payload:", "result:"} {
		if ids := run(kind, "string", min(n, scanCount)); len(ids) > 0 {
			at.Found = at.Found[len(ids):]
			return q.exportOrphans(ctx, at.Partition, kind, ids)
		}
	}
	if at.From == 0 {
		var err error
		if at.To, err = q.length(ctx, at.Partition, first); err != nil {
			return nil, err
		}
	}
	lines, next, err := q.exportKey(ctx, at.Partition, first, at.From, at.To, n)
	if at.From = next; next == 0 {
		at.Found = at.Found[1:]
	}
	return lines, err
}

// exportTasks returns the lines of tasks with their payloads. If the tasks cannot be read together,
// it reads one alone, and exports it as broken if that fails too.
func (q exporter) exportTasks(ctx context.Context, p int, ids []string) ([]ExportLine, error) {
	var lines []ExportLine
	for len(ids) > 0 {
		records, now, err := q.GetSome(ctx, p, ids)
		if errors.Is(err, refusal.ErrWrongType) || errors.Is(err, refusal.ErrBroken) {
			records, now, err = q.GetSome(ctx, p, ids[:1])
			if errors.Is(err, refusal.ErrWrongType) || errors.Is(err, refusal.ErrBroken) {
				lines = append(lines, ExportLine{Type: "broken", Name: "task:" + ids[0], Value: err.Error()})
				records, err = []*queue.Record{nil}, nil
			}
		}
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if r != nil { // nil: the record was removed after it was found
				lines = append(lines, ExportLine{Type: "task", Name: r.ID, Payload: r.Payload, Overdue: r.Overdue,
					ReadAt: now, Fields: r.Fields})
			}
		}
		ids = ids[len(records):]
	}
	return lines, nil
}
