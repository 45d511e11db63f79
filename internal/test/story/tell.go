package story

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/eventlog"
)

// refusal formats an error of Redis without the place in the Lua that raised it.
func refusal(err error) string {
	if strings.Contains(err.Error(), "WRONGTYPE") {
		return "error WRONGTYPE"
	}
	return "error " + raisedAt.ReplaceAllString(err.Error(), "")
}

// raisedAt matches the place in the Lua that raised an error. It moves with every edit.
var raisedAt = regexp.MustCompile(`lua/\S+\.lua:\d+: `)

// claims formats the claims of a reply, a line each.
func (s *stage) claims(trip claim.Reply) []string {
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
	if len(answers) == 0 {
		answers = []string{"nothing"}
	}
	for word, said := range map[string]bool{" more": trip.More() && len(trip.Claims) > 0, " alone": trip.Alone, " waits": trip.Waits} {
		if said {
			answers[len(answers)-1] += word
		}
	}
	return answers
}

// rows formats a reply that has a row for each task.
func (s *stage) rows(reply any, err error) []string {
	if err != nil {
		return []string{refusal(err)}
	}
	var answers []string
	for _, row := range reply.([]any) {
		words := row.([]any)
		for i := range words {
			words[i] = since(fmt.Sprint(words[i]))
		}
		answers = append(answers, line(words))
	}
	return answers
}

// word formats a reply that is one row.
func (s *stage) word(reply any, err error) []string {
	if err != nil {
		return []string{refusal(err)}
	}
	return []string{line(reply.([]any))}
}

func line(row []any) string {
	var text []string
	for _, word := range row {
		text = append(text, fmt.Sprint(word))
	}
	return strings.TrimSpace(strings.Join(text, " "))
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

// watch a b: the status and the latest end of each task, or nothing if there is no such task.
func (s *stage) watch(w words) []string {
	var args []any
	for _, name := range w.plain {
		args = append(args, long(name))
	}
	reply, err := s.call("watch", args...)
	if err != nil {
		return []string{"error " + err.Error()}
	}
	var answers []string
	for _, row := range reply.([]any)[1:] {
		r := row.([]any)
		answer := strings.TrimSpace(fmt.Sprintf("%s %s", r[0], since(fmt.Sprint(r[1]))))
		answers = append(answers, cmp.Or(answer, "nothing"))
	}
	return answers
}

// events: the stream so far, one line for each event. events level=all, on a line of its own,
// has the namespace record all events.
func (s *stage) events(w words) []string {
	if w.named["level"] != "" {
		return []string{"from now on"}
	}
	messages, err := s.rdb.XRange(s.ctx, s.q.EventsKey(0), "-", "+").Result()
	if err != nil || len(messages) == 0 {
		return []string{"none"}
	}
	var answers []string
	for _, event := range eventlog.Events(messages...) {
		text := fmt.Sprintf("%s %s %s", since(fmt.Sprint(event["at"])), event["kind"], short(fmt.Sprint(event["task_id"])))
		var more []string
		for name, value := range event {
			if v := fmt.Sprint(value); v != "" && !slices.Contains([]string{"at", "kind", "task_id", "task_kind", "queue", "created_at", "stream_id"}, name) {
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
