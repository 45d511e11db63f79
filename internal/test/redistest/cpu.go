package redistest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// CPU returns the CPU time that the main thread of a server has used. Unlike elapsed time it depends little on other
// programs of the machine.
func CPU(ctx context.Context, rdb redis.UniversalClient) (time.Duration, error) {
	info, err := rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	return CPUIn(info)
}

// CPUIn reads the CPU time of the main thread from the reply of INFO cpu.
func CPUIn(info string) (sum time.Duration, err error) {
	for _, name := range []string{"used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"} {
		_, rest, found := strings.Cut(info, name)
		if !found {
			return 0, errors.New("INFO cpu of this server does not say what its main thread has used")
		}
		text, _, _ := strings.Cut(rest, "\r\n")
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum, nil
}

// Meter is a hook of a client. It records the largest CPU time that a command took, and a pipeline as a whole, because
// another client may wait for all of it. The server must do nothing else meanwhile, so the commands that are measured run
// one after the other.
type Meter struct {
	tb   testing.TB
	rdb  redis.UniversalClient // to the same server, without the hook
	name func(redis.Cmder) string

	mu   sync.Mutex               // held while a command is measured
	most map[string]time.Duration // by name, since the last call of Empty
}

// NewMeter returns a Meter of the commands of a client of a server. name returns the name under which a command is
// measured, or "" if it is not measured. If name is nil, it is the name of the command.
func NewMeter(tb testing.TB, rdb redis.UniversalClient, name func(redis.Cmder) string) *Meter {
	if name == nil {
		name = redis.Cmder.FullName
	}
	return &Meter{tb: tb, rdb: rdb, name: name, most: map[string]time.Duration{}}
}

// Empty returns the measured times and clears them.
func (m *Meter) Empty() map[string]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	most := m.most
	m.most = map[string]time.Duration{}
	return most
}

// measured is the key of contexts of commands that are measured. A new connection begins with commands of its own within
// the one that needs it.
type measured struct{}

func (m *Meter) measure(ctx context.Context, name string, run func(context.Context) error) error {
	if name == "" || ctx.Value(measured{}) != nil {
		return run(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, failed := CPU(m.tb.Context(), m.rdb)
	err := run(context.WithValue(ctx, measured{}, true))
	after, failedThen := CPU(m.tb.Context(), m.rdb)
	if failed != nil || failedThen != nil {
		m.tb.Error(failed, failedThen)
	}
	m.most[name] = max(m.most[name], after-before)
	return err
}

// ProcessHook implements redis.Hook.
func (m *Meter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return m.measure(ctx, m.name(cmd), func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (m *Meter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		names := map[string]bool{}
		for _, cmd := range cmds {
			names[m.name(cmd)] = true
		}
		delete(names, "")
		name := ""
		if len(names) > 0 {
			name = "a pipeline of " + strings.Join(slices.Sorted(maps.Keys(names)), ", ")
		}
		return m.measure(ctx, name, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

// DialHook implements redis.Hook.
func (m *Meter) DialHook(next redis.DialHook) redis.DialHook { return next }
