package httpapi

import (
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/queue"
)

// Nothing that a user has put into a task or result is in any answer of a server that hides payloads, nor if a request wants that.
func TestPayloadsAreHiddenEverywhere(t *testing.T) {
	const secret = "s3cr3t-of-a-user"
	for _, hide := range []bool{true, false} {
		s := newStage(t, Config{HidePayloads: hide})
		query := map[bool]string{true: "?", false: "?hide_payloads=true&"}[hide]
		id := s.want(201, "POST", "tasks", `{"kind":"p","role":"promise","payload":{"key":"`+secret+`"}}`).text("id")
		s.want(200, "POST", "tasks/"+id+"/resolve", `{"result":"`+secret+`"}`)
		if _, err := s.q.Result(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		live := s.want(201, "POST", "tasks", `{"kind":"k","queue":"mail","payload":["`+secret+`"]}`).text("id")
		seen := 0
		for _, path := range []string{"tasks/" + id, "tasks/" + live, "tasks/" + id + "/result", "tasks/" + live + "/explain", "tasks/" + id + "/explain", "events"} {
			if a := s.want(200, "GET", path+query, ""); strings.Contains(a.body, secret) {
				t.Errorf("GET %s%s shows the payload: %s", path, query, a.body)
			}
			if a := s.want(200, "GET", path, ""); strings.Contains(a.body, secret) {
				seen++
				if hide {
					t.Errorf("GET %s shows the payload: %s", path, a.body)
				}
			}
		}
		if a := s.want(200, "GET", "tasks"+query+"bodies=true", ""); strings.Contains(a.body, secret) {
			t.Errorf("the list shows a payload: %s", a.body)
		}
		if !hide && seen < 2 {
			t.Errorf("only %d answers show a payload when they may", seen)
		}
	}
}

// What repeats a settle is the call, and not the process that was asked first: a server that starts after a crash gives the same answer.
func TestASettleIsRepeatedAtAnotherServer(t *testing.T) {
	for _, partitions := range []int{1, 4} {
		first := newStageOf(t, queue.Config{Partitions: partitions}, Config{})
		first.enqueue("k", "mail")
		c := (&hand{s: first, name: "w"}).take("mail")
		second := first.another(Config{})
		for _, s := range []*stage{first, second, second} {
			(&hand{s: s, name: "w", seq: 1}).settle(c, "COMPLETED", `"verb":"complete","result":1`)
			if s == first {
				first.web.Close()
			}
		}
		if a := second.want(200, "GET", "tasks/"+c.ID+"/result", ""); !strings.Contains(a.body, `"result":1`) {
			t.Errorf("the result is %s", a.body)
		}
	}
}
