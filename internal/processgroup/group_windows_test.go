package processgroup_test

import (
	"bufio"
	"io"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// Windows ends the group of a process that is killed, without a process that watches.
func TestAGroupEndsWithItsStarter(t *testing.T) {
	starter := command("starter")
	out, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	alive, err := starter.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	starter.Process.Kill()
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, lines)
		close(ended)
	}()
	await.Receive(t, ended, "the end of the group")
	starter.Wait()
}
