package examples_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func benchSite(b *testing.B) *site {
	if os.Getenv("CURFEW_DOORS") != "1" {
		b.Skip("CURFEW_DOORS is not 1: `make doors` installs what this needs")
	}
	return newSite(b, redistest.Shared(b))
}

// benchWorker measures how many tasks of the kind render a worker runs in a second. The tasks are in line before it
// starts, and the time runs from the first that it has settled.
func benchWorker(b *testing.B, l language) {
	for _, slots := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			s := benchSite(b)
			s.env = append(s.env, "LEASE_MS=15000")
			for range b.N + 1 {
				s.enqueue(queue.Task{Kind: "render", Payload: []byte("x"), Timeout: time.Hour})
			}
			p := s.start("", l.worker("default", slots)...)
			settled := func() int { return strings.Count(p.stdout.String(), " COMPLETED\n") }
			await.Until(b, "a task is settled", func() bool { return settled() > 0 })
			first, began := settled(), time.Now()
			await.Until(b, "all tasks are settled", func() bool { return settled() > b.N })
			b.ReportMetric(float64(b.N+1-first)/time.Since(began).Seconds(), "tasks/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Run it with a number of tasks: CURFEW_DOORS=1 go test ./examples -run '^$' -bench . -benchtime 5000x
func BenchmarkPythonWorker(b *testing.B) { benchWorker(b, languages[0]) }

func BenchmarkNodeWorker(b *testing.B) { benchWorker(b, languages[1]) }

// BenchmarkPythonEnqueue measures how many tasks a second the producer enqueues one after another, on one connection.
func BenchmarkPythonEnqueue(b *testing.B) {
	s := benchSite(b)
	const loop = `
import sys, time
sys.path.insert(0, "python")
from producer import enqueue
enqueue("render", b"x", timeout="1h")
began = time.monotonic()
for _ in range(int(sys.argv[1])):
    enqueue("render", b"x", timeout="1h")
print(time.monotonic() - began)
`
	said := s.start("", python(), "-c", loop, strconv.Itoa(b.N)).await(s)
	seconds, err := strconv.ParseFloat(strings.TrimSpace(said), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/seconds, "tasks/s")
	b.ReportMetric(0, "ns/op")
}
