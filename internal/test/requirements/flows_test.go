package requirements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// TestFlows plays the definitions in testdata/flows, each with its script. A file begins with the rows that it is for, and says what it
// shows. Below "-- flow" is a definition, and below "-- script" is what happens, a line each:
//
//	kind K: STEP; STEP; …     how the attempts of tasks of the kind end; the last step is for all further ones. A step is a time, and then
//	                          ok [JSON], error TEXT, failed TEXT, code N TEXT, or hang
//	task N: STEP; …           the same for the task of a node, such as work__b0
//	run ID [PAYLOAD]          begins a run; the lines below are about it. Times count from here
//	pass D                    moves the clock
//	resume NODE [JSON]        resolves the wait of a node
//	signal NAME [JSON]        sends a signal to the run
//	cancel                    cancels the run
//	end PHASE D [TEXT]        moves the clock until the run has ended: in this phase, after D, with these outputs or this error
//	node N PHASE [xA] [D]     the task of a node has this phase, has made A attempts, and ended at D
//	never N                   a node has never begun
//	event KIND COUNT JSON     there are so many events of a kind with these fields
//	put FAULT                 the definition is refused with a fault that has this text
func TestFlows(t *testing.T) {
	files, err := filepath.Glob("testdata/flows/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no definitions: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) { newScript(t, rdb).follow(string(text)) })
		})
	}
}

// script is a play of flows.
type script struct {
	*play
	faults error // of the newest definition
	steps  map[string][]string
	ran    map[string]int // attempts, by the id of a task
	run    string
	begun  time.Time
}

func newScript(t *testing.T, rdb redis.UniversalClient) *script {
	s := &script{play: newPlayOn(t, rdb), steps: map[string][]string{}, ran: map[string]int{}}
	flow.Register(s.w)
	s.w.HandleRaw("leaf.*", s.leaf)
	return s
}

func (s *script) follow(text string) {
	s.Helper()
	_, rest, _ := strings.Cut(text, "-- ")
	for part := range strings.SplitSeq(rest, "\n-- ") {
		head, body, _ := strings.Cut(part, "\n")
		switch head {
		case "flow":
			_, s.faults = flow.Put(s.Context(), s.q, []byte(body))
		case "script":
			for line := range strings.Lines(body) {
				if line = strings.TrimSpace(line); line != "" {
					s.line(line)
				}
			}
		default:
			s.Fatalf("there is no part %q", head)
		}
	}
	if s.run == "" && s.faults == nil {
		s.Fatal("nothing runs")
	}
}

func (s *script) line(line string) {
	s.Helper()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "kind", "task":
		kind, steps, _ := strings.Cut(rest, ": ")
		s.steps[kind] = strings.Split(steps, "; ")
	case "run":
		id, payload, _ := strings.Cut(rest, " ")
		s.begin(id, payload)
	case "pass":
		s.pass(s.span(rest))
	case "resume":
		node, value, _ := strings.Cut(rest, " ")
		if _, err := s.q.Resolve(s.Context(), s.run+"."+node, []byte(value)); err != nil {
			s.Fatalf("%s: %v", line, err)
		}
	case "signal":
		name, value, _ := strings.Cut(rest, " ")
		if _, err := agentwait.SendSignal(s.Context(), s.q, s.run, name, json.RawMessage(value)); err != nil {
			s.Fatalf("%s: %v", line, err)
		}
	case "cancel":
		if _, err := s.q.Cancel(s.Context(), s.run, "stop"); err != nil {
			s.Fatal(err)
		}
	case "end":
		s.ends(rest)
	case "node":
		s.node(strings.Fields(rest))
	case "never":
		if r, err := s.q.Get(s.Context(), s.run+"."+rest); !errors.Is(err, refusal.ErrNotFound) {
			s.Errorf("%s: it has begun: %+v, %v", line, r, err)
		}
	case "event":
		s.events(rest)
	case "put":
		if s.faults == nil || !strings.Contains(s.faults.Error(), rest) {
			s.Errorf("the definition is refused with %v, want %q", s.faults, rest)
		}
	default:
		s.Fatalf("there is no line %q", line)
	}
}

func (s *script) span(text string) time.Duration {
	s.Helper()
	d, err := duration.Parse(text)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *script) begin(id, payload string) {
	s.Helper()
	if s.faults != nil {
		s.Fatalf("the definition is refused: %v", s.faults)
	}
	if s.stop == nil {
		s.start()
	}
	s.run, s.begun = s.enqueue(queue.Task{Kind: "flow." + id, Queue: "agents", Payload: []byte(payload)}), s.now
}

// leaf runs a task of the user's workers.
func (s *script) leaf(ctx context.Context, payload []byte) ([]byte, error) {
	info := worker.Info(ctx)
	s.mu.Lock()
	_, name, _ := strings.Cut(info.ID, ".")
	steps := s.steps[name]
	if steps == nil {
		steps = s.steps[strings.TrimPrefix(info.Kind, "leaf.")]
	}
	n := s.ran[info.ID]
	s.ran[info.ID]++
	s.mu.Unlock()
	if len(steps) == 0 {
		return payload, nil
	}
	words := strings.SplitN(steps[min(n, len(steps)-1)], " ", 3)
	d, err := duration.Parse(words[0])
	if err != nil {
		return nil, worker.Discard(err)
	}
	text := ""
	if len(words) > 2 {
		text = words[2]
	}
	if words[1] == "hang" {
		d = never
	}
	if err := s.sleep(ctx, d); err != nil {
		return nil, err
	}
	switch words[1] {
	case "ok":
		return []byte(text), nil
	case "failed":
		return nil, worker.Discard(errors.New(text))
	case "code":
		code, text, _ := strings.Cut(text, " ")
		n, _ := strconv.Atoi(code)
		return []byte(`{"code":"` + code + `"}`), worker.Fail(n, errors.New(text))
	}
	return nil, errors.New(text)
}

// ends checks how the run ends.
func (s *script) ends(want string) {
	s.Helper()
	words := strings.SplitN(want, " ", 3)
	r := s.end(s.run)
	took := duration.Duration(r.CompletedAt.Sub(s.begun)).String()
	if r.Phase() != words[0] || took != words[1] {
		s.Errorf("the run is %s after %s with %s%s, want %s", r.Phase(), took, r.Result, r.Error, want)
	}
	if len(words) < 3 {
		return
	}
	var got struct {
		Outputs struct{ Parameters json.RawMessage }
	}
	if r.Error != words[2] && (json.Unmarshal(r.Result, &got) != nil || !sameJSON(string(got.Outputs.Parameters), words[2])) {
		s.Errorf("the run has %s%s, want %s", r.Result, r.Error, words[2])
	}
}

// node checks the task of a node.
func (s *script) node(words []string) {
	s.Helper()
	id := s.run + "." + words[0]
	r := s.record(id)
	s.mu.Lock()
	ran := s.ran[id]
	s.mu.Unlock()
	got := []string{words[0], r.Phase()}
	for _, want := range words[2:] {
		if want[0] == 'x' {
			got = append(got, "x"+strconv.Itoa(ran))
		} else {
			got = append(got, duration.Duration(r.CompletedAt.Sub(s.begun)).String())
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(words) {
		s.Errorf("the node is %v, want %v (%s%s)", got, words, r.Result, r.Error)
	}
}

// events checks how many events of a kind have some fields.
func (s *script) events(rest string) {
	s.Helper()
	words := strings.SplitN(rest, " ", 3)
	var want map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(words[2], "RUN", s.run)), &want); err != nil {
		s.Fatal(err)
	}
	n, all := 0, s.emitted(words[0])
	for _, e := range all {
		fits := true
		for name, value := range want {
			fits = fits && fmt.Sprint(e[name]) == fmt.Sprint(value)
		}
		if fits {
			n++
		}
	}
	if strconv.Itoa(n) != words[1] {
		s.Errorf("%d events of kind %s have %v, want %s; there are %v", n, words[0], want, words[1], all)
	}
}
