package inspect_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Export returns every task that exists during the whole export, even if others come and go.
func TestAnExportHasEveryTaskThatStays(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		populate(t, q)
		var there []string
		for _, line := range queuetest.Exported(t, q) {
			if o := decoded(t, line); o["type"] == "task" {
				there = append(there, o["id"].(string))
			}
		}
		told := map[string]bool{}
		pages := 0
		for page := ""; pages == 0 || page != ""; pages++ {
			got, err := inspect.Export(context.Background(), q, page, 40)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range got.Lines {
				told[line.Name] = told[line.Name] || line.Type == "task"
			}
			page = got.Next
			queuetest.Busy(t, q, 4)
		}
		for _, id := range there {
			if !told[id] {
				t.Errorf("task %s existed during the whole export and is not in it", id)
			}
		}
		if pages < 8 {
			t.Errorf("the export took %d pages, which is too few for much to have changed", pages)
		}
	})
}

// An export must end even if a key grows as fast as it is read.
func TestAnExportOfAGrowingKeyEnds(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		queuetest.Enqueue(t, q, queue.Task{})
		ctx, pages := context.Background(), 0
		for page := ""; pages == 0 || page != ""; pages++ {
			got, err := inspect.Export(ctx, q, page, 2)
			if err != nil {
				t.Fatal(err)
			}
			page = got.Next
			for range 2 {
				if err := rdb.RPush(ctx, q.Root(0)+":children:0-A", pages).Err(); err != nil {
					t.Fatal(err)
				}
				if err := rdb.ZAdd(ctx, q.Root(0)+":deadlines", redis.Z{Score: float64(pages), Member: queue.NewCall()}).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if pages > 200 {
				t.Fatal("the export does not end while other clients write")
			}
		}
	})
}

func make200() []queue.Task {
	tasks := make([]queue.Task, 200)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Payload: []byte("p"), Timeout: time.Hour}
	}
	return tasks
}

func TestAnExportNeedsLittleMemory(t *testing.T) {
	redistest.NoRace(t, "it measures memory")
	const tasks = 5_000
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	payload := []byte(strings.Repeat("0123456789abcdef", 512))
	for range tasks / 500 {
		some := make([]queue.Task, 500)
		for i := range some {
			some[i] = queue.Task{Kind: "k", Payload: payload}
		}
		if _, err := q.EnqueueAll(context.Background(), some); err != nil {
			t.Fatal(err)
		}
	}
	page, err := inspect.Export(context.Background(), q, "", 1)
	for range 3 { // behind the lines of the namespace and the root
		if err == nil {
			page, err = inspect.Export(context.Background(), q, page.Next, 1)
		}
	}
	if err != nil || len(page.Next) < 5_000 || len(page.Next) > 64<<10 {
		t.Errorf("Next has %d bytes, %v, want the names of some hundred keys, in at most 64 KiB", len(page.Next), err)
	}
	gauge := &gauge{}
	runtime.GC()
	runtime.ReadMemStats(&gauge.before)
	if err := inspect.ExportTo(context.Background(), q, gauge); err != nil {
		t.Fatal(err)
	}
	if gauge.written < tasks*len(payload) {
		t.Errorf("wrote %d bytes, fewer than the payloads of %d tasks have", gauge.written, tasks)
	}
	if gauge.most > 16<<20 {
		t.Errorf("exporting %d bytes used %d bytes of memory, want at most 16 MiB", gauge.written, gauge.most)
	}
}

// gauge measures the memory in use after every 4 MiB that are written to it.
type gauge struct {
	written, next int
	before        runtime.MemStats
	most          int64
}

func (g *gauge) Write(b []byte) (int, error) {
	if g.written += len(b); g.written > g.next {
		var now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&now)
		g.most = max(g.most, int64(now.HeapAlloc)-int64(g.before.HeapAlloc))
		g.next += 4 << 20
	}
	return len(b), nil
}

// A cursor of SCAN is not valid in another process: it would skip keys.
func TestAnExportIsRefusedAfterARestart(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	server := redistest.Start(t, "--appendonly", "yes")
	q, ctx := queuetest.Open(t, server.Client(t), queue.Config{}), context.Background()
	for range 10 {
		if _, err := q.EnqueueAll(ctx, make200()); err != nil {
			t.Fatal(err)
		}
	}
	first, err := inspect.Export(ctx, q, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	server.Restart(t)
	for page := first.Next; err == nil && page != ""; {
		var told inspect.ExportPage
		told, err = inspect.Export(ctx, q, page, 1000)
		page = told.Next
	}
	if err == nil || !strings.Contains(err.Error(), "begin the export again") {
		t.Errorf("after a restart the export ends with %v, want an error that says to begin again", err)
	}
}

func TestAnExportOfAClusterIsWhole(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	t.Parallel() // a cluster takes seconds to come up
	q := queuetest.Open(t, queuetest.ClusterOfOne(t), queue.Config{Partitions: 3})
	populate(t, q)
	if all := settled(queuetest.Exported(t, q)); !slices.Equal(all, settled(paged(t, q, 50))) || len(all) < 300 {
		t.Errorf("exported %d lines, want at least 300, and the same ones from pages", len(all))
	}
}

// An error of the writer ends the export and is returned as it is.
func TestAnExportReturnsTheErrorOfItsWriter(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		full := errors.New("disk full")
		if err := inspect.ExportTo(context.Background(), q, unwritable{full}); !errors.Is(err, full) {
			t.Errorf("ExportTo = %v, want %v", err, full)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var none *bufio.Writer
		for _, w := range []io.Writer{nil, none} {
			if err := inspect.ExportTo(t.Context(), q, w); !errors.Is(err, refusal.ErrInvalid) {
				t.Errorf("ExportTo(%#v) = %v, want ErrInvalid", w, err)
			}
		}
		if err := inspect.ExportTo(ctx, q, bufio.NewWriter(nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("ExportTo with a cancelled context = %v", err)
		}
	})
}

type unwritable struct{ error }

func (u unwritable) Write([]byte) (int, error) { return 0, u.error }
