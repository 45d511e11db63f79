//go:build unix

package processgroup

import (
	"os/exec"
	"syscall"
)

// Group is a command with all processes that it has started, except those that left its group.
type Group struct{ id int }

// Start starts a command that leads a group in a session of its own: Ctrl-C at the terminal of this
// process does not reach it, and it cannot wait for input there. On Linux the kernel kills the command,
// and not what it has started, when the calling thread ends: the caller must lock it.
func Start(cmd *exec.Cmd) (*Group, error) {
	cmd.SysProcAttr = dieWithParent()
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Group{cmd.Process.Pid}, nil
}

// ID returns the id of the group, which is the process id of the command.
func (g *Group) ID() int { return g.id }

// Stop asks all processes of the group to end, with SIGTERM. If none is left, it does nothing.
func (g *Group) Stop() { syscall.Kill(-g.id, syscall.SIGTERM) }

// Kill ends all processes of the group. If none is left, it does nothing.
func (g *Group) Kill() { syscall.Kill(-g.id, syscall.SIGKILL) }

// Alive reports whether a process of the group runs. The caller has waited for the command.
func (g *Group) Alive() bool { return syscall.Kill(-g.id, 0) == nil && !onlyZombies(g.id) }

// Release takes the exit codes of the group's processes that are children of this process: in a
// container this process can be the first one, which gets the processes whose parents have ended.
// They would stay as zombies. All others have a parent that does it. The group was killed before.
func (g *Group) Release() {
	for {
		if _, err := syscall.Wait4(-g.id, nil, 0, nil); err != nil && err != syscall.EINTR {
			return
		}
	}
}

// Kill kills the group with an id. 1 would be every process, and 0 the group of the caller.
func Kill(id int) {
	if id > 1 {
		syscall.Kill(-id, syscall.SIGKILL)
	}
}
