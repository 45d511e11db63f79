package engine

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// pingEvery is how often a subscription that hears nothing sends something, so that no router
// forgets the connection. One that breaks is noticed at once.
const pingEvery = 15 * time.Second

// Subscription is a standing order for messages. It mends itself when the
// connection breaks; what was published before it stood is lost, so told is called
// with "" whenever it stands, and whoever waits looks again.
type Subscription struct {
	standing chan struct{} // closed once it stands for the first time
	ended    chan struct{}
	pubsub   *redis.PubSub
}

// Subscribe has told called with each message of the channels, from one goroutine,
// until stop. It does not wait for Redis: standing says when it does.
func (e *Engine) Subscribe(channels []string, told func(channel, message string)) *Subscription {
	s := &Subscription{
		standing: make(chan struct{}),
		ended:    make(chan struct{}),
		pubsub:   e.rdb.Subscribe(context.Background()), // without channels it does not connect
	}
	go func() {
		// What fails here is done again by the channel, as after a broken connection.
		s.pubsub.Subscribe(context.Background(), channels...)
		s.listen(len(channels), told)
	}()
	return s
}

func (s *Subscription) listen(channels int, told func(channel, message string)) {
	defer close(s.ended)
	for m := range s.pubsub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(pingEvery)) {
		switch m := m.(type) {
		case *redis.Subscription:
			if channels > 0 {
				if channels--; channels > 0 {
					continue
				}
				close(s.standing)
			}
			told(m.Channel, "")
		case *redis.Message:
			told(m.Channel, m.Payload)
		}
	}
}

// Await returns when the subscription stands, or with ctx's cause.
func (s *Subscription) Await(ctx context.Context) error {
	select {
	case <-s.standing:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop ends it, and returns when told is not called any more.
func (s *Subscription) Stop() {
	s.pubsub.Close()
	<-s.ended
}
