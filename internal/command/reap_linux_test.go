package command_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
)

// prSetChildSubreaper makes a process the parent of processes below it whose parents have ended, as the
// first process of a container is.
const prSetChildSubreaper = 36

func becomeParent(t *testing.T, on uintptr) {
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, prSetChildSubreaper, on, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// A worker that is the first process of a container leaves no zombies of what commands have started.
func TestNoZombiesInAContainer(t *testing.T) {
	becomeParent(t, 1)
	defer becomeParent(t, 0)
	s := newStage(t)
	dir := t.TempDir()
	s.work(s.script(`sleep 60 & echo $! >$DIR/child; echo done`, dir).Handle)
	want{result: "done\n"}.compare(t, s.ended(s.enqueue(queue.Task{})))
	child := pid(t, dir, "child")
	await.Until(t, "the child is no process and no zombie", func() bool { return syscall.Kill(child, 0) == syscall.ESRCH })
}

// A group of zombies has ended: a command that must stop does not use up its grace because of one.
func TestZombiesAreNotWaitedFor(t *testing.T) {
	becomeParent(t, 1)
	defer becomeParent(t, 0)
	s := newStage(t)
	dir := t.TempDir()
	c := s.script(`sleep 60 & echo $! >$DIR/child; echo $$ >$DIR/pid; wait`, dir)
	c.Grace = time.Hour
	stop := s.work(c.Handle)
	id := s.enqueue(queue.Task{})
	pid(t, dir, "pid")
	if _, err := s.q.Cancel(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	stop()
	gone(t, "the child", pid(t, dir, "child"))
}
