package tasks

import (
	"flag"
	"testing"

	"github.com/urfave/cli/v2"
)

// With --quiet workers are not read, since they are read for a remark only.
func TestAQuietListDoesNotReadWorkers(t *testing.T) {
	flags := flag.NewFlagSet("ls", flag.ContinueOnError)
	flags.Bool("quiet", true, "")
	if err := (misrouted{place{"mail", "letter"}: 1}).warn(cli.NewContext(nil, flags, nil), nil); err != nil {
		t.Error(err)
	}
}
