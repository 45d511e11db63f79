package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/queue"
)

// The operations of agents: wait, remember, and receive signals.

var childNames = []string{"1", "2", "3", "4", "x", "y"}

// drawAgent draws a running task, and a worker and an epoch; usually those that hold it.
func (p *player) drawAgent(t *rapid.T) (id, worker string, epoch int64) {
	id = p.drawID(t, p.m.acts)
	worker, epoch = drawWorker.Draw(t, "worker"), 1
	if known := p.m.tasks[id]; known != nil {
		epoch = known.epoch
		if known.status == queue.Running {
			worker = known.worker
		}
		if rapid.IntRange(0, 15).Draw(t, "stale") == 15 {
			epoch--
		}
	}
	return id, worker, epoch
}

// suspend has an agent wait for children that exist, and for new ones.
func (p *player) suspend(t *rapid.T) {
	id, worker, epoch := p.drawAgent(t)
	if id == "" {
		p.begin(t)
		return
	}
	if rest, begun := p.parts[id]; begun && rapid.IntRange(0, 3).Draw(t, "goes on") > 0 {
		delete(p.parts, id)
		p.play(t, func(t *rapid.T) { p.makeSuspend(t, rest) })
		return
	}
	c := modelCall{agent: id, worker: worker, epoch: epoch, call: p.newCall()}
	var names []string
	c.children, names = p.drawChildren(t, id)
	c.members = p.drawMembers(t, id, names)
	c.fields = p.drawWait(t, id, len(c.members))
	c.note = p.drawNote(t, id)
	if known := p.m.tasks[id]; rapid.IntRange(0, 9).Draw(t, "collects") >= map[bool]int{true: 3, false: 8}[known != nil && known.collects] {
		p.collect(t, &c)
	}
	if n := len(c.members); n > 1 && rapid.IntRange(0, 7).Draw(t, "in parts") == 0 {
		first := rapid.IntRange(1, n-1).Draw(t, "first part")
		rest := c
		rest.call, rest.children, rest.note, rest.fields = p.newCall(), nil, modelNote{}, maps.Clone(c.fields)
		c.members, rest.members = c.members[:first], c.members[first:]
		c.fields["part"], c.fields["of"], rest.fields["part"], rest.fields["of"] = "1", "2", "2", "2"
		p.parts[id] = rest
	}
	p.play(t, func(t *rapid.T) { p.makeSuspend(t, c) })
}

// makeSuspend makes the call on both sides.
func (p *player) makeSuspend(t *rapid.T, c modelCall) {
	args := []any{c.agent, c.epoch, c.worker, c.call, len(c.fields)}
	for _, name := range slices.Sorted(maps.Keys(c.fields)) {
		args = append(args, name, c.fields[name])
	}
	args = append(args, len(c.members))
	for _, m := range c.members {
		args = append(args, m.id, m.patience, m.mask)
	}
	args = c.note.args(args)
	children, gone := p.wired(c.children)
	if gone {
		return
	}
	answer := p.run(t, "suspend", append(args, wire.Tasks(children...)...)...).([]any)[1:]
	p.seen["suspend "+engine.Text(answer[0])]++
	p.same(t, "suspend "+c.agent, formatRefusal(answer), p.m.suspend(c))
}

// formatRefusal formats an answer, without the reason why something is invalid.
func formatRefusal(answer []any) string {
	for i, word := range answer {
		if i < 3 && engine.Text(word) == "INVALID" {
			answer = answer[:i+2]
			break
		}
	}
	return join(answer)
}

func (n modelNote) args(args []any) []any {
	args = append(args, len(n.checkpoint))
	for _, name := range slices.Sorted(maps.Keys(n.checkpoint)) {
		args = append(args, name, n.checkpoint[name])
	}
	args = append(args, len(n.entries))
	for _, e := range n.entries {
		args = append(args, e.number, e.text)
	}
	return args
}

// begin makes a task with enough time to be an agent, and has a worker claim it.
func (p *player) begin(t *rapid.T) {
	f := map[string]string{"id": p.drawNewID(t), "kind": "k", "queue": drawQueue.Draw(t, "queue"), "priority": "3"}
	switch rapid.IntRange(0, 5).Draw(t, "agent") {
	case 5:
		f["attempt_timeout_ms"], f["on_timeout"], f["max_retries"], f["backoff_ms"] = "20", "retry", "2", "none"
	case 4:
		f["attempt_timeout_ms"], f["queue_timeout_ms"] = "20", "20"
	case 3:
		f["deadline_at"] = fmt.Sprint(p.m.now + 40)
	}
	if p.m.removed[f["id"]] {
		return
	}
	p.enqueueAll(t, []map[string]string{f})
	p.seq++
	p.fetchAs(t, drawWorker.Draw(t, "worker"), claim.Ask{N: 2, Seq: p.seq, Lease: 200 * time.Millisecond, Quotas: []claim.Quota{{Queue: "p", N: 1}, {Queue: "q", N: 1}}})
}

// outwait moves the clock to where a wait is out of time, or almost, and sweeps. Or it moves
// the clock to where the attempt of a woken agent is out of time, or almost, and fetches.
func (p *player) outwait(t *rapid.T) {
	for _, id := range due(p.m.clock(func(t *modelTask) int64 { return t.attemptAt }), 1<<60) {
		if task := p.m.tasks[id]; task.woken && task.attemptAt >= p.m.now && rapid.Bool().Draw(t, "goes on too long") {
			p.wait(t, task.attemptAt-p.m.now+rapid.SampledFrom([]int64{1, 0, 1}).Draw(t, "beyond"))
			p.compare(t)
			p.seq++
			p.fetchAs(t, drawWorker.Draw(t, "worker"), claim.Ask{N: 4, Seq: p.seq, Lease: 20 * time.Millisecond, Quotas: []claim.Quota{{Queue: "p", N: 2}, {Queue: "q", N: 2}}})
			return
		}
	}
	ids := due(p.m.waits, 1<<60)
	if len(ids) == 0 {
		p.suspend(t)
		return
	}
	at := p.m.waits[rapid.SampledFrom(ids).Draw(t, "agent")] + rapid.SampledFrom([]int64{1, 0, 1, 2, 5}).Draw(t, "beyond")
	if at > p.m.now && at < p.m.now+1000 {
		p.wait(t, at-p.m.now)
		p.compare(t)
	}
	p.sweep(t)
}

// remember has an agent store entries and continue.
func (p *player) remember(t *rapid.T) {
	id, worker, epoch := p.drawAgent(t)
	if id == "" {
		p.fetch(t)
		return
	}
	n := p.drawNote(t, id)
	p.play(t, func(t *rapid.T) {
		answer := p.run(t, "remember", n.args([]any{id, epoch, worker})...).([]any)
		p.same(t, "remember "+id, join(answer), p.m.rememberAll(id, epoch, worker, n))
	})
}

// signal sends an agent a signal.
func (p *player) signal(t *rapid.T) {
	id, call := p.drawID(t, (*modelTask).lives), p.newCall()
	if id == "" {
		p.enqueue(t)
		return
	}
	p.play(t, func(t *rapid.T) {
		if p.m.removed[id+".s-go"] {
			return
		}
		p.same(t, "signal "+id, formatRefusal(p.run(t, "signal", call, id, "go", "note").([]any)), p.m.signal(call, id, "go", "note"))
	})
}
