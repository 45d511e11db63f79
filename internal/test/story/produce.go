package story

import (
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/queue"
)

// enqueue calls the script itself, so that a story can send what the Go client
// would refuse. timeout=30s and the like are durations; the other arguments are
// passed on as they are. task=a,b,c enqueues several tasks.
func (s *stage) enqueue(w words) []string {
	var tasks [][]any
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
			case "headers": // JSON, with ' in place of "
				fields = append(fields, name, strings.ReplaceAll(value, "'", `"`))
			default:
				fields = append(fields, stored(name, value)...)
			}
		}
		tasks = append(tasks, fields)
	}
	reply, err := s.call("enqueue", wire.Tasks(tasks...)...)
	if err != nil {
		return []string{refusal(err)}
	}
	var answers []string
	for _, row := range wire.Answers(tasks, reply) {
		line := []string{row[0].(string), short(row[1].(string))}
		if len(row) > 2 && row[2] != "" {
			line = append(line, since(row[2].(string)))
		}
		answers = append(answers, strings.Join(line, " "))
	}
	return answers
}

// stored returns the name and the value of a field in a call: a duration is in ms.
func stored(name, value string) []any {
	if f, known := field.ByName(name); known && f.Type == field.Span && f.By != field.Client {
		return []any{f.Name, milliseconds(value)}
	}
	return []any{name, value}
}

// milliseconds converts a duration to ms. It returns any other text as it is.
func milliseconds(value string) string {
	d, err := time.ParseDuration(value)
	if err != nil {
		return value
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// cancel a b reason=x call=C owner=o
func (s *stage) cancel(w words) []string {
	call := w.named["call"]
	if call == "" {
		call = queue.NewCall()
	}
	owner := w.named["owner"]
	if owner != "" {
		owner = long(owner)
	}
	args := []any{call, w.named["reason"], owner}
	for _, name := range w.plain {
		args = append(args, long(name))
	}
	return s.rows(s.call("cancel", args...))
}

// delete a b
func (s *stage) delete(w words) []string {
	var args []any
	for _, name := range w.plain {
		args = append(args, long(name))
	}
	return s.rows(s.call("delete", args...))
}

// resolve a:result b call=C settles promises; reject a:error rejects them.
func (s *stage) resolve(w words) []string {
	call, verb := w.named["call"], "complete"
	if call == "" {
		call = queue.NewCall()
	}
	if w.verb == "reject" {
		verb = "fail"
	}
	args := []any{call, verb}
	for _, entry := range w.plain {
		name, note, _ := strings.Cut(entry, ":")
		args = append(args, long(name), note)
	}
	return s.rows(s.call("resolve", args...))
}
