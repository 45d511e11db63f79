package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// repository makes a repository of one module. Each commit has the given bodies of the test of package m.
func repository(t *testing.T, bodies ...string) (dir string) {
	dir = t.TempDir()
	do := func(args ...string) {
		t.Helper()
		git := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		git.Dir = dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	do("init", "--quiet")
	write("go.mod", "module m\n\ngo 1.26\n")
	write("size/size.go", "package size\n\nimport \"os\"\n\nfunc Long() bool { return os.Getenv(\"CURFEW_LONG\") != \"\" }\n")
	for _, body := range bodies {
		write("p/p_test.go", "package p\n\nimport (\"m/size\"; \"os\"; \"testing\"; \"time\")\n\nvar ( _ = os.Getenv; _ = time.Now )\n\nfunc TestIt(t *testing.T) {\n if size.Long() {\n"+body+"\n}\n}\n")
		do("add", "-A")
		do("commit", "--quiet", "-m", "a")
	}
	return dir
}

func TestWhoBrokeATest(t *testing.T) {
	for _, test := range []struct {
		claim              string
		bodies             []string
		ran, broken, known int
		ended              int
	}{
		{"nobody", []string{``, `_ = 1`}, 1, 0, 0, 0},
		{"the change", []string{``, `t.Error("no")`}, 1, 1, 0, 0},
		{"an earlier change", []string{`t.Error("no")`, `t.Error("no, again")`}, 1, 0, 1, 0},
		{"the first change", []string{`t.Error("no")`}, 1, 1, 0, 0},
		{"nobody, since the time does not suffice", []string{``, `time.Sleep(time.Hour)`}, 0, 0, 0, 1},
		{"nobody, and the test has the patience of others", []string{``, `if by, ok := t.Deadline(); ok && time.Until(by) < 9*time.Minute { t.Error("no patience") }`}, 1, 0, 0, 0},
		{"nobody, since it does not fail again", []string{``, `if os.Remove("once") == nil { t.Error("no") }`}, 1, 0, 1, 0},
		{"nobody, and the test has a seed", []string{``, `if os.Getenv("CURFEW_SEED") == "" { t.Error("no seed") }`}, 1, 0, 0, 0},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			most := 5 * time.Minute
			if test.ended > 0 {
				most = time.Second
			}
			dir := repository(t, test.bodies...)
			os.WriteFile(filepath.Join(dir, "p", "once"), nil, 0o600)
			d := draw{out: &out, dir: dir, over: time.Now().Add(5 * time.Minute), most: most}
			broken, err := d.run(t.Context())
			want := fmt.Sprintf("the tree draws %d long tests: %d broken by the change, %d known failures; %d took too long and were ended\n", test.ran, test.broken, test.known, test.ended)
			if err != nil || broken != test.broken || !strings.HasSuffix(out.String(), want) {
				t.Errorf("%d, %v\n%s\nwant %q at its end", broken, err, out.String(), want)
			}
			if named := strings.Contains(out.String(), "known failure, ") && strings.Contains(out.String(), ": CURFEW_LONG=1 CURFEW_SEED="); named != (test.known > 0) {
				t.Errorf("how to repeat a known failure is there: %v\n%s", named, out.String())
			}
		})
	}
}
