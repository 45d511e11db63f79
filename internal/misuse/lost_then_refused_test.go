package misuse

import (
	"errors"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/faultproxy"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The reply is lost, and then the password changes. The outcome of the call is unknown, and
// repeating it cannot find it out. So the error is both ErrUnknown and ErrNoAccess, without further
// tries.
func TestALostAnswerAndThenARefusal(t *testing.T) {
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
	q, err := queue.Open(t.Context(), connect(t, "redis://"+proxy.Addr), queue.Config{Namespace: redistest.Namespace(t), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	cut := proxy.CutReply(faultproxy.Script(q.Engine().Library().Handle("enqueue")), -1)
	got := make(chan error, 1)
	start := time.Now()
	go func() { _, err := q.Enqueue(t.Context(), queue.Task{Kind: "k"}); got <- err }()
	cut.Await(t)
	proxy.Say("-WRONGPASS invalid username-password pair or user is disabled.")
	if err := <-got; !errors.Is(err, refusal.ErrUnknown) || !errors.Is(err, refusal.ErrNoAccess) || time.Since(start) > 20*time.Second {
		t.Errorf("Enqueue = %v after %v, want ErrUnknown and ErrNoAccess within 20s", err, time.Since(start))
	}
}

// The reply of a read is lost, and then the server loads its data. A read has no effect, so its outcome is known: the call is given up
// as soon as one whose first try was refused.
func TestAReadThatLostItsReplyIsGivenUpAsSoonAsOthers(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
	q, err := queue.Open(t.Context(), connect(t, "redis://"+proxy.Addr), queue.Config{Namespace: redistest.Namespace(t), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	cut := proxy.CutReply(faultproxy.Script(q.Engine().Library().Handle("read")), -1)
	got := make(chan error, 1)
	start := time.Now()
	go func() { _, err := q.Get(t.Context(), "0-1M83W6QVA5M9QNG9Q7"); got <- err }()
	cut.Await(t)
	proxy.Say("-LOADING Redis is loading the dataset in memory")
	if err := <-got; !errors.Is(err, refusal.ErrUnavailable) || time.Since(start) > soon {
		t.Errorf("Get = %v after %v, want ErrUnavailable within %v", err, time.Since(start), soon)
	}
}
