package outside

import (
	"errors"
	"fmt"
	"net"
	"os"
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
