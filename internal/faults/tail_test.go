package faults

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/stages"
)

// witness reads a namespace's events while they happen: what it has read was so,
// whatever becomes of Redis afterwards.
type witness struct {
	mu     sync.Mutex
	events []stages.Event
	last   string
	gone   chan struct{}
}

// witness starts one. It ends with its server, or when its context ends.
func (s *stage) witness(ctx context.Context, addr, from string) *witness {
	w := &witness{last: from, gone: make(chan struct{})}
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	go func() {
		defer close(w.gone)
		defer rdb.Close()
		for ctx.Err() == nil {
			streams, err := rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{s.Q.EventsKey(0), w.last}, Count: 1000, Block: 100 * time.Millisecond}).Result()
			if err == redis.Nil {
				continue
			}
			if err != nil {
				return
			}
			w.mu.Lock()
			for _, m := range streams[0].Messages {
				w.events, w.last = append(w.events, stages.ReadEvents(m)...), m.ID
			}
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *witness) seen() []stages.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// begins checks that what came back is a beginning of what was seen, as far as both go.
func (s *stage) begins(back, seen []stages.Event) {
	s.Helper()
	for i := range min(len(back), len(seen)) {
		if a, b := back[i], seen[i]; a.Entry != b.Entry || a.ID != b.ID || a.Kind != b.Kind || a.Epoch != b.Epoch {
			s.Complain("event %d was %s %s of %s, and is %s %s of %s after the restart", i, b.Entry, b.Kind, b.ID, a.Entry, a.Kind, a.ID)
			return
		}
	}
}

// appendFile is the file that a server with this folder appends to.
func appendFile(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		return "", os.ErrNotExist
	}
	return files[0], nil
}

// copyTo copies a server's files, of which the last keeps only so many bytes.
func copyTo(from, to string, bytes int64) error {
	if err := os.CopyFS(filepath.Join(to, "appendonlydir"), os.DirFS(filepath.Join(from, "appendonlydir"))); err != nil {
		return err
	}
	file, err := appendFile(to)
	if err != nil {
		return err
	}
	return os.Truncate(file, bytes)
}

// written is how long the file was when all that was acknowledged before the call
// had been written to it: it holds a task that was enqueued just now.
func (s *stage) written(dir string, marker string) (size int64) {
	s.Helper()
	await.Until(s.T, "what was acknowledged is in the file", func() bool {
		file, err := appendFile(dir)
		if err != nil {
			return false
		}
		text, err := os.ReadFile(file)
		size = int64(len(text))
		return err == nil && bytes.Contains(text, []byte(marker))
	})
	return size
}

// mend takes a script off the end of a dead server's file of which not all is there,
// as an operator must: Redis 7.0 itself drops such a script at its next start and
// leaves the beginning of it in the file, which comes to life at the start after that.
// It tells how much it took.
func (s *stage) mend(dir string) (bytes int64) {
	s.Helper()
	file, err := appendFile(dir)
	if err != nil {
		s.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		s.Fatal(err)
	}
	check := exec.Command("redis-check-aof", "--fix", filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest"))
	check.Stdin = strings.NewReader("y\n")
	if said, err := check.CombinedOutput(); err != nil {
		s.Fatalf("redis-check-aof, which comes with redis-server (make redis): %v\n%s", err, said)
	}
	after, err := os.Stat(file)
	if err != nil {
		s.Fatal(err)
	}
	return before.Size() - after.Size()
}
