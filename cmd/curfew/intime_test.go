package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// lateError is the error of a try that a busy machine can cause.
type lateError struct{ error }

// lateIf returns err, as a lateError if late.
func lateIf(late bool, err error) error {
	if late {
		return lateError{err}
	}
	return err
}

// inTime calls try until it returns no lateError. A busy machine can stop a process for longer than a promise about time allows, and no
// program can prevent that. Code that is itself too slow is late each time, and fails the test after await.Patience. try gets a number
// that begins with 1 and is four times as large after each try, up to 64, for limits that the test chooses.
func inTime(t *testing.T, try func(slower time.Duration) error) {
	t.Helper()
	slower := time.Duration(1)
	for over := time.Now().Add(await.Patience); ; slower = min(4*slower, 64) {
		err := try(slower)
		if err == nil {
			return
		}
		if !errors.As(err, new(lateError)) || time.Now().After(over) {
			t.Error(err)
			return
		}
		t.Logf("another try, after %v", err)
	}
}

// aCall starts a command that gives up after the five seconds of a call, because the server of the URL does not answer. It returns a
// function that reports whether the command still runs: what ends before it has not waited for the server.
func aCall(t *testing.T, url string) (runs func() bool) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	t.Cleanup(interrupt)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runWith(ctx, []string{"curfew", "ls", "--redis", url}, strings.NewReader(""), io.Discard, io.Discard)
	}()
	return func() bool {
		select {
		case <-ended:
			return false
		default:
			return true
		}
	}
}
