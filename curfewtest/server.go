package curfewtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/lua"
)

// clock is what the scripts take the time from.
type clock interface {
	set(ctx context.Context, at time.Time) error
}

// serve gives the server that the stage plays on, and arranges for the end of it.
func (s *Stage) serve() (redis.UniversalClient, clock, error) {
	c := &s.config.Queue
	if rdb := s.config.Client; rdb != nil {
		library, err := load(scripts{s.knowsFunctions(rdb), true})
		c.Library = library
		s.tb.Cleanup(s.erase)
		return rdb, keyClock{rdb, c.Namespace, max(c.Partitions, 1)}, err
	}
	server, err := embedded.Start()
	if err != nil {
		return nil, nil, err
	}
	s.tb.Cleanup(server.Close)
	rdb := server.Client()
	c.Library, err = load(scripts{s.knowsFunctions(rdb), false})
	return rdb, serverClock{server}, err
}

func (s *Stage) knowsFunctions(rdb redis.UniversalClient) bool {
	return rdb.Eval(s.ctx, "#!lua\nreturn 1", []string{s.config.Queue.Namespace + ":{0}"}).Err() == nil
}

// scripts is a form of the Lua.
type scripts struct{ functions, keyClock bool }

var libraries sync.Map // by scripts: composing them is most of what a stage costs

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

// serverClock is the embedded server's own: keys expire by it as well.
type serverClock struct{ server *embedded.Server }

func (c serverClock) set(_ context.Context, at time.Time) error {
	c.server.SetTime(at)
	return nil
}

// keyClock is a key in each partition, on a Redis whose own clock is not ours to move.
type keyClock struct {
	rdb        redis.UniversalClient
	namespace  string
	partitions int
}

// now takes the place of lua/store/now.lua.
const now = `
local function now(root)
  return tonumber(redis.call("GET", root .. ":clock") or error("the clock of the test is gone: did it flush the database?", 0))
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

// erase deletes the namespace from a Redis that others use too.
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
