package redisproc

import (
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/curfew-dev/curfew/internal/processgroup"
)

// process is a child process and the thread that started it.
type process struct {
	pid   int
	os    *os.Process
	group *processgroup.Group
	done  chan struct{} // closed when the process has ended
}

// spawn starts a command in a group of its own. On Linux and Windows the command ends with this process,
// even if this process is killed. The kernel ties it to the thread that started it, so spawn keeps
// that thread until the command ends.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		group, err := processgroup.Start(cmd)
		if err != nil {
			started <- err
			return
		}
		p.pid, p.os, p.group = cmd.Process.Pid, cmd.Process, group
		started <- nil
		cmd.Wait()
		close(p.done)
	}()
	return p, <-started
}

// kill kills the process and its children. It waits until the process has ended, and up to 100 ms for
// its children. A child that rewrites a file would otherwise write on, into a folder that a test removes.
func (p *process) kill() {
	if !p.ended() {
		p.group.Kill()
	}
	<-p.done
	for range 100 {
		if !p.group.Alive() {
			break
		}
		time.Sleep(time.Millisecond) // nothing notifies this process, which is not the parent of the children
	}
	go p.group.Release() // it waits for children that this process has taken over, however long they take to end
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
