// Package story runs tests that read as documentation. A story is a file of commands, with
// the expected answers after each block, and the whole state where it matters.
//
//	# A worker whose lease ended may still settle, until another worker takes the task.
//	enqueue task=a
//	fetch worker=w1
//	----
//	OK a
//	a epoch=1
//
// A block is commands, ----, and one line of answer for each command (state and events
// give several). An empty line separates blocks. Time is a command, so nothing sleeps.
// Instants are printed as the time since the story began. Tasks have short names: task=a
// is 0-a, and its child is a.1.
//
// go test -update writes the actual answers into the files: read the difference before
// you commit it.
package story

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

var update = flag.Bool("update", false, "write the actual answers into the stories")

// Run runs the stories of a folder on a server, each in a namespace of its own. The names
// of the namespaces begin with prefix. It leaves out a story for whose name plays returns false.
func Run(t *testing.T, rdb redis.UniversalClient, prefix, folder string, plays func(name string) bool) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in %s (%v)", folder, err)
	}
	library := testclock.Library(t, rdb)
	for i, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !plays(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			level := "terminal"
			if strings.Contains(string(text), "\nevents level=all") {
				level = "all"
			}
			got, s := play(t, rdb, library, fmt.Sprintf("%s%d", prefix, i), level, string(text))
			if !strings.Contains(string(text), "\nredis ") { // such a story does damage
				s.audit(t)
			}
			if got == string(text) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s\n%s", file, difference(string(text), got))
		})
	}
}

// play runs a story with a level of events. It returns its text with the actual answers.
func play(t *testing.T, rdb redis.UniversalClient, library *lua.Library, namespace, level, text string) (string, *stage) {
	ctx := context.Background()
	q, err := queue.Open(ctx, rdb, queue.Config{Namespace: namespace, Library: library, Events: queue.EventLevel(level), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{ctx: ctx, q: q, rdb: rdb, library: library, root: q.Root(0), now: testclock.Start}
	q.Engine().OnReport(s.note)
	testclock.Set(t, rdb, s.root, s.now)

	var out strings.Builder
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		var answers []string
		scanner := bufio.NewScanner(strings.NewReader(block))
		for scanner.Scan() && scanner.Text() != "----" {
			line := scanner.Text()
			out.WriteString(line + "\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			answers = append(answers, s.do(line)...)
		}
		if len(answers) > 0 {
			out.WriteString("----\n" + strings.Join(answers, "\n") + "\n")
		}
	}
	return out.String(), s
}

// audit checks that the records and indexes of the namespace agree at the end.
func (s *stage) audit(t *testing.T) {
	s.rdb.Del(s.ctx, s.root+":clock") // of the tests
	snapshot, err := audit.Read(s.ctx, s.q, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range snapshot.Check(0) {
		t.Errorf("the audit finds at the end: %v", finding)
	}
}

// difference shows the first lines that differ, and the lines before them.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	from, to := max(i-6, 0), func(s []string) int { return min(i+6, len(s)) }
	return fmt.Sprintf("from line %d on:\n--- expected\n%s\n--- actual\n%s",
		i+1, strings.Join(w[from:to(w)], "\n"), strings.Join(g[from:to(g)], "\n"))
}

// words is a command: its verb, its name=value arguments, and its arguments without =.
// A value may be quoted.
type words struct {
	verb  string
	named map[string]string
	plain []string
}

func parse(line string) words {
	w := words{named: map[string]string{}}
	for i, field := range split(line) {
		name, value, ok := strings.Cut(field, "=")
		switch {
		case i == 0:
			w.verb = field
		case ok:
			w.named[name] = value
		default:
			w.plain = append(w.plain, field)
		}
	}
	return w
}

// split is like strings.Fields, and keeps "quoted words" together. \" is a quotation mark.
func split(line string) []string {
	var fields []string
	var field strings.Builder
	quoted, any := false, false
	for _, r := range strings.ReplaceAll(line, `\"`, "\x00") {
		switch {
		case r == 0:
			field.WriteByte('"')
			any = true
		case r == '"':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any {
				fields = append(fields, field.String())
			}
			field.Reset()
			any = false
		default:
			field.WriteRune(r)
			any = true
		}
	}
	if any {
		fields = append(fields, field.String())
	}
	return fields
}

func (w words) duration(name string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(w.named[name]); err == nil {
		return d
	}
	return otherwise
}
