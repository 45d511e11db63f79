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
	done chan struct{} // closed when it has ended
}

// spawn starts a command, in a group of its own, that dies with this process, however
// that ends. The kernel ties it to the thread that started it, so that thread is kept
// until the command ended.
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

// kill ends the process and what it forked: a child that rewrites a file goes on writing
// after its server is dead, into a folder that a test wants to remove.
func (p *process) kill() {
	if !p.ended() {
		syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	<-p.done
	for range 100 {
		if syscall.Kill(-p.pid, 0) != nil {
			return
		}
		time.Sleep(time.Millisecond) // only the parent of a process is told that it ended, and that is not us
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
