package scripts_test

import (
	"fmt"
	"strings"
	"testing"
)

// A folder for temporary files that is full, or that nobody may write to, is told before anything is built.
func TestRoomForTemporaryFiles(t *testing.T) {
	for _, test := range []struct {
		claim string
		free  int // MiB
		dir   string
		want  string
	}{
		{"enough", 400, "", ""},
		{"too little", 399, "", "has 399 MiB free, and the tests need 400: free some, or set TMPDIR to another folder."},
		{"no folder", 400, "/missing", "/missing: set TMPDIR to a folder that they can write to."},
	} {
		t.Run(test.claim, func(t *testing.T) {
			m := newMachine(t, map[string]string{"df": fmt.Sprintf(`echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
echo "/dev/x 9999999 9 %d 1%% $2"`, test.free*1024)})
			cmd := m.command("room")
			cmd.Env = append(cmd.Env, "TMPDIR="+m.dir+test.dir)
			said, err := cmd.CombinedOutput()
			if good := test.want == ""; good != (err == nil) || !strings.HasSuffix(strings.TrimSpace(string(said)), test.want) || good && len(said) > 0 {
				t.Errorf("%q, %v, want %q", said, err, test.want)
			}
		})
	}
}
