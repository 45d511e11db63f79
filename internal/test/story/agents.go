package story

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/queue"
)

// suspend task=a epoch=1 worker=w1 entry=1 mode=all make=1,2 members=1,2,3 calls the
// script itself. members are the last parts of children's ids: 2:5s has a patience,
// 2::oobbb has a mask, 1-150 is a range of numbers, and !0-x is a whole id. make lists the
// children to create, and the arguments that begin with child_ are their fields. limit, from,
// on_timeout, on_pending, on_losers, mask, need, most, part, of and digest are passed on as
// they are. state=x children=2 entries=1 is a checkpoint, note=1:x an entry.
func (s *stage) suspend(w words) []string {
	agent := long(w.named["task"])
	call := w.named["call"]
	if call == "" {
		call = queue.NewCall()
	}
	args := []any{agent, w.named["epoch"], worker(w), call}
	fields := []any{}
	for _, name := range []string{"entry", "mode", "need", "digest", "label", "limit", "from", "on_timeout", "on_pending", "on_losers", "mask", "most", "part", "of"} {
		value, ok := w.named[name]
		switch {
		case name == "limit" && ok:
			fields = append(fields, "limit_ms", milliseconds(value))
		case ok:
			fields = append(fields, name, value)
		case name == "digest":
			fields = append(fields, name, w.named["mode"]+":"+strings.ReplaceAll(w.named["members"], ",", "+"))
		case name == "label":
			fields = append(fields, name, w.named["mode"]+" of "+w.named["members"])
		}
	}
	args = append(append(args, len(fields)/2), fields...)
	members := ranges(w.named["members"])
	args = append(args, len(members))
	for _, m := range members {
		parts := append(strings.SplitN(m, ":", 3), "", "")
		id := agent + "." + parts[0]
		if strings.HasPrefix(m, "!") {
			id = parts[0][1:]
		}
		args = append(args, id, milliseconds(parts[1]), parts[2])
	}
	args = s.noted(args, w)
	var children [][]any
	for _, name := range ranges(w.named["make"]) {
		child := []any{"id", agent + "." + name}
		if _, ok := w.named["child_kind"]; !ok {
			child = append(child, "kind", "k")
		}
		for name, value := range w.named {
			if field, ok := strings.CutPrefix(name, "child_"); ok {
				if field == "timeout" || field == "attempt_timeout" || field == "delay" || field == "cancel_grace" {
					field, value = field+"_ms", milliseconds(value)
				}
				child = append(child, field, value)
			}
		}
		children = append(children, child)
	}
	args = append(args, wire.Tasks(children...)...)
	return s.agent(s.call("suspend", args...))
}

func worker(w words) string {
	if name := w.named["worker"]; name != "" {
		return name
	}
	return "w1"
}

func split2(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// ranges splits a list, and expands 1-150 to the numbers from 1 to 150.
func ranges(list string) []string {
	var all []string
	for _, word := range split2(list) {
		number, rest, _ := strings.Cut(word, ":")
		from, to, ok := strings.Cut(number, "-")
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if !ok || err1 != nil || err2 != nil {
			all = append(all, word)
			continue
		}
		for n := first; n <= last; n++ {
			all = append(all, strings.TrimSuffix(strconv.Itoa(n)+":"+rest, ":"))
		}
	}
	return all
}

// inRanges joins a list, and writes more than five consecutive numbers as a range.
func inRanges(list []string) string {
	var words []string
	for i := 0; i < len(list); {
		first, err := strconv.Atoi(list[i])
		n := 1
		for err == nil && i+n < len(list) && list[i+n] == strconv.Itoa(first+n) {
			n++
		}
		if n > 5 {
			words = append(words, list[i]+"-"+list[i+n-1])
		} else {
			words = append(words, list[i:i+n]...)
		}
		i += n
	}
	return strings.Join(words, ",")
}

// noted appends the checkpoint and the entries of a command.
func (s *stage) noted(args []any, w words) []any {
	if state, ok := w.named["state"]; ok {
		args = append(args, 3, "state", state, "children", w.named["children"], "entries", w.named["entries"])
	} else {
		args = append(args, 0)
	}
	entries := split2(w.named["note"])
	args = append(args, len(entries))
	for _, e := range entries {
		number, text, _ := strings.Cut(e, ":")
		args = append(args, number, text)
	}
	return args
}

// agent formats the answer to an agent on one line, without the time of the server.
func (s *stage) agent(reply any, err error) []string {
	if err != nil {
		return []string{refusal(err)}
	}
	var text []string
	for _, word := range reply.([]any)[1:] {
		text = append(text, since(journal(short(fmt.Sprint(word)))))
	}
	return []string{strings.TrimSpace(strings.Join(text, " "))}
}

// journal formats a journal entry on one line.
func journal(entry string) string {
	o, ok := queue.ReadWaitOutcome(entry)
	if !ok {
		return strings.ReplaceAll(entry, "\n", "|")
	}
	text := fmt.Sprintf("%s at=%s members=%s", o.Reason, since(fmt.Sprint(o.At.UnixMilli())), inRanges(o.Members))
	if o.Winner != "" {
		text += " winner=" + o.Winner
	}
	return text + " settled=" + inRanges(o.Settled)
}

// remember task=a epoch=1 worker=w1 note=1:x state=y children=0 entries=0
func (s *stage) remember(w words) []string {
	args := s.noted([]any{long(w.named["task"]), w.named["epoch"], worker(w)}, w)
	return s.word(s.call("remember", args...))
}

// recall task=a most=100 1 2: the journal, then the status, result and error of the children.
func (s *stage) recall(w words) []string {
	args := []any{long(w.named["task"]), w.named["most"]}
	for _, name := range w.plain {
		args = append(args, name)
	}
	reply, err := s.call("recall", args...)
	if err != nil {
		return []string{refusal(err)}
	}
	rows := reply.([]any)[1:]
	answers := entries(rows[0].([]any))
	for _, row := range rows[1:] {
		child := row.([]any)
		text := fmt.Sprintf("child %v", child[0])
		fields := map[string]any{}
		for i := 2; i+1 < len(child); i += 2 {
			fields[fmt.Sprint(child[i])] = child[i+1]
		}
		for _, name := range []string{"status", "result", "error"} {
			if value, ok := fields[name]; ok {
				text += fmt.Sprintf(" %s=%v", name, value)
			}
		}
		answers = append(answers, text)
	}
	if len(answers) == 0 {
		return []string{"nothing"}
	}
	return answers
}

// entries formats a journal, one line each: first the fields by name, then the entries by number.
func entries(flat []any) []string {
	var lines []string
	numbers := map[string]int{}
	for i := 0; i < len(flat); i += 2 {
		name := fmt.Sprint(flat[i])
		if name == "bytes" {
			continue
		}
		entry := name + " " + since(journal(fmt.Sprint(flat[i+1])))
		numbers[entry], _ = strconv.Atoi(name)
		lines = append(lines, entry)
	}
	slices.SortFunc(lines, func(a, b string) int {
		return cmp.Or(numbers[a]-numbers[b], strings.Compare(a, b))
	})
	return lines
}

// signal task=a name=go note=x call=C
func (s *stage) signal(w words) []string {
	call := w.named["call"]
	if call == "" {
		call = queue.NewCall()
	}
	return s.word(s.call("signal", call, long(w.named["task"]), w.named["name"], w.named["note"]))
}
