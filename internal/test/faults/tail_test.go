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

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
)

// witness reads the events of a namespace as they are written, so that it has them even if Redis
// loses them later.
type witness struct {
	mu     sync.Mutex
	events []harness.Event
	last   string
	gone   chan struct{}
}

// witness starts a witness. It ends with its server, or with ctx.
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
				w.events, w.last = append(w.events, harness.ReadEvents(m)...), m.ID
			}
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *witness) seen() []harness.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// begins checks that back and seen have the same events, up to the end of the shorter one.
func (s *stage) begins(back, seen []harness.Event) {
	s.Helper()
	for i := range min(len(back), len(seen)) {
		if a, b := back[i], seen[i]; a.Entry != b.Entry || a.ID != b.ID || a.Kind != b.Kind || a.Epoch != b.Epoch {
			s.Complain("event %d was %s %s of %s before, and is %s %s of %s after the restart", i, b.Entry, b.Kind, b.ID, a.Entry, a.Kind, a.ID)
			return
		}
	}
}

// appendFile returns the file to which a server with this folder appends.
func appendFile(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		return "", os.ErrNotExist
	}
	return files[0], nil
}

// copyTo copies a server's files, and truncates the append-only file to bytes.
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

// written waits until the file contains marker, the id of a task that was enqueued last, and
// returns its size. So the file then has everything that was acknowledged before.
func (s *stage) written(dir string, marker string) (size int64) {
	s.Helper()
	await.Until(s.T, "the acknowledged tasks are in the file", func() bool {
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

// mend removes an incomplete script from the end of a dead server's file, as an operator must do.
// At its next start Redis 7.0 ignores such a script but leaves its beginning in the file, and runs
// it at the start after that. mend returns how many bytes it removed.
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
		s.Fatalf("redis-check-aof (install it with redis-server: make redis): %v\n%s", err, said)
	}
	after, err := os.Stat(file)
	if err != nil {
		s.Fatal(err)
	}
	return before.Size() - after.Size()
}
