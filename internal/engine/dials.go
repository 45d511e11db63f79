package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
	"unsafe"
	"weak"

	"github.com/redis/go-redis/v9"
)

// dials knows whether the newest connection of a client could be made. go-redis makes connections in the background, so a
// call whose context ends while it waits for one gets the error of the context only.
type dials struct {
	mu     sync.Mutex
	failed error // of the newest dial
	at     time.Time
}

func (d *dials) set(failed error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed, d.at = failed, time.Now()
}

// failure returns the reason for which the client has no connection, nil if it is not known.
func (d *dials) failure() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.at) > waitFor {
		return nil // since then, all calls may have used connections that were there
	}
	return d.failed
}

// dialHook is a hook that keeps the failure of the newest dial, and makes new connections patient.
type dialHook struct {
	dials   *dials
	patient bool
}

func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if !errors.Is(err, context.Canceled) { // somebody waits for it
			h.dials.set(err)
		}
		if err == nil && h.patient {
			conn = patient(conn)
		}
		return conn, err
	}
}

func (dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// prepare makes all later connections of a client patient, and returns its dials. It adds its hook once, since a program
// may open many namespaces with one client. The client of a cluster keeps its connections: with patient ones it would leave
// a hanging master half a second later (docs/decisions/0024-patient-connections.md).
func prepare(rdb redis.UniversalClient) *dials {
	switch client := rdb.(type) {
	case *redis.Client:
		d, first := dialsOf(unsafe.Pointer(client))
		if first {
			client.AddHook(dialHook{d, true})
		}
		return d
	case *redis.ClusterClient:
		d, first := dialsOf(unsafe.Pointer(client))
		if first {
			client.OnNewNode(func(node *redis.Client) { node.AddHook(dialHook{d, false}) })
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
