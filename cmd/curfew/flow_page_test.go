package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/pages"
)

// docs/how-to/flows.md is played as a reader does, in an empty folder with a shell: the files that it shows, the commands, and what they
// print.
func TestThePageOfFlowsRuns(t *testing.T) {
	t.Parallel()
	page, err := pages.Read("../..", "docs/how-to/flows.md")
	if err != nil {
		t.Fatal(err)
	}
	r := &flowReader{tutorial: tutorial{t: t, ids: map[string]string{}}, home: t.TempDir()}
	r.file("bin/curfew", fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", commandVariable, os.Args[0]))
	for _, b := range page.Blocks() {
		switch {
		case b.Language == "yaml":
			r.file("publish.yaml", b.Code)
		case b.Language == "sh":
			r.file("steps.sh", b.Code)
		case b.Language == "console":
			r.play(b.Code)
		}
	}
	if r.played < 12 {
		t.Errorf("%d commands of the page were played", r.played)
	}
}

// flowReader is a reader who plays a page in a shell.
type flowReader struct {
	tutorial
	home   string // the folder
	played int
}

func (r *flowReader) file(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := redisproc.WriteProgram(path, text); err != nil {
		r.t.Fatal(err)
	}
}

// shell returns a command of a shell in the folder.
func (r *flowReader) shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = r.home
	cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+r.address, "PATH="+filepath.Join(r.home, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"), "XDG_CONFIG_HOME="+r.home)
	return cmd
}

func (r *flowReader) play(code string) {
	for _, part := range strings.Split("\n"+code, "\n$ ")[1:] {
		command, output, _ := strings.Cut(part, "\n")
		r.played++
		switch {
		case command == "go install ./cmd/curfew", command == "export REDIS_URL=redis://"+tutorialServer:
		case command == "curfew dev --no-demo":
			r.address = start(r.t, command[len("curfew "):]+" --port 0").until(r.t, `redis://([0-9.:]+)`)[1]
		case strings.HasPrefix(command, "curfew work "):
			r.leave(command)
		default:
			r.look(command, strings.TrimSpace(output))
		}
	}
}

// leave starts a command that runs until the page has been played.
func (r *flowReader) leave(command string) {
	spawn(r.t, r.shell("exec "+command))
}

// look runs a command until it prints what the page says. Those that change something run once.
func (r *flowReader) look(command, want string) {
	r.t.Helper()
	for page, real := range r.ids {
		command = strings.ReplaceAll(command, page, real)
	}
	got := ""
	same := func() bool {
		out, _ := r.shell(command).CombinedOutput()
		got = logged.ReplaceAllString(string(out), "")
		return r.same(want, got)
	}
	soon := func() bool { // without a shell, which takes fifty times as long
		var out bytes.Buffer
		runWith(r.t.Context(), append(strings.Fields(command), "--redis", "redis://"+r.address), strings.NewReader(""), &out, io.Discard)
		got = out.String()
		return r.same(want, got) && same()
	}
	defer func() {
		if r.t.Failed() {
			r.t.Logf("%s printed\n%s\nwant\n%s", command, got, want)
		}
	}()
	if strings.HasPrefix(command, "curfew flow get") {
		await.Until(r.t, command+" prints what the page says", soon)
	} else if !same() {
		r.t.Errorf("%s does not print what the page says", command)
	}
}
