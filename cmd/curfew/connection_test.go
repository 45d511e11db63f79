package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/events"
)

// A command that is interrupted while it connects has read nothing, so it prints nothing.
func TestAnInterruptWhileConnectingEndsTheCommand(t *testing.T) {
	for _, row := range []struct {
		args string
		code int
		want string
	}{
		{"explain 0-abc", 0, ""},
		{"events", 0, ""},
		{"events --follow -o json", 0, ""},
		{"export", exitFailed, "curfew: interrupted: the export is not complete, and lacks its last line\n"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		words := strings.Fields(row.args)
		args := append([]string{"curfew", words[0], "--redis", "redis://" + silent(t, interrupt)}, words[1:]...)
		var out, errs bytes.Buffer
		if code := run(ctx, args, &out, &errs); code != row.code || out.String() != "" || errs.String() != row.want {
			t.Errorf("curfew %s: exit %d, stdout %q, stderr %q; want exit %d, no stdout, and %q", row.args, code, &out, &errs, row.code, row.want)
		}
	}
}

// The cursor of the oldest event is empty, so there is no argument of --from to print.
func TestAnInterruptBeforeTheFirstEventPrintsNoCursor(t *testing.T) {
	q, _ := namespace(t, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for name, tell := range map[string]teller{"text": tellText, "json": tellJSON} {
		var out bytes.Buffer
		if err := follow(ctx, q, events.Oldest, 0, true, &out, tell); err != nil || out.Len() > 0 {
			t.Errorf("%s: %v, %q, want no output", name, err, &out)
		}
	}
}

// silent returns the address of a server that never answers. When it is sent something, it calls
// asked and hangs up, so that the client does not wait for its timeout.
func silent(t *testing.T, asked func()) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		listener.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 1))
			asked()
			conn.Close()
		}
	}()
	return listener.Addr().String()
}
