package operate

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it would log each connection to a server that a test has stopped
	redistest.Main(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// start starts a server. It returns a client with the options that the command uses.
func start(t *testing.T) (*Server, redis.UniversalClient) {
	t.Helper()
	return connect(t, "redis://"+redistest.Start(t).Addr)
}

func connect(t *testing.T, url string) (*Server, redis.UniversalClient) {
	t.Helper()
	rdb := client(t, url)
	s, err := Connect(t.Context(), rdb)
	if err != nil {
		t.Fatal(err)
	}
	return s, rdb
}

func client(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := queue.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// before calls do before each command of a client, with the name of the command in small letters. If do returns an error, the
// command is not sent.
type before struct {
	do func(ctx context.Context, cmd redis.Cmder) error
}

func (b before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := b.do(ctx, cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (b before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := b.do(ctx, cmds[0]); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

func mentions(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want it to say %q", err, word)
		}
	}
}
