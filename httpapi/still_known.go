package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// askAgain is how often a request that waits asks whether its client is still known.
const askAgain = time.Second

var errNotKnown = errors.New("the client is no longer known")

// whileKnown returns a context that ends with errNotKnown when the client of a request that waits, or of a stream, is no longer known.
func (c *call) whileKnown(ctx context.Context) (_ context.Context, stop func()) {
	if c.who.Valid == nil || !c.waits() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		again := time.NewTicker(askAgain)
		defer again.Stop()
		for c.who.Valid() {
			select {
			case <-again.C:
			case <-ctx.Done():
				return
			}
		}
		cancel(errNotKnown)
	}()
	return ctx, func() { cancel(nil) }
}

// noLongerKnown is the failure of a request that waited when its client was removed.
func noLongerKnown() *failure {
	f := fail(http.StatusUnauthorized, "unauthorized", "the server no longer knows this client, or has given it other roles: send a token or password that is valid now")
	f.cause = errNotKnown
	return f
}
