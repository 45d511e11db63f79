package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
)

const (
	// askAgain is the pause before a refused subscription is tried again, as the right may have been granted.
	askAgain = 2 * time.Second
	// dialAgain is the pause before a connection that broke twice in a row is made again.
	dialAgain = 100 * time.Millisecond
	// pingAfter is how long a connection may be silent before a PING is sent. The PING keeps
	// routers from dropping the connection, and finds connections that are dead without an error.
	pingAfter = 15 * time.Second
	pingFor   = 5 * time.Second
)

// Subscription receives the messages of some channels. It subscribes again after the connection broke,
// and after a missing right was granted. Messages that were published meanwhile are lost. So handle is called with
// an empty message each time the subscription is established, and the caller must then poll.
type Subscription struct {
	engine   *Engine
	channels []string
	handle   func(channel, message string)
	pubsub   *redis.PubSub
	heard    atomic.Bool   // something was received since the last ping
	decided  chan struct{} // closed when the first attempt to subscribe has succeeded or failed
	once     sync.Once     // closes decided
	stop     chan struct{} // closed by Stop
	stopped  sync.Once     // closes stop
	ended    chan struct{} // closed when handle is not called any more
	pinged   chan struct{} // closed when no more pings are sent
}

// Subscribe calls handle with each message of the channels, from one goroutine, until Stop. It does not wait for
// Redis: see Await.
func (e *Engine) Subscribe(channels []string, handle func(channel, message string)) *Subscription {
	s := &Subscription{engine: e, channels: channels, handle: handle, decided: make(chan struct{}),
		stop: make(chan struct{}), ended: make(chan struct{}), pinged: make(chan struct{}),
		pubsub: e.rdb.Subscribe(context.Background())} // without channels it does not connect
	go s.listen()
	go s.ping()
	return s
}

// listen reads until Stop, or until the client is closed.
func (s *Subscription) listen() {
	defer close(s.ended)
	// If this fails, Receive makes a new connection and subscribes again.
	s.pubsub.Subscribe(context.Background(), s.channels...)
	failures, warned := 0, false
	for {
		message, err := s.pubsub.Receive(context.Background())
		s.heard.Store(true)
		if err == nil {
			failures = 0
			s.take(message)
			continue
		}
		s.decide()
		switch {
		case errors.Is(err, redis.ErrClosed):
			if s.rest(0) { // the client was closed: have the caller poll, so that it gets the error
				s.handle("", "")
			}
			return
		case lua.Raised(err): // the connection is good, but has no subscription
			if !warned {
				s.engine.logger.Warn("Redis refuses a subscription, so changes are noticed up to some seconds later",
					"channel", s.channels[0], "error", s.engine.Explain(0, err))
			}
			warned = true
			if s.rest(askAgain) {
				s.pubsub.Subscribe(context.Background(), s.channels...)
			}
		case failures > 0:
			s.rest(dialAgain)
		}
		failures++
	}
}

func (s *Subscription) take(message any) {
	switch m := message.(type) {
	case *redis.Subscription:
		if m.Count >= len(s.channels) {
			s.decide()
			s.handle(m.Channel, "")
		}
	case *redis.Message:
		s.handle(m.Channel, m.Payload)
	}
}

func (s *Subscription) decide() { s.once.Do(func() { close(s.decided) }) }

// ping sends a PING on a silent connection, so that go-redis notices if it is dead.
func (s *Subscription) ping() {
	defer close(s.pinged)
	for s.rest(pingAfter) {
		if s.heard.Swap(false) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), pingFor)
		s.pubsub.Ping(ctx) // after an error go-redis makes a new connection
		cancel()
	}
}

// rest waits for d, and reports whether the subscription continues.
func (s *Subscription) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stop:
		return false
	case <-s.ended:
		return false
	}
}

// Await returns when the first attempt to subscribe has succeeded or failed, or with ctx's cause.
// Messages may be lost, so callers must poll as well.
func (s *Subscription) Await(ctx context.Context) error {
	select {
	case <-s.decided:
		return nil
	case <-ctx.Done():
		return s.engine.InVain(ctx)
	}
}

// Stop ends the subscription. After it returns, the handler is not called any more.
func (s *Subscription) Stop() {
	s.stopped.Do(func() { close(s.stop) })
	s.pubsub.Close()
	<-s.ended
	<-s.pinged
}
