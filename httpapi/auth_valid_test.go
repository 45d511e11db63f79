package httpapi

import (
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// A client whose line is removed, or has another password or other roles, has no open stream and no request that waits any more. Those
// of other clients stay.
func TestARemovedClientHearsNothingMore(t *testing.T) {
	hash := func(secret string) string {
		text, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const adasToken, bobsToken = "token-of-ada-lovelace work ada\n", "token-of-bob-the-second read bob\n"
	adasPassword, bobsPassword := "ada:"+hash("secret")+" work\n", "bob:"+hash("secret")+" read\n"
	password := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(name, "secret") }
	}
	for _, row := range []struct {
		what               string
		open               func(string, *slog.Logger) (Authenticator, error)
		adas, after, stays string // lines of the file
		ada, bob           func(*http.Request)
	}{
		{"a removed token", Tokens, adasToken, "", bobsToken, as("ada-lovelace"), as("bob-the-second")},
		{"other roles", Tokens, adasToken, "token-of-ada-lovelace produce ada\n", bobsToken, as("ada-lovelace"), as("bob-the-second")},
		{"a removed password", Basic, adasPassword, "", bobsPassword, password("ada"), password("bob")},
		{"another password", Basic, adasPassword, "ada:" + hash("another") + " work\n", bobsPassword, password("ada"), password("bob")},
	} {
		path := tokenFile(t, row.adas+row.stays)
		auth, err := row.open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s := newStageOf(t, queue.Config{Events: "all"}, Config{Auth: []Authenticator{auth}})
		id := queuetest.Enqueue(t, s.q, queue.Task{Queue: "other"}).ID
		adas, stop := s.open("after=now", "", row.ada)
		defer stop()
		bobs, stop := s.open("after=now", "", row.bob)
		defer stop()
		answers, bobsAnswer := make(chan answered, 3), make(chan answered, 1)
		result := "tasks/" + id + "/result?wait=60s"
		go func() { answers <- s.do("GET", result, "", row.ada) }()
		go func() { answers <- s.do("GET", "events?after=now&wait=60s", "", row.ada) }()
		go func() { answers <- s.do("POST", "workers/w/fetch?wait=60s", `{"seq":1,"queues":["mail"]}`, row.ada) }()
		go func() { bobsAnswer <- s.do("GET", result, "", row.bob) }()
		await.Until(t, "all wait", func() bool { return len(s.server.waiting) == 6 })
		if err := os.WriteFile(path, []byte(row.after+row.stays), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if a := await.Receive(t, answers, "an answer"); a.status != 401 || a.word() != "unauthorized" || !strings.Contains(a.sentence(), "no longer knows") {
				t.Errorf("%s: a request that waits is answered with %d %s", row.what, a.status, a.body)
			}
		}
		if e := adas(); e.event != "end" || !strings.Contains(e.data, `"word":"unauthorized"`) || !strings.Contains(e.data, "no longer knows") {
			t.Errorf("%s: the stream ends with %+v", row.what, e)
		}
		mail := queuetest.Enqueue(t, s.q, queue.Task{Queue: "mail"}).ID
		if e := bobs(); e.event != "task_enqueued" || !strings.Contains(e.data, mail) {
			t.Errorf("%s: the stream of another client has %+v", row.what, e)
		}
		if a := s.want(200, "GET", "queues/mail", "", row.bob); a.json["ready"] != 1.0 {
			t.Errorf("%s: a fetch whose client is gone has taken the task: %s", row.what, a.body)
		}
		if len(bobsAnswer) != 0 {
			t.Errorf("%s: the wait of another client has ended", row.what)
		}
		s.server.Drain()
		await.Receive(t, bobsAnswer, "the answer to the other client")
	}
}

// An Authenticator of the program that mounts the API says by Valid when a client is gone. Without Valid, a stream stays.
func TestAnAuthenticatorEndsAStream(t *testing.T) {
	var gone atomic.Bool
	auth := func(*http.Request) (Identity, bool) {
		return Identity{Name: "ada", Roles: []Role{Read}, Valid: func() bool { return !gone.Load() }}, !gone.Load()
	}
	s := newStageOf(t, queue.Config{Events: "all"}, Config{Auth: []Authenticator{auth}})
	next, stop := s.open("after=now", "")
	defer stop()
	queuetest.Enqueue(t, s.q, queue.Task{})
	if e := next(); e.event != "task_enqueued" {
		t.Fatalf("the stream has %+v", e)
	}
	gone.Store(true)
	if e := next(); e.event != "end" || !strings.Contains(e.data, "unauthorized") {
		t.Errorf("the stream ends with %+v", e)
	}
	s.want(401, "GET", "queues", "")
}
