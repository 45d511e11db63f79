package curfewtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/lua"
)

// clock sets the time that the scripts use.
type clock interface {
	set(ctx context.Context, at time.Time) error
}

// serve returns a client of the stage's server, and registers the clean-up.
func (s *Stage) serve() (redis.UniversalClient, clock, error) {
	c := &s.config.Queue
	if rdb := s.config.Client; rdb != nil {
		if s.bubble {
			return nil, nil, errors.New("Config.Client cannot be used in a bubble of testing/synctest, whose time stands still " +
				"while a client waits for its socket: leave it out, or call New outside of synctest.Test")
		}
		library, err := load(scripts{s.knowsFunctions(rdb), true})
		c.Library = library
		s.tb.Cleanup(s.erase)
		return rdb, keyClock{rdb, c.Namespace, max(c.Partitions, 1)}, err
	}
	server, err := embedded.StartWithoutPort()
	if err != nil {
		return nil, nil, err
	}
	s.tb.Cleanup(server.Close)
	rdb := server.Client()
	c.Library, err = load(scripts{s.knowsFunctions(rdb), false})
	if s.bubble {
		return rdb, bubbleClock{}, err
	}
	return rdb, serverClock{server}, err
}

func (s *Stage) knowsFunctions(rdb redis.UniversalClient) bool {
	return rdb.Eval(s.ctx, "#!lua\nreturn 1", []string{s.config.Queue.Namespace + ":{0}"}).Err() == nil
}

// scripts identifies a variant of the Lua.
type scripts struct{ functions, keyClock bool }

var libraries sync.Map // by scripts, because composing the Lua is most of the cost of a stage

func load(form scripts) (*lua.Library, error) {
	if library, ok := libraries.Load(form); ok {
		return library.(*lua.Library), nil
	}
	options := lua.Options{Functions: form.functions}
	if form.keyClock {
		options.Replace = map[string]string{"store/now": now}
	}
	library, err := lua.Load(options)
	if err == nil {
		libraries.Store(form, library)
	}
	return library, err
}

// serverClock sets the clock of the embedded server, by which keys expire too.
type serverClock struct{ server *embedded.Server }

func (c serverClock) set(_ context.Context, at time.Time) error {
	c.server.SetTime(at)
	return nil
}

// bubbleClock is the time of a bubble, which the embedded server uses too.
type bubbleClock struct{}

func (bubbleClock) set(_ context.Context, at time.Time) error {
	d := at.Sub(inMS(time.Now()))
	if d < 0 {
		return fmt.Errorf("the clock cannot be set to %v, because the bubble of testing/synctest is at %v", at.UTC(), time.Now().UTC())
	}
	time.Sleep(d) // sleeps: this is how the time of a bubble passes
	return nil
}

// inBubble reports whether this goroutine is in a bubble of testing/synctest. Wait returns there at once, because
// no test waits for the goroutine that makes a stage.
func inBubble() (is bool) {
	defer func() {
		if v := recover(); v != nil { // not in a bubble, or another goroutine of the bubble is in Wait
			is = strings.Contains(fmt.Sprint(v), "already in progress")
		}
	}()
	synctest.Wait()
	return true
}

// keyClock keeps the time in a key of each partition, on a Redis whose own clock cannot be set.
type keyClock struct {
	rdb        redis.UniversalClient
	namespace  string
	partitions int
}

// now replaces lua/store/now.lua.
const now = `
local function now(root)
  return tonumber(redis.call("GET", root .. ":clock") or error("the key with the clock of the test is missing: do not flush the database", 0))
end
`

func (c keyClock) set(ctx context.Context, at time.Time) error {
	for p := range c.partitions {
		if err := c.rdb.Set(ctx, fmt.Sprintf("%s:{%d}:clock", c.namespace, p), at.UnixMilli(), 0).Err(); err != nil {
			return fmt.Errorf("set the clock: %w", err)
		}
	}
	return nil
}

// erase deletes the keys of the namespace from a Redis, and no others.
func (s *Stage) erase() {
	var err error
	if c, ok := s.config.Client.(*redis.ClusterClient); ok {
		err = c.ForEachMaster(s.ctx, func(ctx context.Context, node *redis.Client) error { return s.eraseFrom(ctx, node) })
	} else {
		err = s.eraseFrom(s.ctx, s.config.Client)
	}
	if err != nil {
		s.tb.Logf("curfewtest: keys of the namespace %s may be left: %v", s.config.Queue.Namespace, err)
	}
}

func (s *Stage) eraseFrom(ctx context.Context, rdb redis.UniversalClient) error {
	keys := rdb.Scan(ctx, 0, s.config.Queue.Namespace+":{*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := rdb.Del(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}
