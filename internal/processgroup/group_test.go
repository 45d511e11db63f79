package processgroup_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/processgroup"
	"github.com/curfew-dev/curfew/internal/test/await"
)

// role is the variable that makes this test binary one of the processes of a test.
const role = "CURFEW_GROUP_ROLE"

func TestMain(m *testing.M) {
	if as := os.Getenv(role); as != "" {
		go play(as)
		io.Copy(io.Discard, os.Stdin) // until it is killed, or the process of the tests has ended
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(as string) {
	switch as {
	case "parent": // starts a child
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), role+"=child")
		child.Stdin, child.Stdout = os.Stdin, os.Stdout
		child.Run()
	case "child":
		os.Stdout.WriteString("started\n")
	case "polite": // ends with code 7 when it is asked to
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
		os.Stdout.WriteString("started\n")
		<-asked
		os.Exit(7)
	case "starter": // starts a group
		startGroup("parent")
	}
}

// startGroup starts this binary in a role. Its input and output, and those of what it starts, are this process's.
func startGroup(as string) {
	cmd := command(as)
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	if _, err := processgroup.Start(cmd); err != nil {
		panic(err)
	}
}

func command(as string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+as)
	return cmd
}

// started starts a group, and returns when one of its processes has written a line. ended is closed when no process
// of the group holds the output any more.
func started(t *testing.T, as string) (cmd *exec.Cmd, g *processgroup.Group, ended chan struct{}) {
	t.Helper()
	cmd = command(as)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { alive.Close() })
	if g, err = processgroup.Start(cmd); err != nil {
		t.Fatal(err)
	}
	w.Close()
	lines := bufio.NewReader(r)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	ended = make(chan struct{})
	go func() {
		io.Copy(io.Discard, lines)
		r.Close()
		close(ended)
	}()
	return cmd, g, ended
}

func TestKillEndsWhatTheCommandHasStarted(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, g, ended := started(t, "parent")
	if g.ID() != cmd.Process.Pid || !g.Alive() {
		t.Errorf("id %d, alive %v", g.ID(), g.Alive())
	}
	g.Kill()
	cmd.Process.Wait()
	await.Receive(t, ended, "the end of the command and its child")
	g.Release()
	await.Until(t, "no process of the group is left", func() bool { return !g.Alive() })
	g.Kill() // does nothing
	g.Stop()
	g.Release()
}

func TestACommandThatIsNotThereIsAnError(t *testing.T) {
	if _, err := processgroup.Start(exec.Command("./no-such-command")); err == nil {
		t.Error("no error")
	}
}
