package faults

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// wallclock steps the wall clock of a redis-server.
type wallclock struct {
	t    *testing.T
	file string
}

// withClock starts a server whose wall clock can be stepped. Its tests cannot be parallel, because
// the environment of this process says what to preload.
func withClock(t *testing.T) (*redistest.Server, *wallclock) {
	t.Helper()
	dir := t.TempDir()
	library := filepath.Join(dir, "wallclock.so")
	for _, step := range [][]string{
		{"sh", "../../../scripts/gcc"}, // installs a compiler if there is none
		{compiler(), "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, "testdata/wallclock.c", "-ldl"},
	} {
		if said, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", step, err, said)
		}
	}
	c := &wallclock{t: t, file: filepath.Join(dir, "offset")}
	c.step(0)
	t.Setenv("WALLCLOCK", c.file)
	t.Setenv("LD_PRELOAD", library)
	server := redistest.Start(t)
	os.Unsetenv("LD_PRELOAD")
	rdb := harness.Client(t, server.Addr)
	c.step(time.Hour)
	if now := rdb.Time(t.Context()).Val(); time.Until(now) < 59*time.Minute {
		t.Fatalf("the clock of Redis did not step: TIME is %v", now)
	}
	c.step(0)
	return server, c
}

func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

// step sets the server's clock to the machine's clock plus offset.
func (c *wallclock) step(offset time.Duration) {
	c.t.Helper()
	file, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o600) // in place, because the server maps the file
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(binary.NativeEndian.AppendUint64(nil, uint64(offset))); err != nil {
		c.t.Fatal(err)
	}
}
