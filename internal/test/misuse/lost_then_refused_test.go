package misuse

import (
	"errors"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/redistest"
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
	go func() { _, err := q.Enqueue(t.Context(), queue.Task{Kind: "k"}); got <- err }()
	cut.Await(t)
	proxy.Say("-WRONGPASS invalid username-password pair or user is disabled.")
	if err := await.Receive(t, got, "Enqueue returns"); !errors.Is(err, refusal.ErrUnknown) || !errors.Is(err, refusal.ErrNoAccess) {
		t.Errorf("Enqueue = %v, want ErrUnknown and ErrNoAccess", err)
	}
}
