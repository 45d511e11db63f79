package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// partitioned starts a Server over a namespace of several partitions.
func partitioned(t *testing.T, partitions int) *stage {
	t.Helper()
	rdb, name := redistest.Shared(t).Client(t), redistest.Namespace(t)
	queuetest.Open(t, rdb, queue.Config{Namespace: name, Partitions: partitions})
	return newStageOn(t, rdb, name, Config{})
}

func ids(claims []claimed) []string {
	var all []string
	for _, c := range claims {
		all = append(all, c.ID)
	}
	slices.Sort(all)
	return all
}

func TestAWorkerRunsATask(t *testing.T) {
	s := newStage(t, Config{})
	id := s.want(201, "POST", "tasks", `{"kind":"render","payload":{"page":"a"},"max_retries":1,"backoff_delay":"0s","timeout":"1h","headers":{"x":"y"}}`).text("id")
	h := &hand{s: s, name: "w"}
	first := h.fetch("", "")
	if len(first) != 1 || first[0].ID != id || string(first[0].Payload) != `{"page":"a"}` || first[0].Attempt != 1 {
		t.Fatalf("the claim is %+v", first)
	}
	h.settle(first[0], "PENDING", `"verb":"fail","error":"boom","delay":"0s","code":3`)
	again := h.take("default")
	if again.ID != id || again.Attempt != 2 {
		t.Fatalf("the retry is %+v", again)
	}
	h.settle(again, "COMPLETED", `"verb":"complete","result":[1, 2]`)
	if r := s.want(200, "GET", "tasks/"+id+"/result", ""); !strings.Contains(r.body, `"result":[1,2]`) {
		t.Errorf("the result is %s", r.body)
	}
}

// The answer to a request can be lost after Redis has made the claims. The same request again gets the same claims, and no others,
// although tasks came to other partitions meanwhile.
func TestARepeatOfAFetchGetsTheSameClaims(t *testing.T) {
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			s := partitioned(t, partitions)
			for p := range max(partitions-2, 1) {
				for i := range 2 {
					s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":"k","id":"%d-A%d"}`, p, i))
				}
			}
			fetch := func(seq int) []string {
				return ids(s.want(200, "POST", "workers/w/fetch", fmt.Sprintf(`{"seq":%d,"n":3}`, seq)).claims(t))
			}
			first := fetch(2)
			if want := min(3, 2*max(partitions-2, 1)); len(first) != want {
				t.Fatalf("the first answer is %v, want %d tasks", first, want)
			}
			for p := range partitions {
				for i := range 3 {
					s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":"k","id":"%d-B%d"}`, p, i))
				}
			}
			if again := fetch(2); !slices.Equal(again, first) {
				t.Errorf("the repeat is answered with %v, want %v", again, first)
			}
			if next := fetch(3); len(next) != 3 || slices.ContainsFunc(next, func(id string) bool { return slices.Contains(first, id) }) {
				t.Errorf("the next fetch is answered with %v, want three others than %v", next, first)
			}
		})
	}
}

// A seq that was used gets no other tasks, even when its own have ended, and neither does an older one.
func TestASeqThatWasUsedGetsNoOtherTasks(t *testing.T) {
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			s := partitioned(t, partitions)
			last := fmt.Sprintf("%d-", partitions-1)
			s.want(201, "POST", "tasks", `{"kind":"k","id":"`+last+`A"}`)
			h := &hand{s: s, name: "w", seq: 6}
			h.settle(h.fetch("", "")[0], "COMPLETED", `"verb":"complete"`)
			for p := range partitions {
				s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":"k","id":"%d-B"}`, p))
			}
			for _, seq := range []int{7, 6, 1} {
				for _, query := range []string{"", "?wait=30s"} {
					if a := s.want(200, "POST", "workers/w/fetch"+query, fmt.Sprintf(`{"seq":%d,"n":9}`, seq)); len(a.claims(t)) != 0 || a.json["wait_ms"] != 1000.0 {
						t.Errorf("seq %d%s after 7 is answered with %s", seq, query, a.body)
					}
				}
			}
			if got := h.fetch(`,"n":9`, ""); len(got) != partitions {
				t.Errorf("the next fetch is answered with %v, want %d tasks", got, partitions)
			}
		})
	}
}

// A client makes a request again while the first one is still under way, perhaps by another server. Both get the same claims.
func TestRepeatsAtTheSameTimeGetTheSameClaims(t *testing.T) {
	s := partitioned(t, 4)
	for p := range 4 {
		for i := range 16 {
			s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":"k","id":"%d-A%d"}`, p, i))
		}
	}
	for seq := range 30 {
		const n = 8
		answers := make([]string, n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				answers[i] = fmt.Sprint(ids(s.want(200, "POST", "workers/w/fetch", fmt.Sprintf(`{"seq":%d,"n":2}`, seq+1)).claims(t)))
			})
		}
		all.Wait()
		if answers[0] == "[]" || slices.ContainsFunc(answers, func(a string) bool { return a != answers[0] }) {
			t.Fatalf("seq %d is answered with %q", seq+1, answers)
		}
	}
}

// A request that waits finds that its seq was used meanwhile, and takes no task of another partition.
func TestARequestThatWaitsSeesItsRepeat(t *testing.T) {
	s := partitioned(t, 4)
	other := s.another(Config{})
	waits := make(chan []string, 1)
	go func() {
		waits <- ids(s.want(200, "POST", "workers/w/fetch?wait=60s", `{"seq":1,"queues":["slow"]}`).claims(t))
	}()
	await.Until(t, "the request waits", func() bool { return s.idles("slow") == 1 })
	s.want(201, "POST", "tasks", `{"kind":"k","id":"2-A","queue":"mail"}`)
	repeat := ids(other.want(200, "POST", "workers/w/fetch", `{"seq":1,"queues":["mail"]}`).claims(t))
	s.want(201, "POST", "tasks", `{"kind":"k","id":"3-B","queue":"slow"}`)
	if got := <-waits; fmt.Sprint(got, repeat) != "[2-A] [2-A]" {
		t.Errorf("the request that waits gets %v and its repeat %v, want 2-A twice", got, repeat)
	}
	if got := ids((&hand{s: s, name: "v"}).fetch(`,"queues":["slow"]`, "?wait=30s")); fmt.Sprint(got) != "[3-B]" {
		t.Errorf("another worker gets %v, want 3-B", got)
	}
}

// A report can be repeated, and takes the next tasks. Another report about the same claim is lost.
func TestARepeatOfASettleGetsTheFirstAnswer(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			s := partitioned(t, partitions)
			for range 4 {
				s.enqueue("k", "default")
			}
			h := &hand{s: s, name: "w"}
			got := h.fetch(`,"n":2`, "")
			var parts []string
			for _, c := range got {
				parts = append(parts, fmt.Sprintf(`{"id":%q,"epoch":%d,"verb":"fail","error":"e","retry":false}`, c.ID, c.Epoch))
			}
			body := fmt.Sprintf(`{"call":"C1","outcomes":[%s],"fetch":{"seq":2,"n":2}}`, strings.Join(parts, ","))
			first := s.want(200, "POST", "workers/w/settle", body)
			again := s.want(200, "POST", "workers/w/settle", body)
			list := func(a answered) []string {
				var all []string
				for _, c := range a.json["fetch"].(map[string]any)["claims"].([]any) {
					all = append(all, c.(map[string]any)["id"].(string))
				}
				slices.Sort(all)
				return all
			}
			if a, b := fmt.Sprint(first.json["outcomes"], list(first)), fmt.Sprint(again.json["outcomes"], list(again)); a != b || strings.Count(a, "FAILED") != 2 || len(list(first)) != 2 {
				t.Errorf("first %s, then %s", a, b)
			}
			other := s.want(200, "POST", "workers/w/settle", strings.Replace(body, `"C1"`, `"C2"`, 1))
			if strings.Count(other.body, `"word":"lost"`) != 2 {
				t.Errorf("another report is answered with %s", other.body)
			}
		})
	}
}

// A fetch that waits gets a task when it comes, whatever the partition.
func TestAFetchWaitsForATask(t *testing.T) {
	s := partitioned(t, 3)
	for i := range 6 {
		h := &hand{s: s, name: "w"}
		h.seq = i
		got := make(chan []claimed, 1)
		go func() { got <- h.fetch("", "?wait=60s") }()
		await.Until(t, "the request waits", func() bool { return len(s.server.waiting) == 1 && s.idles("default") == 1 })
		id := s.enqueue("k", "default")
		if c := await.Receive(t, got, "the claim"); len(c) != 1 || c[0].ID != id {
			t.Errorf("the claims are %v, want %s", c, id)
		}
	}
}

// idles returns how many requests wait for a list of queues.
func (s *stage) idles(list string) int {
	i := &s.server.spaces[s.q.Namespace()].idle
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.lists[list]
}

// A client that is gone takes no task: the next worker gets it at once.
func TestAClientThatIsGoneTakesNoTask(t *testing.T) {
	s := newStage(t, Config{})
	ctx, leave := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", s.base+"workers/gone/fetch?wait=60s", strings.NewReader(`{"seq":1,"lease":"1h"}`))
	r.Header.Set("Content-Type", "application/json")
	failed := make(chan error, 1)
	go func() { _, err := s.send(r); failed <- err }()
	await.Until(t, "the request waits", func() bool { return s.idles("default") == 1 })
	leave()
	await.Receive(t, failed, "the end of the request")
	await.Until(t, "the wait ends", func() bool { return len(s.server.waiting) == 0 })
	id := s.enqueue("k", "default")
	if got := (&hand{s: s, name: "other"}).fetch("", ""); len(got) != 1 || got[0].ID != id {
		t.Errorf("the next worker gets %v, want %s", got, id)
	}
}

// Claims whose answer was lost are given back by a heartbeat that knows their fetch and does not name them.
func TestClaimsThatNobodyReceivedAreGivenBack(t *testing.T) {
	s := partitioned(t, 2)
	for range 4 {
		s.enqueue("k", "default")
	}
	h := &hand{s: s, name: "w"}
	lost := h.fetch(`,"n":3`, "")
	s.want(200, "POST", "workers/w/heartbeat", fmt.Sprintf(`{"known":1,"claims":[{"id":%q,"epoch":%d,"progress":"half"}]}`, lost[0].ID, lost[0].Epoch))
	if got := (&hand{s: s, name: "other"}).fetch(`,"n":10`, ""); len(got) != 3 {
		t.Errorf("another worker gets %v, want three tasks", got)
	}
	if r := s.want(200, "GET", "tasks/"+lost[0].ID, ""); !strings.Contains(r.body, `"progress":"half"`) || r.text("status") != "RUNNING" {
		t.Errorf("the task that is held is %s", r.body)
	}
}

// A worker whose process was killed sends nothing more: when its lease ends, others get its tasks.
func TestTheTasksOfAWorkerThatVanishesAreGivenBack(t *testing.T) {
	s := newStage(t, Config{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reaper.New(s.q, reaper.Config{}).Run(ctx) }()
	defer func() { stop(); <-ended }()
	id := s.enqueue("k", "default")
	if got := (&hand{s: s, name: "dead"}).fetch(`,"lease_ms":300`, ""); len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	if c := (&hand{s: s, name: "heir"}).take("default"); c.ID != id || c.Epoch != 2 {
		t.Errorf("the heir gets %+v, want %s with the epoch 2", c, id)
	}
	late := s.want(200, "POST", "workers/dead/settle", fmt.Sprintf(`{"call":"c","outcomes":[{"id":%q,"epoch":1,"verb":"complete"}]}`, id))
	if !strings.Contains(late.body, `"word":"lost"`) {
		t.Errorf("a late report is answered with %s", late.body)
	}
}

// A heartbeat says which attempts must stop and why, and that the worker must stop.
func TestAHeartbeatTellsWhatMustStop(t *testing.T) {
	s := partitioned(t, 2)
	h := &hand{s: s, name: "w"}
	h.fetch("", "")
	id := s.enqueue("k", "default")
	c := h.take("default")
	if _, err := s.q.Cancel(t.Context(), id, "no longer needed"); err != nil {
		t.Fatal(err)
	}
	beat := fmt.Sprintf(`{"claims":[{"id":%q,"epoch":%d}]}`, id, c.Epoch)
	if a := s.want(200, "POST", "workers/w/heartbeat", beat); a.body != fmt.Sprintf(`{"stops":[{"id":%q,"epoch":1,"reason":"cancelled"}],"stop":false}`+"\n", id) {
		t.Errorf("the heartbeat is answered with %s", a.body)
	}
	s.want(200, "POST", "workers/w/describe", `{"state":"running","about":{"name":"painter","kinds":["k"]}}`)
	if err := s.q.StopWorker(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	if a := s.want(200, "POST", "workers/w/heartbeat", `{}`); a.json["stop"] != true {
		t.Errorf("after StopWorker a heartbeat is answered with %s", a.body)
	}
	s.enqueue("k", "default")
	if a := s.want(200, "POST", "workers/w/fetch?wait=30s", `{"seq":9}`); a.json["stop"] != true || len(a.claims(t)) != 0 {
		t.Errorf("after StopWorker a fetch is answered with %s", a.body)
	}
	s.want(200, "POST", "workers/w/heartbeat", `{"lease":"0s"}`)
	s.want(404, "POST", "workers/w/describe", `{"state":"running"}`)
}

func TestWrongRequestsOfWorkersChangeNothing(t *testing.T) {
	s := partitioned(t, 2)
	s.enqueue("k", "default")
	before := redistest.Digest(t, s.q.Client(), s.q.Namespace())
	long := strings.Repeat("x", 700)
	for _, row := range []struct{ path, body, field string }{
		{"fetch", `{}`, "seq"},
		{"fetch", `{"seq":0}`, "seq"},
		{"fetch", `{"seq":1.5}`, "seq"},
		{"fetch", `{"seq":9007199254740993}`, "seq"},
		{"fetch", `{"seq":1,"n":-1}`, "n"},
		{"fetch", `{"seq":1,"n":501}`, "n"},
		{"fetch", `{"seq":1,"lease":"0s"}`, "lease"},
		{"fetch", `{"seq":1,"lease":"25h"}`, "lease"},
		{"fetch", `{"seq":1,"lease":"30"}`, "lease"},
		{"fetch", `{"seq":1,"lease":"30s","lease_ms":30}`, "lease"},
		{"fetch", `{"seq":1,"queues":[]}`, "queues"},
		{"fetch", `{"seq":1,"queues":["a b"]}`, "queues[0]"},
		{"fetch", `{"seq":1,"queues":["a","b=x"]}`, "queues[1]"},
		{"fetch", `{"seq":1,"queues":"a"}`, "queues"},
		{"fetch", `{"seq":1,"slots":3}`, "slots"},
		{"fetch?wait=2h", `{"seq":1}`, "wait"},
		{"heartbeat", `{"known":-1}`, "known"},
		{"heartbeat", `{"claims":[{"id":"0-A"}]}`, "claims[0].epoch"},
		{"heartbeat", `{"claims":[{"id":"0-A","epoch":0}]}`, "claims[0].epoch"},
		{"heartbeat", `{"claims":[{"id":"7-A","epoch":1}]}`, "claims[0].id"},
		{"heartbeat", `{"claims":[{"id":"x","epoch":1}]}`, "claims[0].id"},
		{"heartbeat", `{"claims":[1]}`, "claims[0]"},
		{"heartbeat", `{"claims":{"id":"0-A"}}`, "claims"},
		{"settle", `{"outcomes":[]}`, "call"},
		{"settle", `{"call":"c","outcomes":[]}`, "outcomes"},
		{"settle", `{"call":"a b","outcomes":[{"id":"0-A","epoch":1,"verb":"complete"}]}`, "call"},
		{"settle", `{"call":"c","outcomes":[{"id":"0-A","epoch":1,"verb":"done"}]}`, "outcomes[0].verb"},
		{"settle", `{"call":"c","outcomes":[{"id":"0-A","epoch":1,"verb":"fail"}]}`, "outcomes[0].error"},
		{"settle", `{"call":"c","outcomes":[{"id":"0-A","epoch":1,"verb":"complete","error":"e"}]}`, "outcomes[0].error"},
		{"settle", `{"call":"c","outcomes":[{"id":"0-A","epoch":1,"verb":"complete","result":1,"result_base64":"AA=="}]}`, "outcomes[0].result"},
		{"settle", `{"call":"c","outcomes":[{"id":"0-A","epoch":1,"verb":"complete","result_base64":"%"}]}`, "outcomes[0].result_base64"},
		{"settle", `{"call":"c","outcomes":[{"id":"0-A","epoch":1,"verb":"fail","error":"e","retry":true,"class":"failed"}]}`, "outcomes[0].retry"},
		{"settle", `{"call":"c","outcomes":[{"id":"0-A","epoch":1,"verb":"fail","error":"e","class":"bad"}]}`, "class"},
		{"settle", `{"call":"c","outcomes":[{"id":"9-A","epoch":1,"verb":"complete"}]}`, "outcomes[0].id"},
		{"settle", `{"call":"c","outcomes":[{"id":"0-A","epoch":1,"verb":"complete"}],"fetch":{"n":1}}`, "fetch.seq"},
		{"describe", `{"state":"asleep"}`, "state"},
		{"describe", `{"state":"running","about":[]}`, "about"},
		{"describe", `{"state":"running","about":{"queues":["mail"]}}`, "about.queues"},
		{"describe", `{"state":"running","about":{"queues":{"mail":"much"}}}`, "about.queues"},
		{"describe", `{"state":"running","about":{"colour":"red"}}`, "about.colour"},
		{"describe", `{"state":"running","about":{"name":"` + strings.Repeat("y", 4096) + `"}}`, "about"},
	} {
		if a := s.want(400, "POST", "workers/w/"+row.path, row.body); a.field() != row.field || a.word() != "invalid" || a.sentence() == "" {
			t.Errorf("%s %.100s is answered with %s, want the field %s", row.path, row.body, a.body, row.field)
		}
	}
	for _, name := range []string{"a%20b", "-", long} {
		if a := s.want(400, "POST", "workers/"+name+"/fetch", `{"seq":1}`); a.field() != "worker" {
			t.Errorf("the worker %.20s is answered with %s", name, a.body)
		}
	}
	if after := redistest.Digest(t, s.q.Client(), s.q.Namespace()); after != before {
		t.Error("requests that were refused have changed something")
	}
}
