package redisproc

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is a child process and the thread that started it.
type process struct {
	pid  int
	os   *os.Process
	done chan struct{} // closed when it has ended
}

// spawn starts a command that dies with this process, however that ends. The kernel
// ties it to the thread that started it, so that thread is kept until the command ended.
func spawn(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = dieWithParent()
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

func (p *process) kill() {
	p.os.Signal(syscall.SIGKILL)
	<-p.done
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
