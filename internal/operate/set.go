package operate

import (
	"context"
	"log/slog"

	"github.com/curfew-dev/curfew/queue"
)

// Set changes the settings of a namespace that are not zero, and returns the namespace as it was, without counts, and as it is. It does not create
// a namespace: it returns refusal.ErrNoNamespace.
func (s *Server) Set(ctx context.Context, name string, settings queue.Settings) (before, after Namespace, err error) {
	before, err = s.Settled(ctx, name)
	if err == nil {
		err = before.Err
	}
	if err == nil {
		err = s.fits(ctx, before, Settings{})
	}
	if err != nil {
		return before, before, err
	}
	q, err := queue.Open(ctx, s.rdb, queue.Config{Namespace: name, Access: queue.AccessProduce, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = q.Configure(ctx, settings)
	}
	if err != nil {
		return before, before, err
	}
	after, err = s.Namespace(ctx, name)
	return before, after, err
}
