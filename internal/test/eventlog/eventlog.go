// Package eventlog decodes entries of event streams, for tests that read the stream itself.
package eventlog

import (
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
)

// Events returns the events of stream entries, in their order. Each has the names and values that
// docs/reference/events.md lists, and "stream_id", the id of its entry.
func Events(entries ...redis.XMessage) (all []map[string]any) {
	for _, entry := range entries {
		for _, e := range events.In(0, entry) {
			about := map[string]any{
				"stream_id": e.ID, "kind": e.Kind, "task_id": e.TaskID, "task_kind": e.TaskKind, "queue": e.Queue, "worker": e.Worker,
				"at": instant(e.At), "created_at": instant(e.CreatedAt), "started_at": instant(e.StartedAt),
				"epoch": strconv.FormatInt(e.Epoch, 10), "attempt": strconv.Itoa(e.Attempt),
			}
			if e.Owner != "" {
				about["agent_execution_id"], about["workflow_run_id"] = e.Owner, e.Root
			}
			for name, value := range e.Fields {
				about[name] = value
			}
			all = append(all, about)
		}
	}
	return all
}

func instant(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}
