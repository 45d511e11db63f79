package redisproc

import (
	"os"
	"os/exec"
	"time"
)

// Child is a process of a test or a measurement that is not a server. Like a server it ends with
// this process on Linux and Windows, even if this process is killed.
type Child struct {
	cmd     *exec.Cmd
	process *process
}

// Spawn starts a command in a process group of its own. Writers of the command get no more output
// a second after the process has ended, even if a child of it lives on.
func Spawn(cmd *exec.Cmd) (*Child, error) {
	cmd.WaitDelay = time.Second
	p, err := spawn(cmd)
	if err != nil {
		return nil, err
	}
	return &Child{cmd, p}, nil
}

// Kill kills the process and its children (SIGKILL), and returns when the process has ended.
func (c *Child) Kill() { c.process.kill() }

// Signal sends a signal to the process, and not to its children.
func (c *Child) Signal(s os.Signal) error { return c.process.os.Signal(s) }

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.process.done }

// Succeeded reports whether the process has ended with exit code 0. It waits for the end.
func (c *Child) Succeeded() bool {
	<-c.process.done
	return c.cmd.ProcessState.Success()
}
