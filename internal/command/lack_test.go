package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// A task whose command cannot start because this process or the system lacks something is given back.
func TestALackGivesTheTaskBack(t *testing.T) {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.EBADF} {
		err := NewCommand("x").startError(t.Context(), fmt.Errorf("x: %w", &os.PathError{Op: "fork/exec", Path: "/bin/x", Err: lack}))
		if v := worker.VerdictOf(err); v.Verb != queue.Release || v.Delay != shortage {
			t.Errorf("%v: the verdict is %+v, want that the task is given back", lack, v)
		}
	}
	for _, other := range []error{syscall.EIO, syscall.ECONNREFUSED, errors.New("x")} {
		if lacks(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", other)}) {
			t.Errorf("%v counts as a lack", other)
		}
	}
}

// A worker that has lacked files keeps no idle connections: it may need a file to reach Redis.
func TestAPostThatLackedFilesKeepsNoConnection(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPost(to, 4)
	transport := p.client.Transport.(*http.Transport)
	dial, lacking := transport.DialContext, false
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if lacking {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}
		return dial(ctx, network, address)
	}
	post := func(want int32) {
		t.Helper()
		if _, err := p.Handle(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if n := opened.Load(); n != want {
			t.Errorf("%d connections were opened, want %d", n, want)
		}
	}
	post(1)
	post(1)
	p.client.CloseIdleConnections()
	lacking = true
	if _, err := p.Handle(t.Context(), nil); worker.VerdictOf(err).Verb != queue.Release {
		t.Errorf("without files: %v, want that the task is given back", err)
	}
	lacking = false
	post(2)
	post(3)
}
