package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Remedy is the repair of a finding.
type Remedy struct {
	Finding
	Does []string // such as "add to deadlines"; empty if there is nothing to do, or nothing can be done
	Left string   // the reason for an incomplete repair, and advice for the operator; empty if it is complete
}

// repairedAtOnce is how many places one call repairs. It takes some 50 µs for each.
const repairedAtOnce = 100

// order has the order of repairs. How many agents wait is set first, since it depends on counters that other
// repairs change. The controls are looked for in the queues that are listed. Running tasks are counted last, from the claims that were repaired.
var order = []string{"waiting", "queue", "kind", "figure", "controls", "worker", "task", "wait", "ends", "key", "running"}

// place is the subject of one repair.
type place struct{ what, subject, where string }

// Repair repairs the findings of a partition, if records determine the right values. With dry, it changes nothing and
// returns the remedies that it would apply.
func Repair(ctx context.Context, q *queue.Queue, partition int, findings []Finding, dry bool) ([]Remedy, error) {
	r := repairing{Queue: q, partition: partition, mode: "go", in: map[place][]string{}, told: map[place]Remedy{}}
	if dry {
		r.mode = "dry"
	}
	var places []place
	for _, f := range findings {
		if p := f.place(); p.what != "" {
			places = append(places, p)
			if p.what == "task" && f.cure.where != "" {
				r.in[p] = append(r.in[p], f.cure.where)
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(slices.Index(order, a.what)-slices.Index(order, b.what), strings.Compare(a.subject, b.subject), strings.Compare(a.where, b.where))
	})
	places = slices.Compact(places)
	for len(places) > 0 { // a call repairs places of one kind, because it does not see its own pending writes
		n := slices.IndexFunc(places, func(p place) bool { return p.what != places[0].what })
		if n < 0 {
			n = len(places)
		}
		n = min(n, repairedAtOnce)
		if err := r.repair(ctx, places[:n]); err != nil {
			return nil, err
		}
		places = places[n:]
	}
	if err := r.count(ctx); err != nil {
		return nil, err
	}
	remedies := make([]Remedy, len(findings))
	for i, f := range findings {
		remedies[i] = Remedy{Finding: f, Left: f.cure.advice}
		if f.cure.what != "" {
			remedy := r.told[f.place()]
			remedies[i].Does, remedies[i].Left = remedy.Does, remedy.Left
		}
	}
	return remedies, nil
}

// place returns the place that the repair of a finding changes. Findings share a place if one repair cures them all:
// a task is repaired once, and running tasks are counted for all queues at once.
func (f Finding) place() place {
	subject, where := f.Subject, f.cure.where
	switch f.cure.what {
	case "task":
		where = ""
	case "running", "controls":
		subject = ""
	case "queue":
		subject = strings.TrimPrefix(subject, "wake:")
	case "kind", "figure":
		subject = strings.TrimPrefix(subject, "figures:")
	}
	return place{f.cure.what, subject, where}
}

type repairing struct {
	*queue.Queue
	partition int
	mode      string             // dry or go
	in        map[place][]string // keys in which tasks may be wrong
	told      map[place]Remedy
	counting  bool // the count of running tasks is not finished
}

// repair repairs some places. If one of them makes the call fail, such as one with a key of the wrong type, that one is
// left.
func (r *repairing) repair(ctx context.Context, places []place) error {
	for len(places) > 0 {
		n := len(places)
		answers, err := r.call(ctx, places)
		failed := errors.Is(err, refusal.ErrWrongType)
		if failed && n > 1 {
			if err := r.repair(ctx, places[:n/2]); err != nil {
				return err
			}
			places = places[n/2:]
			continue
		} else if failed {
			r.told[places[0]] = Remedy{Left: fmt.Sprintf("it cannot be repaired: %v", err)}
			return nil
		}
		if err != nil {
			return err
		}
		for i, answer := range answers {
			r.told[places[i]] = answer
		}
		places = places[len(answers):]
	}
	return nil
}

func (r *repairing) call(ctx context.Context, places []place) ([]Remedy, error) {
	args := []any{r.mode}
	for _, p := range places {
		if in := r.in[p]; len(in) > 0 {
			slices.Sort(in)
			p.where = strings.Join(slices.Compact(in), " ")
		}
		args = append(args, p.what, p.subject, p.where)
	}
	reply, err := r.Engine().Call(ctx, r.partition, "repair", args...)
	answers, err := engine.List(reply, err, 2)
	if err != nil {
		return nil, err
	}
	if len(answers) > len(places)+1 {
		return nil, fmt.Errorf("%d answers for %d places", len(answers)-1, len(places))
	}
	r.counting = r.counting || engine.Number(answers[0]) == 1
	remedies := make([]Remedy, len(answers)-1)
	for i, answer := range answers[1:] {
		words, _ := answer.([]any)
		for j, word := range words {
			switch {
			case j == 0:
			case j == 1 && engine.Text(words[0]) == "LEFT":
				remedies[i].Left = engine.Text(word)
			default:
				remedies[i].Does = append(remedies[i].Does, engine.Text(word))
			}
		}
	}
	return remedies, nil
}

// count finishes the count of running tasks, which can take several calls.
func (r *repairing) count(ctx context.Context) error {
	for r.counting {
		r.counting = false
		if _, err := r.call(ctx, []place{{"running", "", "go on"}}); err != nil {
			return err
		}
	}
	return nil
}
