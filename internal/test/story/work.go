package story

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// fetch worker=w1 n=1 lease=10s queues=a:1,b:2 elsewhere=0 rests=1 seq=N. Without seq it is the next one.
func (s *stage) fetch(w words) []string {
	trip, err := claim.Of(s.q).Fetch(s.ctx, 0, w.named["worker"], s.ask(w))
	if err != nil {
		return []string{"error " + err.Error()}
	}
	return s.claims(trip)
}

func (s *stage) ask(w words) claim.Ask {
	s.seq++
	ask := claim.Ask{N: 1, Seq: s.seq, Lease: w.duration("lease", 15*time.Second)}
	ask.Elsewhere, _ = strconv.Atoi(w.named["elsewhere"])
	ask.Rests = w.named["rests"] != ""
	if n, err := strconv.Atoi(w.named["n"]); err == nil {
		ask.N = n
	}
	if n, err := strconv.ParseInt(w.named["seq"], 10, 64); err == nil {
		ask.Seq = n
	}
	queues := w.named["queues"]
	if queues == "" {
		queues = "default"
	}
	for _, entry := range strings.Split(queues, ",") {
		name, quota, ok := strings.Cut(entry, ":")
		n, _ := strconv.Atoi(quota)
		if !ok {
			n = ask.N
		}
		ask.Quotas = append(ask.Quotas, claim.Quota{Queue: name, N: n})
	}
	return ask
}

// complete task=a epoch=1 worker=w1 result=x call=C; fail … error=x class=failed
// code=2 delay=1s; release … delay=1s. next=N fetches the next tasks in the same call.
func (s *stage) settle(w words) []string {
	epoch, _ := strconv.ParseInt(w.named["epoch"], 10, 64)
	code, _ := strconv.Atoi(w.named["code"])
	call := w.named["call"]
	if call == "" {
		call = queue.NewCall()
	}
	worker := w.named["worker"]
	if worker == "" {
		worker = "w1"
	}
	var outcomes []queue.Outcome
	for _, name := range strings.Split(w.named["task"], ",") {
		outcomes = append(outcomes, queue.Outcome{ID: long(name), Epoch: epoch, Verb: queue.Verb(w.verb), Result: []byte(w.named["result"]),
			Error: w.named["error"], Class: queue.Class(w.named["class"]), Code: code, Delay: w.duration("delay", 0), Retry: w.named["retry"]})
	}
	ask := claim.Ask{}
	if next := w.named["next"]; next != "" {
		w.named["n"] = next
		ask = s.ask(w)
	}
	trip, err := claim.Of(s.q).Settle(s.ctx, 0, worker, call, outcomes, ask)
	if err != nil {
		return []string{"error " + err.Error()}
	}
	var answers []string
	for _, v := range trip.Verdicts {
		answers = append(answers, strings.TrimSpace(string(v.Word)+" "+string(v.Status)+v.Why))
	}
	if ask.N > 0 {
		answers = append(answers, s.claims(trip)...)
	}
	return answers
}

// heartbeat worker=w1 lease=15s known=N a:1 b:2:50% lists the claims by name and epoch, and
// perhaps their progress. lease=0 says that the worker leaves.
func (s *stage) heartbeat(w words) []string {
	var held []claim.Held
	for _, entry := range w.plain {
		parts := append(strings.SplitN(entry, ":", 3), "", "")
		n, _ := strconv.ParseInt(parts[1], 10, 64)
		held = append(held, claim.Held{ID: long(parts[0]), Epoch: n, Progress: parts[2]})
	}
	lease, known := w.duration("lease", 15*time.Second), int64(0)
	if w.named["lease"] == "0" {
		lease = 0
	}
	known, _ = strconv.ParseInt(w.named["known"], 10, 64)
	stops, err := claim.Of(s.q).Heartbeat(s.ctx, 0, w.named["worker"], lease, known, held)
	if err != nil {
		return []string{"error " + err.Error()}
	}
	if len(stops) == 0 {
		return []string{"go on"}
	}
	var answers []string
	for _, stop := range stops {
		answers = append(answers, fmt.Sprintf("stop %s epoch=%d %s", short(stop.ID), stop.Epoch, stop.Reason))
	}
	return answers
}

// sweep reaper=r1 batch=100 fallback=500ms
func (s *stage) sweep(w words) []string {
	name, batch := w.named["reaper"], 100
	if name == "" {
		name = "r1"
	}
	if n, err := strconv.Atoi(w.named["batch"]); err == nil {
		batch = n
	}
	swept, err := reaper.Sweep(s.ctx, s.q, 0, name, batch, w.duration("fallback", 500*time.Millisecond))
	if err != nil {
		return []string{"error " + err.Error()}
	}
	text := "wait=" + swept.Wait.String()
	if !swept.Turn {
		text += " another has the turn"
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"timed_out", swept.TimedOut}, {"started", swept.Started}, {"fired", swept.Fired}, {"warned", swept.Warned}, {"given_back", swept.GivenBack},
		{"waits_timed_out", swept.WaitsTimedOut}, {"drained", swept.Drained}, {"removed", swept.Removed}, {"broken", swept.Broken}} {
		if n.n > 0 {
			text += fmt.Sprintf(" %s=%d", n.name, n.n)
		}
	}
	answers := []string{text}
	for _, e := range swept.Errors {
		answers = append(answers, "  "+strings.ReplaceAll(e, s.root, "root"))
	}
	return answers
}
