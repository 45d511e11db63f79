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
	// askAgain is how long a subscription that Redis refuses rests. The right to it may be granted.
	askAgain = 2 * time.Second
	// dialAgain is how long one rests whose connection broke again at once.
	dialAgain = 100 * time.Millisecond
	// pingAfter is how long nothing may come before something is sent, so that no router forgets the
	// connection. One that breaks is noticed at once.
	pingAfter = 15 * time.Second
	pingFor   = 5 * time.Second
)

// Subscription receives the messages of some channels. It subscribes again when the
// connection breaks, and when a missing right is granted; what was published before that is
// lost, so told is called with "" each time the subscription is established, and callers must then check again.
type Subscription struct {
	engine   *Engine
	channels []string
	told     func(channel, message string)
	pubsub   *redis.PubSub
	heard    atomic.Bool   // something came since the last ping
	decided  chan struct{} // closed once it stands, or does not at the first try
	once     sync.Once     // closes decided
	stop     chan struct{} // closed by Stop
	stopped  sync.Once     // closes stop
	ended    chan struct{} // closed when nothing more is told
	pinged   chan struct{} // closed when no more pings are sent
}

// Subscribe has told called with each message of the channels, from one goroutine,
// until stop. It does not wait for Redis.
func (e *Engine) Subscribe(channels []string, told func(channel, message string)) *Subscription {
	s := &Subscription{engine: e, channels: channels, told: told, decided: make(chan struct{}),
		stop: make(chan struct{}), ended: make(chan struct{}), pinged: make(chan struct{}),
		pubsub: e.rdb.Subscribe(context.Background())} // without channels it does not connect
	go s.listen()
	go s.ping()
	return s
}

// listen reads until Stop, or until the client is closed.
func (s *Subscription) listen() {
	defer close(s.ended)
	// What fails here is done again when the connection is made anew.
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
			if s.rest(0) { // the client was closed: callers must find out
				s.told("", "")
			}
			return
		case lua.Raised(err): // the connection is good, and nothing is subscribed to
			if !warned {
				s.engine.logger.Warn("Redis refuses a subscription; what it would tell is found out some seconds later",
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
			s.told(m.Channel, "")
		}
	case *redis.Message:
		s.told(m.Channel, m.Payload)
	}
}

func (s *Subscription) decide() { s.once.Do(func() { close(s.decided) }) }

// ping has go-redis find out that a connection is dead on which nothing comes.
func (s *Subscription) ping() {
	defer close(s.pinged)
	for s.rest(pingAfter) {
		if s.heard.Swap(false) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), pingFor)
		s.pubsub.Ping(ctx) // an error has the connection made anew
		cancel()
	}
}

// rest tells whether the subscription goes on after a while.
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
		return context.Cause(ctx)
	}
}

// Stop ends it, and returns when told is not called any more.
func (s *Subscription) Stop() {
	s.stopped.Do(func() { close(s.stop) })
	s.pubsub.Close()
	<-s.ended
	<-s.pinged
}
