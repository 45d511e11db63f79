package races

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/lua"
)

// meter measures the CPU time of each script that a client calls.
type meter struct {
	*redistest.Meter
	library *lua.Library
}

func newMeter(t *testing.T, addr string) *meter {
	t.Helper()
	library, err := lua.Load(lua.Options{Functions: true}) // with the handles that the server uses
	if err != nil {
		t.Fatal(err)
	}
	return &meter{redistest.NewMeter(t, stages.Client(t, addr), func(cmd redis.Cmder) string {
		args := cmd.Args()
		if len(args) < 2 || !lua.IsVerb(cmd.Name()) {
			return ""
		}
		for _, name := range library.Names() {
			if args[1] == library.Handle(name) {
				return name
			}
		}
		t.Errorf("the client calls an unknown script: %v", args[1])
		return ""
	}), library}
}
