package story

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/testclock"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// stage is where a story is played: a namespace, and what its workers remember.
type stage struct {
	ctx     context.Context
	q       *queue.Queue
	rdb     redis.UniversalClient
	library *lua.Library
	root    string
	now     time.Time
	seq     int64
}

var verbs = map[string]func(*stage, words) []string{
	"enqueue":   (*stage).enqueue,
	"fetch":     (*stage).fetch,
	"complete":  (*stage).settle,
	"fail":      (*stage).settle,
	"release":   (*stage).settle,
	"heartbeat": (*stage).heartbeat,
	"cancel":    (*stage).cancel,
	"sweep":     (*stage).sweep,
	"advance":   (*stage).advance,
	"get":       (*stage).get,
	"watch":     (*stage).watch,
	"open":      (*stage).open,
	"redis":     (*stage).redis,
	"state":     (*stage).state,
	"events":    (*stage).events,
}

func (s *stage) do(line string) []string {
	w := parse(line)
	verb, ok := verbs[w.verb]
	if !ok {
		return []string{"no such command: " + w.verb}
	}
	answers := verb(s, w)
	for i := range answers {
		answers[i] = position.ReplaceAllString(answers[i], "WRONGTYPE")
	}
	return answers
}

// position is where in our Lua Redis raised an error. The embedded server says so
// where Redis does not, and it moves with every edit.
var position = regexp.MustCompile(`[^\s=]*:\d+: WRONGTYPE`)

// long and short translate between a story's names and ids.
func long(name string) string {
	if name == "" || strings.HasPrefix(name, "!") {
		return strings.TrimPrefix(name, "!") // an id as it is written
	}
	return "0-" + name
}

func short(id string) string { return strings.TrimPrefix(id, "0-") }

// since tells an instant as the time from the story's beginning.
func since(ms string) string {
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || n < testclock.Start.UnixMilli()-1e10 {
		return ms
	}
	return time.UnixMilli(n).Sub(testclock.Start).String()
}

// enqueue calls the script itself, so that a story can hand over what the Go
// client would refuse. timeout=30s and the like are durations; the other
// arguments go as they are. several tasks: task=a,b,c.
func (s *stage) enqueue(w words) []string {
	var args []any
	for _, name := range strings.Split(w.named["task"], ",") {
		fields := []any{"id", long(name)}
		if _, ok := w.named["kind"]; !ok {
			fields = append(fields, "kind", "k")
		}
		for name, value := range w.named {
			switch name {
			case "task":
			case "deadline", "start":
				d, _ := time.ParseDuration(value)
				field := map[string]string{"deadline": "deadline_at", "start": "available_at"}[name]
				fields = append(fields, field, testclock.Start.Add(d).UnixMilli())
			case "timeout", "delay", "queue_timeout", "attempt_timeout", "retention":
				d, _ := time.ParseDuration(value)
				fields = append(fields, name+"_ms", d.Milliseconds())
			default:
				fields = append(fields, name, value)
			}
		}
		args = append(append(args, len(fields)/2), fields...)
	}
	reply, err := s.library.Run(s.ctx, s.rdb, "enqueue", s.root, args...)
	if err != nil {
		return []string{refusal(err)}
	}
	var answers []string
	for _, r := range reply.([]any) {
		row := r.([]any)
		line := []string{row[0].(string), short(row[1].(string))}
		if len(row) > 2 && row[2] != "" {
			line = append(line, since(row[2].(string)))
		}
		answers = append(answers, strings.Join(line, " "))
	}
	return answers
}

// refusal tells what Redis raised, without the place in our Lua that it came from.
func refusal(err error) string {
	if strings.Contains(err.Error(), "WRONGTYPE") {
		return "error WRONGTYPE"
	}
	return "error " + err.Error()
}

// fetch worker=w1 n=1 lease=10s queues=a:1,b:2 seq=N (the next one if absent).
func (s *stage) fetch(w words) []string {
	trip, err := s.q.Fetch(s.ctx, 0, w.named["worker"], s.ask(w))
	if err != nil {
		return []string{"error " + err.Error()}
	}
	return s.claims(trip)
}

func (s *stage) ask(w words) queue.Ask {
	s.seq++
	ask := queue.Ask{N: 1, Seq: s.seq, Lease: w.duration("lease", 15*time.Second)}
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
		ask.Quotas = append(ask.Quotas, queue.Quota{Queue: name, N: n})
	}
	return ask
}

func (s *stage) claims(trip queue.Trip) []string {
	if len(trip.Claims) == 0 {
		return []string{"nothing"}
	}
	var answers []string
	for _, c := range trip.Claims {
		line := fmt.Sprintf("%s epoch=%d", short(c.ID), c.Epoch)
		if c.Retries > 0 {
			line += fmt.Sprintf(" retries=%d", c.Retries)
		}
		if !c.Deadline.IsZero() {
			line += " deadline=" + since(strconv.FormatInt(c.Deadline.UnixMilli(), 10))
		}
		if !c.AttemptDeadline.IsZero() {
			line += " attempt=" + since(strconv.FormatInt(c.AttemptDeadline.UnixMilli(), 10))
		}
		if len(c.Payload) > 0 {
			line += " payload=" + string(c.Payload)
		}
		answers = append(answers, line)
	}
	if trip.More {
		answers[len(answers)-1] += " more"
	}
	return answers
}

// complete task=a epoch=1 worker=w1 result=x call=C; fail … error=x class=failed
// code=2 delay=1s; release … delay=1s. next=N takes the next tasks in the same trip.
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
			Error: w.named["error"], Class: w.named["class"], Code: code, Delay: w.duration("delay", 0)})
	}
	ask := queue.Ask{}
	if next := w.named["next"]; next != "" {
		w.named["n"] = next
		ask = s.ask(w)
	}
	trip, err := s.q.Settle(s.ctx, 0, worker, call, outcomes, ask)
	if err != nil {
		return []string{"error " + err.Error()}
	}
	var answers []string
	for _, v := range trip.Verdicts {
		answers = append(answers, strings.TrimSpace(v.Word+" "+string(v.Status)))
	}
	if ask.N > 0 {
		answers = append(answers, s.claims(trip)...)
	}
	return answers
}

// heartbeat worker=w1 lease=15s known=N a:1 b:2; lease=0 is goodbye.
func (s *stage) heartbeat(w words) []string {
	var held []queue.Held
	for _, entry := range w.plain {
		name, epoch, _ := strings.Cut(entry, ":")
		n, _ := strconv.ParseInt(epoch, 10, 64)
		held = append(held, queue.Held{ID: long(name), Epoch: n})
	}
	lease, known := w.duration("lease", 15*time.Second), int64(0)
	if w.named["lease"] == "0" {
		lease = 0
	}
	known, _ = strconv.ParseInt(w.named["known"], 10, 64)
	stops, err := s.q.Heartbeat(s.ctx, 0, w.named["worker"], lease, known, held)
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

// cancel a b reason=x call=C
func (s *stage) cancel(w words) []string {
	call := w.named["call"]
	if call == "" {
		call = queue.NewCall()
	}
	args := []any{call, w.named["reason"]}
	for _, name := range w.plain {
		args = append(args, long(name))
	}
	reply, err := s.library.Run(s.ctx, s.rdb, "cancel", s.root, args...)
	if err != nil {
		return []string{"error " + err.Error()}
	}
	var answers []string
	for _, row := range reply.([]any) {
		answers = append(answers, line(row.([]any)))
	}
	return answers
}

func line(row []any) string {
	var text []string
	for _, word := range row {
		text = append(text, fmt.Sprint(word))
	}
	return strings.TrimSpace(strings.Join(text, " "))
}

// sweep reaper=r1 batch=100 fallback=500ms
func (s *stage) sweep(w words) []string {
	reaper, batch := w.named["reaper"], 100
	if reaper == "" {
		reaper = "r1"
	}
	if n, err := strconv.Atoi(w.named["batch"]); err == nil {
		batch = n
	}
	swept, err := s.q.Sweep(s.ctx, 0, reaper, batch, w.duration("fallback", 500*time.Millisecond))
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
	}{{"timed_out", swept.TimedOut}, {"started", swept.Started}, {"given_back", swept.GivenBack},
		{"drained", swept.Drained}, {"removed", swept.Removed}, {"broken", swept.Broken}} {
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

// advance 5s
func (s *stage) advance(w words) []string {
	d, err := time.ParseDuration(w.plain[0])
	if err != nil {
		return []string{err.Error()}
	}
	s.now = s.now.Add(d)
	if err := s.rdb.Set(s.ctx, s.root+":clock", s.now.UnixMilli(), 0).Err(); err != nil {
		return []string{err.Error()}
	}
	return []string{"now " + s.now.Sub(testclock.Start).String()}
}

// get a
func (s *stage) get(w words) []string {
	var answers []string
	for _, name := range w.plain {
		r, err := s.q.Get(s.ctx, long(name))
		if err != nil {
			answers = append(answers, err.Error())
			continue
		}
		text := fmt.Sprintf("%s %s %s", name, r.Status, r.Phase())
		if r.Overdue {
			text += " overdue"
		}
		if _, ok := r.Fields["result"]; ok {
			text += fmt.Sprintf(" result=%q", r.Result)
		}
		if r.Error != "" {
			text += fmt.Sprintf(" error=%q", r.Error)
		}
		answers = append(answers, text)
	}
	return answers
}

// watch a
func (s *stage) watch(w words) []string {
	var args []any
	for _, name := range w.plain {
		args = append(args, long(name))
	}
	reply, err := s.library.Run(s.ctx, s.rdb, "watch", s.root, args...)
	if err != nil {
		return []string{"error " + err.Error()}
	}
	var answers []string
	for _, row := range reply.([]any)[1:] {
		r := row.([]any)
		answers = append(answers, strings.TrimSpace(fmt.Sprintf("%s %s", r[0], since(fmt.Sprint(r[1])))))
	}
	return answers
}

// open partitions=4
func (s *stage) open(w words) []string {
	partitions, _ := strconv.Atoi(w.named["partitions"])
	_, err := queue.Open(s.ctx, s.rdb, queue.Config{Namespace: s.q.Namespace(), Partitions: partitions, Library: s.library})
	if err != nil {
		return []string{err.Error()}
	}
	return []string{"OK"}
}

// redis SET {root}:deadlines x: what somebody else does to our keys.
func (s *stage) redis(w words) []string {
	args := make([]any, len(w.plain))
	for i, word := range w.plain {
		args[i] = strings.ReplaceAll(word, "{root}", s.root)
	}
	reply, err := s.rdb.Do(s.ctx, args...).Result()
	if err != nil {
		return []string{"error " + err.Error()}
	}
	return []string{fmt.Sprint(reply)}
}

// events: the stream so far, one line an event.
func (s *stage) events(w words) []string {
	if w.named["level"] != "" {
		return []string{"from now on"}
	}
	messages, err := s.rdb.XRange(s.ctx, s.q.EventsKey(0), "-", "+").Result()
	if err != nil || len(messages) == 0 {
		return []string{"none"}
	}
	var answers []string
	for _, m := range messages {
		text := fmt.Sprintf("%s %s %s", since(fmt.Sprint(m.Values["at"])), m.Values["kind"], short(fmt.Sprint(m.Values["task_id"])))
		var more []string
		for name, value := range m.Values {
			if v := fmt.Sprint(value); v != "" && !slices.Contains([]string{"at", "kind", "task_id", "task_kind", "queue"}, name) {
				if strings.HasSuffix(name, "_at") {
					v = since(v)
				}
				if strings.HasSuffix(name, "_id") {
					v = short(v)
				}
				more = append(more, name+"="+v)
			}
		}
		slices.Sort(more)
		answers = append(answers, strings.TrimSpace(text+" "+strings.Join(more, " ")))
	}
	return answers
}
