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

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// stage runs the commands of a story on a namespace.
type stage struct {
	ctx     context.Context
	q       *queue.Queue
	rdb     redis.UniversalClient
	library *lua.Library
	root    string
	now     time.Time
	seq     int64
	reports engine.Report // since the last command `reports`
}

var verbs = map[string]func(*stage, words) []string{
	"enqueue":   (*stage).enqueue,
	"fetch":     (*stage).fetch,
	"complete":  (*stage).settle,
	"fail":      (*stage).settle,
	"release":   (*stage).settle,
	"heartbeat": (*stage).heartbeat,
	"cancel":    (*stage).cancel,
	"delete":    (*stage).delete,
	"list":      (*stage).list,
	"resolve":   (*stage).resolve,
	"reject":    (*stage).resolve,
	"control":   (*stage).control,
	"drain":     (*stage).drain,
	"define":    (*stage).define,
	"configure": (*stage).configure,
	"describe":  (*stage).describe,
	"suspend":   (*stage).suspend,
	"remember":  (*stage).remember,
	"recall":    (*stage).recall,
	"explain":   (*stage).explain,
	"signal":    (*stage).signal,
	"sweep":     (*stage).sweep,
	"advance":   (*stage).advance,
	"get":       (*stage).get,
	"field":     (*stage).field,
	"watch":     (*stage).watch,
	"open":      (*stage).open,
	"redis":     (*stage).redis,
	"reports":   (*stage).reported,
	"state":     (*stage).state,
	"events":    (*stage).events,
	"figures":   (*stage).figures,
}

func (s *stage) do(line string) []string {
	w := parse(line)
	if w.verb == "repeat" {
		return s.repeat(line)
	}
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

// repeat 3 enqueue task=a# runs the command three times, with 1, 2 and 3 in place of #.
// Equal answers are printed once, with their number; of other answers the first and the last.
func (s *stage) repeat(line string) []string {
	var often int
	if _, err := fmt.Sscanf(line, "repeat %d ", &often); err != nil {
		return []string{err.Error()}
	}
	_, command, _ := strings.Cut(strings.TrimPrefix(line, "repeat "), " ")
	var answers []string
	for n := 1; n <= often; n++ {
		answers = append(answers, s.do(strings.ReplaceAll(command, "#", strconv.Itoa(n)))...)
	}
	count, last := len(answers), answers[len(answers)-1]
	if len(slices.Compact(answers)) == 1 {
		return []string{fmt.Sprintf("%d times %s", count, last)}
	}
	return []string{fmt.Sprintf("%d: %s … %s", count, answers[0], last)}
}

// position matches the place in the Lua at which an error was raised. The embedded server
// reports it where Redis does not, and it moves with every edit.
var position = regexp.MustCompile(`[^\s=]*:\d+: WRONGTYPE`)

// long returns the id of a name.
func long(name string) string {
	if name == "" || strings.HasPrefix(name, "!") {
		return strings.TrimPrefix(name, "!") // a whole id
	}
	return "0-" + name
}

// short returns the name of an id.
func short(id string) string { return strings.TrimPrefix(id, "0-") }

// since formats an instant as the time since the story began. Other texts stay as they are.
func since(ms string) string {
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || n < testclock.Start.UnixMilli()-1e10 {
		return ms
	}
	return time.UnixMilli(n).Sub(testclock.Start).String()
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

// field a deadline_at until: the values of these fields in the record, - for one that is not there.
func (s *stage) field(w words) []string {
	r, err := s.q.Get(s.ctx, long(w.plain[0]))
	if err != nil {
		return []string{refusal(err)}
	}
	var values []string
	for _, name := range w.plain[1:] {
		value, ok := r.Fields[name]
		if !ok {
			value = "-"
		}
		values = append(values, value)
	}
	return []string{strings.Join(values, " ")}
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

// redis SET {root}:deadlines x: another program changes our keys. \n is a newline, {eq} an equals sign.
func (s *stage) redis(w words) []string {
	args := make([]any, len(w.plain))
	for i, word := range w.plain {
		args[i] = strings.NewReplacer("{root}", s.root, `\n`, "\n", "{eq}", "=").Replace(word)
	}
	reply, err := s.rdb.Do(s.ctx, args...).Result()
	if err != nil {
		return []string{"error " + err.Error()}
	}
	return []string{fmt.Sprint(reply)}
}
