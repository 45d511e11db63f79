package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

func TestDurationFlagReadsDaysAndZero(t *testing.T) {
	for _, row := range []struct {
		args string
		want time.Duration
	}{
		{"", 2 * time.Second}, {"--lease 1d", 24 * time.Hour}, {"--lease=1d12h", 36 * time.Hour}, {"--lease 0s", 0}, {"--lease 0", 0}, {"--lease 500ms", 500 * time.Millisecond},
	} {
		got := time.Duration(-1)
		program := &cli.App{
			Flags:  []cli.Flag{DurationFlag("lease", 2*time.Second, "how long")},
			Action: func(c *cli.Context) error { got = DurationOf(c, "lease"); return nil },
		}
		if err := program.Run(append([]string{"curfew"}, strings.Fields(row.args)...)); err != nil || got != row.want {
			t.Errorf("%s is %v, %v, want %v", row.args, got, err, row.want)
		}
	}
}

// A cli.DurationFlag does not read days, and its errors do not say what to write.
func TestDurationsAreReadInOneWay(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "cli."+"DurationFlag{") {
			t.Errorf("%s has a cli.DurationFlag: use app.DurationFlag", name)
		}
	}
}
