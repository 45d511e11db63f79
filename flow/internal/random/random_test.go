package random

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) { harness.Main(m, play) }

// input is the payload of a leaf.
type input struct {
	In    float64 `json:"in"`
	Seed  uint64  `json:"seed,string"`
	Hangs bool    `json:"hangs"`
}

// play is a worker process that runs flows and their leaves.
func play(role string, rdb *redis.Client, q *queue.Queue) {
	if role == "doomed" {
		doomed(rdb, q)
		return
	}
	w := worker.New(q, worker.Config{Concurrency: 8, Lease: time.Second})
	flow.Register(w)
	worker.Handle(w, "leaf", leaf)
	fmt.Println("ready")
	w.Run(context.Background())
}

func leaf(ctx context.Context, in input) (object, error) {
	if in.Hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	info := worker.Info(ctx)
	_, path, _ := strings.Cut(info.ID, ".")
	harness.Pass(time.Duration(rand.IntN(20)) * time.Millisecond) // sleeps: the work, so that processes are killed in it
	switch phase, value := outcome(in.Seed, "."+path, info.Retries); phase {
	case "Error":
		return nil, errors.New("broken")
	case "Failed":
		return nil, worker.Discard(errors.New("useless"))
	default:
		return object{"v": value + in.In}, nil
	}
}

// sample is a definition with its evaluation.
type sample struct {
	*evaluator
	id   string
	text []byte
	want end
}

// next returns the next sample whose evaluation does not depend on what comes first.
func next(seed *uint64) sample {
	for {
		*seed++
		g := &generator{Rand: rand.New(rand.NewPCG(*seed, 1)), seed: *seed}
		e := &evaluator{seed: *seed, leaves: map[string]string{}}
		id := fmt.Sprintf("f%d", *seed)
		if *seed%3 == 0 {
			x := g.graph()
			return sample{e, id, g.writeGraph(id, x), e.graph(x)}
		}
		first := g.template(2)
		if want := e.template(first, "", 0); !e.unsure && len(e.leaves) > 1 {
			return sample{e, id, g.text(id, first), want}
		}
	}
}

// Random definitions end as a plain evaluation of them says, although processes are killed while they run.
func TestRandomDefinitionsEndAsTheyMust(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := harness.New(t, server.Addr, queue.Config{})
	s.Reap(reaper.Config{})
	children := make([]*harness.Child, 2)
	for i := range children {
		children[i] = s.Spawn("worker")
	}
	seed := uint64(time.Now().Unix())
	t.Logf("the seeds begin at %d", seed)
	samples, runs := make([]sample, harness.Times(20, 40, 2000)), []string(nil)
	for i := range samples {
		samples[i] = next(&seed)
		if _, err := flow.Put(t.Context(), s.Q, samples[i].text); err != nil {
			t.Fatalf("the definition %s is refused: %v", samples[i].text, err)
		}
		runs = append(runs, s.Enqueue(queue.Task{Kind: "flow." + samples[i].id})...)
	}
	for kills := 0; !s.AllEnded(runs); harness.Pass(300 * time.Millisecond) { // sleeps: between two kills
		if kills++; kills <= 3 { // a task that four processes lost would fail
			children[kills%2].Kill()
			children[kills%2] = s.Spawn("worker")
		}
	}
	for i, id := range runs {
		compare(t, s, samples[i], id)
	}
	s.Audit(s.Q)
}

// compare compares a run with its evaluation.
func compare(t *testing.T, s *harness.Stage, x sample, id string) {
	t.Helper()
	r := s.Record(id)
	if r.Phase() != x.want.phase || r.CompletedAt.After(r.Deadline) {
		t.Errorf("the run of %s is %s with %s%s, want %v", x.text, r.Phase(), r.Result, r.Error, x.want)
		return
	}
	if r.Phase() != "Succeeded" {
		return
	}
	var got struct {
		Outputs struct{ Parameters struct{ V any } }
	}
	if err := json.Unmarshal(r.Result, &got); err != nil || !reflect.DeepEqual(got.Outputs.Parameters.V, x.want.value) {
		t.Errorf("the run of %s has %s, want %v", x.text, r.Result, x.want.value)
	}
	for place, phase := range x.leaves {
		if got := s.Record(id + place).Phase(); got != phase {
			t.Errorf("%s of %s is %s, want %s", place, x.text, got, phase)
		}
	}
}
