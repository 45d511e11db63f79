package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"

	"github.com/redis/go-redis/v9"
)

// dials knows whether the newest connection of a client could be made. go-redis makes connections in the background, so a
// call whose context ends while it waits for one gets the error of the context only.
type dials struct{ failed atomic.Pointer[failedDial] }

type failedDial struct {
	at  time.Time
	err error
}

// failure returns the reason for which the client has no connection, nil if it is not known.
func (d *dials) failure() error {
	if d == nil {
		return nil
	}
	// An old one says nothing: since then, all calls may have used connections that were there.
	if f := d.failed.Load(); f != nil && time.Since(f.at) < waitFor {
		return f.err
	}
	return nil
}

// watchDials is a hook that keeps the failure of the newest dial.
type watchDials struct {
	noHook
	dials *dials
}

func (w watchDials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		switch {
		case err == nil:
			w.dials.failed.Store(nil)
		case !errors.Is(err, context.Canceled): // nobody waits for it any more
			w.dials.failed.Store(&failedDial{time.Now(), err})
		}
		return conn, err
	}
}

// noHook is the part of a hook that changes nothing.
type noHook struct{}

func (noHook) DialHook(next redis.DialHook) redis.DialHook                                  { return next }
func (noHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook                         { return next }
func (noHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook { return next }

// prepare makes all later connections of a client patient, and returns its dials. It adds its hooks once, since a program
// may open many namespaces with one client. The client of a cluster keeps its connections: with patient ones it would leave
// a hanging master half a second later (docs/decisions/0024-patient-connections.md).
func prepare(rdb redis.UniversalClient) *dials {
	switch client := rdb.(type) {
	case *redis.Client:
		d, first := dialsOf(unsafe.Pointer(client))
		if first {
			client.AddHook(patientDials{})
			client.AddHook(watchDials{dials: d})
		}
		return d
	case *redis.ClusterClient:
		d, first := dialsOf(unsafe.Pointer(client))
		if first {
			client.OnNewNode(func(node *redis.Client) { node.AddHook(watchDials{dials: d}) })
		}
		return d
	}
	return nil
}

var prepared sync.Map // dials by weak pointers to clients

// dialsOf returns the dials of a client, and whether it is called for the first time with it. The pointer is to the first byte of the
// client, because a weak.Pointer[redis.Client] makes the compiler generate the methods of redis.Client again in this package: 9 MB of
// its archive.
func dialsOf(client unsafe.Pointer) (_ *dials, first bool) {
	start := (*byte)(client)
	pointer := weak.Make(start)
	d, repeated := prepared.LoadOrStore(pointer, &dials{})
	if !repeated {
		runtime.AddCleanup(start, func(gone weak.Pointer[byte]) { prepared.Delete(gone) }, pointer)
	}
	return d.(*dials), !repeated
}

// inVain returns the error of a call whose context has ended: the cause of the context, with the reason for which Redis did
// not answer before, if that is known. last is the newest error of a try, or nil. The error matches the cause only.
func (e *Engine) inVain(cause, last error) error {
	if last == nil || timedOut(last) || errors.Is(last, context.Canceled) {
		last = e.dials.failure()
	}
	if last == nil {
		return cause
	}
	return &explained{nil, fmt.Sprintf("%v, while %v", cause, e.diagnose(last).explain(last)), cause}
}

// InVain returns the cause of a context that has ended, with the reason for which Redis cannot be reached, if that is known.
func (e *Engine) InVain(ctx context.Context) error { return e.inVain(context.Cause(ctx), nil) }
