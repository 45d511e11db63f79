package processgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Group is a command with all processes that it has started. Windows kills them when this process ends,
// in whatever way, because this process then no longer holds their job object.
type Group struct {
	id int

	mu  sync.Mutex
	job windows.Handle // 0 after Release
}

// Start starts a command in a job object of its own. Ctrl-C at the console of this process does not reach it.
func Start(cmd *exec.Cmd) (*Group, error) {
	job, err := newJob()
	cmd.Err = cmp.Or(cmd.Err, err) // then cmd.Start closes the command's pipes, and returns it
	// A command that runs before it is in the job could start processes that are not in it. If this process
	// is killed while the command is suspended, the command stays suspended.
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		if job != 0 {
			windows.CloseHandle(job)
		}
		return nil, err
	}
	if err := begin(job, cmd.Process); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		windows.CloseHandle(job)
		return nil, err
	}
	return &Group{id: cmd.Process.Pid, job: job}, nil
}

// newJob returns a job object whose processes are killed when its handle is closed.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("cannot create a job object: %w", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		windows.CloseHandle(job)
		return 0, fmt.Errorf("cannot set up a job object: %w", err)
	}
	return job, nil
}

// begin puts a suspended process into a job, and lets it run.
func begin(job windows.Handle, process *os.Process) error {
	var assigned error
	err := process.WithHandle(func(handle uintptr) { assigned = windows.AssignProcessToJobObject(job, windows.Handle(handle)) })
	if err = errors.Join(err, assigned); err != nil {
		return fmt.Errorf("cannot put the command into a job object: %w", err)
	}
	return resume(uint32(process.Pid))
}

// resume lets a suspended process run. It has one thread, and os/exec has closed the handle of that.
func resume(pid uint32) error {
	threads, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("cannot list threads: %w", err)
	}
	defer windows.CloseHandle(threads)
	entry := windows.ThreadEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Thread32First(threads, &entry); err == nil; err = windows.Thread32Next(threads, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return fmt.Errorf("cannot open the thread of the command: %w", err)
		}
		defer windows.CloseHandle(thread)
		if _, err := windows.ResumeThread(thread); err != nil {
			return fmt.Errorf("cannot start the thread of the command: %w", err)
		}
		return nil
	}
	return fmt.Errorf("cannot find the thread of the command: %w", err)
}

// ID returns the process id of the command.
func (g *Group) ID() int { return g.id }

// Stop asks all processes of the group to end, with Ctrl-Break. Those that have no console, or another one
// than this process, do not get it.
func (g *Group) Stop() { windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(g.id)) }

// killed is the exit code of a process that Kill has ended. It is that of SIGKILL in a shell on Unix.
const killed = 137

// Kill ends all processes of the group. If none is left, it does nothing.
func (g *Group) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		windows.TerminateJobObject(g.job, killed)
	}
}

// Alive reports whether a process of the group runs. The caller has waited for the command.
func (g *Group) Alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job == 0 {
		return false
	}
	var counts struct { // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
		totalUser, totalKernel, periodUser, periodKernel int64
		pageFaults, processes, active, terminated        uint32
	}
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&counts)), uint32(unsafe.Sizeof(counts)), nil)
	return err == nil && counts.active > 0
}

// Release frees what Windows keeps of the group. The group was killed before.
func (g *Group) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		windows.CloseHandle(g.job)
		g.job = 0
	}
}
