package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// A command that is interrupted while it connects has read nothing, so it prints nothing. It does not wait for the
// server.
func TestAnInterruptWhileConnectingEndsTheCommand(t *testing.T) {
	t.Parallel()
	const interrupted = "curfew: interrupted\n"
	for _, row := range []struct {
		args string
		code int
		want string
	}{
		{"explain 0-abc", app.ExitInterrupted, interrupted},
		{"events", app.ExitInterrupted, interrupted},
		{"events --follow -o json", 0, ""},
		{"export", app.ExitInterrupted, "curfew: interrupted: the export is not complete, and lacks its last line\n"},
		{"functions ls", app.ExitInterrupted, interrupted},
		{"namespace create x", app.ExitInterrupted, interrupted},
		{"namespace rm x --yes", app.ExitInterrupted, interrupted},
		{"reap", 0, ""},
		{"work --http k=http://x", 0, ""},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			inTime(t, func(time.Duration) error {
				ctx, interrupt := context.WithCancel(t.Context())
				var runs func() bool
				asked := make(chan struct{})
				url := "redis://" + silent(t, func() { close(asked) })
				interrupted := make(chan struct{})
				go func() {
					defer close(interrupted)
					<-asked
					runs = aCall(t, url)
					interrupt()
				}()
				var out, errs bytes.Buffer
				code := run(ctx, append([]string{"curfew"}, strings.Fields(row.args+" --redis "+url)...), &out, &errs)
				if <-interrupted; code != row.code || out.String() != "" || errs.String() != row.want {
					return fmt.Errorf("exit %d, stdout %q, stderr %q; want exit %d, no stdout, and %q", code, &out, &errs, row.code, row.want)
				}
				if !runs() {
					return lateError{errors.New("the command waited for the server")}
				}
				return nil
			})
		})
	}
}

// silent returns the address of a server that never answers. When it is first sent something, it calls asked. The end of the test closes its
// connections, since go-redis goes on to dial for half a minute after a command in this process has ended.
func silent(t *testing.T, asked func()) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	over, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		listener.Close()
		end()
		conns.Wait()
	})
	once := sync.OnceFunc(asked)
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer context.AfterFunc(over, func() { conn.Close() })()
				defer conn.Close()
				for b := make([]byte, 1000); err == nil; once() {
					_, err = conn.Read(b)
				}
			})
		}
	})
	return listener.Addr().String()
}
