package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/pages"
	"github.com/curfew-dev/curfew/internal/stages"
)

// tutorial plays the blocks of a page as a reader does.
type tutorial struct {
	t       *testing.T
	address string            // of the Redis that curfew dev has started
	program string            // the newest program of the page
	folder  string            // what the page told to run; a program runs once
	running *stages.Logs      // the output of the program that was started last
	read    int               // how many lines of that have been compared
	ids     map[string]string // real ids by those of the page
}

// tutorialServer is the server that the pages tell to start.
const tutorialServer = "127.0.0.1:7421"

func TestTheTutorialsRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"first-deadline", "first-agent"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := pages.Read("../..", "docs/tutorial/"+name+".md")
			if err != nil {
				t.Fatal(err)
			}
			reader := &tutorial{t: t, ids: map[string]string{}}
			for _, block := range page.Blocks() {
				switch block.Language {
				case "go":
					reader.program = block.Code
				case "console":
					reader.play(block.Code)
				}
			}
			if reader.folder == "" {
				t.Error("the page runs no program")
			}
		})
	}
}

// play runs the commands of a block, and compares what they print with what stands behind them. Output before the first
// command is that of the program that runs.
func (r *tutorial) play(code string) {
	parts := strings.Split("\n"+code, "\n$ ")
	if output := strings.TrimSpace(parts[0]); output != "" {
		r.expect(output)
	}
	for _, part := range parts[1:] {
		command, output, _ := strings.Cut(part, "\n")
		r.run(command, strings.TrimSpace(output))
	}
}

func (r *tutorial) run(command, output string) {
	r.t.Helper()
	words := strings.Fields(command)
	switch {
	case command == "export REDIS_URL=redis://"+tutorialServer:
	case command == "go install ./cmd/curfew":
	case command == "go run ./cmd/curfew dev": // TestDevShowsATimeoutAndAWakeUpOnBothServers plays it
	case command == "curfew dev --no-demo":
		r.address = start(r.t, command[len("curfew "):]+" --port 0").until(r.t, `redis://([0-9.:]+)`)[1]
	case len(words) == 3 && words[0] == "go" && words[1] == "run":
		r.start(words[2])
		r.expect(output)
	case words[0] == "curfew":
		for i, word := range words {
			for page, real := range r.ids {
				word = strings.ReplaceAll(word, page, real)
			}
			words[i] = strings.ReplaceAll(word, tutorialServer, r.address)
		}
		if !strings.Contains(command, "--redis") {
			words = append(words, "--redis", "redis://"+r.address)
		}
		var out, errs bytes.Buffer
		look := func() bool {
			out.Reset()
			errs.Reset()
			run(r.t.Context(), words, &out, &errs)
			return r.same(output, out.String()+logged.ReplaceAllString(errs.String(), ""))
		}
		same := false
		defer func() {
			if !same {
				r.t.Errorf("%s printed\n%s%s\nwant\n%s", command, out.String(), errs.String(), output)
			}
		}()
		if words[1] == "explain" { // the state that follows what the program has printed may not be written yet
			await.Until(r.t, "curfew explain prints what the page says", look)
			same = true
		} else {
			same = look()
		}
	default:
		r.t.Errorf("the test cannot run %q", command)
	}
}

// start builds the newest program of the page as if it lay in this folder of the repository, and starts it.
func (r *tutorial) start(folder string) {
	r.t.Helper()
	temp := r.t.TempDir()
	file, overlay, binary := filepath.Join(temp, "main.go"), filepath.Join(temp, "overlay.json"), filepath.Join(temp, "program")
	virtual, err := filepath.Abs(filepath.Join("../..", folder, "main.go"))
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{virtual: file}})
	if err != nil {
		r.t.Fatal(err)
	}
	for name, content := range map[string]string{file: r.program, overlay: string(text)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", binary, folder)
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	r.folder, r.running, r.read = folder, &stages.Logs{}, 0
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+r.address)
	cmd.Stdout, cmd.Stderr = r.running, r.running
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// expect waits until the program has printed these lines after those that were expected before.
func (r *tutorial) expect(output string) {
	r.t.Helper()
	want := strings.Split(output, "\n")
	var got []string
	await.Until(r.t, fmt.Sprintf("the output of %s", r.folder), func() bool {
		printed := logged.ReplaceAllString(r.running.String(), "")
		got = strings.Split(strings.TrimRight(printed, "\n"), "\n")[r.read:]
		return len(got) >= len(want) && printed != ""
	})
	if got = got[:len(want)]; !r.same(output, strings.Join(got, "\n")) {
		r.t.Errorf("%s printed\n%s\nwant\n%s", r.folder, strings.Join(got, "\n"), output)
	}
	r.read += len(want)
}

var (
	// Whoever ends a task logs it: the server of the page, or a command or program that came first.
	logged   = regexp.MustCompile(`(?m)^(?:time=\S+ level=INFO msg="Task timed out"|[\d/]+ [\d:]+ INFO Task timed out) .*\n`)
	idInPage = regexp.MustCompile(`\b\d-[0-9A-HJKMNP-TV-Z]{18}\b`)
	varies   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d+(?:\.\d+)?m?s\b`) // instants and spans
)

// same compares what a page says with what was printed. Ids, instants, spans and line breaks can differ. It notes the real ids.
func (r *tutorial) same(page, real string) bool {
	mask := func(text string) string {
		return strings.Join(strings.Fields(varies.ReplaceAllString(idInPage.ReplaceAllString(text, "ID"), "TIME")), " ")
	}
	if mask(page) != mask(real) {
		return false
	}
	told, printed := idInPage.FindAllString(page, -1), idInPage.FindAllString(real, -1)
	for i := range told {
		if known, is := r.ids[told[i]]; is && known != printed[i] {
			return false
		}
		r.ids[told[i]] = printed[i]
	}
	return true
}
