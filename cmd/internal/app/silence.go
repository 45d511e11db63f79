package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/duration"
)

// SilenceError means that Redis has not answered for the time of --request-timeout.
type SilenceError struct {
	Limit time.Duration
	Last  error // of the last call that failed, nil if none did
}

// Error returns a text with advice.
func (e *SilenceError) Error() string {
	last := ""
	if e.Last != nil {
		last = fmt.Sprintf(" (%v)", e.Last)
	}
	return fmt.Sprintf("Redis has not answered for %v%s: is it busy, or is the address wrong? Give another one with --redis, or more time with --request-timeout", duration.Duration(e.Limit), last)
}

// blocking are the commands whose answer may take long by intent.
var blocking = []string{"blpop", "brpop", "bzpopmin", "bzpopmax", "blmpop", "bzmpop", "blmove", "xread", "xreadgroup", "wait", "waitaof"}

// silence is a hook that ends a command when Redis does not answer.
type silence struct {
	limit time.Duration
	end   context.CancelCauseFunc

	mu      sync.Mutex
	waiting int         // calls without an answer
	timer   *time.Timer // runs from the last answer on, while there are such calls
	last    error       // of the last call that failed
}

// EndOnSilence ends the context of a command when Redis has not answered for --request-timeout.
func EndOnSilence(c *cli.Context, rdb redis.UniversalClient) {
	limit := DurationOf(c, "request-timeout")
	if limit <= 0 {
		return
	}
	ctx, cancel := context.WithCancelCause(c.Context)
	c.Context = ctx
	rdb.AddHook(&silence{limit: limit, end: cancel})
}

// DialHook counts a connection attempt as a call without an answer.
func (s *silence) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		s.call()
		conn, err := next(ctx, network, addr)
		s.ended(err, false)
		return conn, err
	}
}

// ProcessHook watches a command.
func (s *silence) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(blocking, cmd.Name()) {
			return next(ctx, cmd)
		}
		s.call()
		err := next(ctx, cmd)
		s.ended(err, isAnswer(err))
		return err
	}
}

// ProcessPipelineHook watches a pipeline.
func (s *silence) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.call()
		err := next(ctx, cmds)
		s.ended(err, isAnswer(err))
		return err
	}
}

// isAnswer reports whether the error of a call, or its absence, is from Redis.
func isAnswer(err error) bool {
	var answer redis.Error
	return err == nil || errors.As(err, &answer)
}

func (s *silence) call() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	if s.timer == nil {
		s.timer = time.AfterFunc(s.limit, func() { s.end(s.silent()) })
	}
}

func (s *silence) silent() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &SilenceError{s.limit, s.last}
}

// ended notes the end of a call. A call that failed without an answer is repeated soon, so the time goes on.
func (s *silence) ended(err error, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	if err != nil {
		s.last = err
	}
	if !answered || s.timer == nil {
		return
	}
	s.last = nil
	if s.waiting > 0 {
		s.timer.Reset(s.limit)
		return
	}
	s.timer.Stop()
	s.timer = nil
}
