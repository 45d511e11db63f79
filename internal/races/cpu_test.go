package races

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/lua"
)

// cpu returns the CPU time of the server's main thread. Unlike elapsed time it depends little on other
// programs of the machine.
func cpu(ctx context.Context, rdb *redis.Client) (sum time.Duration, err error) {
	info, err := rdb.Info(ctx, "cpu").Result()
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				seconds, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
				if err != nil {
					return 0, err
				}
				sum += time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return sum, err
}

// meter is a hook of a client. It records the largest CPU time that a call of each script took, which is
// right if the server does nothing else.
type meter struct {
	t       *testing.T
	rdb     *redis.Client // to the same server
	library *lua.Library

	mu   sync.Mutex
	most map[string]time.Duration // by script, since the last call of empty
}

func newMeter(t *testing.T, addr string) *meter {
	t.Helper()
	library, err := lua.Load(lua.Options{Functions: true}) // with the handles that the server uses
	if err != nil {
		t.Fatal(err)
	}
	return &meter{t: t, rdb: stages.Client(t, addr), library: library, most: map[string]time.Duration{}}
}

// script returns the name of the script that a command calls, or "" for any other command.
func (m *meter) script(cmd redis.Cmder) string {
	args := cmd.Args()
	if len(args) < 2 || !lua.IsVerb(cmd.Name()) {
		return ""
	}
	for _, name := range m.library.Names() {
		if args[1] == m.library.Handle(name) {
			return name
		}
	}
	m.t.Errorf("the client calls an unknown script: %v", args[1])
	return ""
}

func (m *meter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		name := m.script(cmd)
		if name == "" {
			return next(ctx, cmd)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		before, failed := cpu(m.t.Context(), m.rdb)
		err := next(ctx, cmd)
		after, failedThen := cpu(m.t.Context(), m.rdb)
		if failed != nil || failedThen != nil {
			m.t.Error(failed, failedThen)
		}
		m.most[name] = max(m.most[name], after-before)
		return err
	}
}

func (m *meter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *meter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// empty returns the measured times and clears them.
func (m *meter) empty() map[string]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	most := m.most
	m.most = map[string]time.Duration{}
	return most
}
