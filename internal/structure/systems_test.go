package structure

import (
	"os"
	"os/exec"
	"testing"
)

// forOneSystem are the packages with files for one system only, and all of the command.
var forOneSystem = []string{"./bench", "./internal/outside", "./internal/processgroup", "./internal/redisproc", "./cmd/curfew/internal/..."}

// Go's build cache makes this cheap when it runs again.
func TestTheCommandIsBuiltForOtherSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles everything twice if Go's build cache is empty")
	}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			for _, args := range [][]string{{"build", "-trimpath", "-o", os.DevNull, "./cmd/curfew"}, append([]string{"vet", "-trimpath"}, forOneSystem...)} {
				run := exec.Command("go", args...)
				run.Dir = "../.."
				run.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
				if said, err := run.CombinedOutput(); err != nil {
					t.Errorf("go %v: %v\n%s", args, err, said)
				}
			}
		})
	}
}
