package redisproc

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child process and the thread that started it.
type process struct {
	pid  int
	os   *os.Process
	done chan struct{} // closed when the process has ended
}

// spawn starts a command in a new process group. On Linux the command ends with this process,
// even if this process is killed. The kernel ties it to the thread that started it, so spawn keeps
// that thread until the command ends.
func spawn(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = dieWithParent()
	cmd.SysProcAttr.Setpgid = true
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid, p.os = cmd.Process.Pid, cmd.Process
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
		syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	<-p.done
	for range 100 {
		if syscall.Kill(-p.pid, 0) != nil {
			return
		}
		time.Sleep(time.Millisecond) // nothing notifies this process, which is not the parent of the children
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
