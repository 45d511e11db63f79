package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/internal/app"
)

func TestGateEndsWithItsOwnExitCode(t *testing.T) {
	var out strings.Builder
	err := gate(&out, bench.Report{Figures: []bench.Figure{{Name: "enqueue one: commands", Value: 1000, Unit: "a task"}}})
	var coded cli.ExitCoder
	if !errors.As(err, &coded) || coded.ExitCode() != app.ExitThreshold {
		t.Errorf("gate = %v, want exit code %d", err, app.ExitThreshold)
	}
	if !strings.Contains(out.String(), "enqueue one: commands: 1000 a task, the limit is") {
		t.Errorf("the gate prints\n%s", out.String())
	}
}
