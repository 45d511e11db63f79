package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/linked"
	"github.com/curfew-dev/curfew/internal/test/pages"
)

// tutorial plays the blocks of a page as a reader does.
type tutorial struct {
	t        *testing.T
	programs string            // the folder of the programs of all pages
	slower   int               // a second of a program of the page takes as many
	address  string            // of the Redis that curfew dev has started
	folder   string            // what the page told to run; a program runs once
	running  *harness.Logs     // the output of the program that was started last
	read     int               // how many lines of that have been compared
	missed   bool              // the reader was too late for what a command of the page shows
	ids      map[string]string // real ids by those of the page
}

// tutorialServer is the server that the pages tell to start.
const tutorialServer = "127.0.0.1:7421"

func TestTheTutorialsRun(t *testing.T) {
	t.Parallel()
	var all []pages.Page
	for _, name := range []string{"first-deadline", "first-agent"} {
		page, err := pages.Read("../..", "docs/tutorial/"+name+".md")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page)
	}
	programs := linked.Build(t, "../..", "", programsOf(all))
	for _, page := range all {
		t.Run(strings.TrimSuffix(filepath.Base(page.Path), ".md"), func(t *testing.T) {
			t.Parallel()
			// A reader has some seconds for what a command shows. If the machine is too busy for them, all takes four times as long.
			for slower := 1; slower <= 64; slower *= 4 {
				reader := &tutorial{t: t, programs: programs, slower: slower, ids: map[string]string{}}
				for _, block := range page.Blocks() {
					if block.Language == "console" && !reader.missed {
						reader.play(block.Code)
					}
				}
				if reader.folder == "" {
					t.Error("the page runs no program")
				}
				if !reader.missed {
					return
				}
			}
			t.Error("the reader was too late each time")
		})
	}
}

// programsOf returns the programs of pages by the folders in which they run them. A second of a program takes CURFEW_TEST_SECOND.
func programsOf(all []pages.Page) map[string]string {
	programs := map[string]string{}
	longer := strings.NewReplacer("time.Second", "second", "time.Minute", "60*second")
	for _, page := range all {
		newest := ""
		for _, block := range page.Blocks() {
			if block.Language == "go" {
				newest = longer.Replace(block.Code) + "\nvar second, _ = time.ParseDuration(os.Getenv(\"CURFEW_TEST_SECOND\"))\n"
			}
			for _, words := range block.Commands() {
				if folder, runs := strings.CutPrefix(strings.Join(words, " "), "go run ./"); runs && !strings.Contains(folder, "/") {
					programs[folder] = newest
				}
			}
		}
	}
	return programs
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
		if r.run(command, strings.TrimSpace(output)); r.missed {
			return
		}
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
			await.Until(r.t, "curfew explain prints what the page says", func() bool {
				same = look()
				r.missed = !same && len(r.printed()) > r.read // the program has gone on
				return same || r.missed
			})
			same = true
		} else {
			same = look()
		}
	default:
		r.t.Errorf("the test cannot run %q", command)
	}
}

// start starts the program of a folder.
func (r *tutorial) start(folder string) {
	r.t.Helper()
	r.folder, r.running, r.read = folder, &harness.Logs{}, 0
	cmd := exec.Command(filepath.Join(r.programs, folder))
	cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+r.address, fmt.Sprintf("CURFEW_TEST_SECOND=%ds", r.slower))
	cmd.Stdout, cmd.Stderr = r.running, r.running
	spawn(r.t, cmd)
}

// printed returns the lines that the program has printed.
func (r *tutorial) printed() []string {
	if r.running == nil {
		return nil
	}
	text := strings.TrimRight(logged.ReplaceAllString(r.running.String(), ""), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// expect waits until the program has printed these lines after those that were expected before.
func (r *tutorial) expect(output string) {
	r.t.Helper()
	want := strings.Split(output, "\n")
	var got []string
	await.Until(r.t, fmt.Sprintf("the output of %s", r.folder), func() bool {
		got = r.printed()[r.read:]
		return len(got) >= len(want)
	})
	if got = got[:len(want)]; !r.same(output, strings.Join(got, "\n")) {
		r.t.Errorf("%s printed\n%s\nwant\n%s", r.folder, strings.Join(got, "\n"), output)
	}
	r.read += len(want)
}

var (
	// Whoever ends a task logs it: the server of the page, or a command or program that came first. On a machine that stops for a
	// second, a sweep can be without a reply for as long.
	logged   = regexp.MustCompile(`(?m)^(?:time=\S+ level=\w+ msg="|[\d/]+ [\d:]+ \w+ )(?:Task timed out|Error timing out expired tasks: sweep: outcome unknown|Expired tasks are timed out again).*\n`)
	idInPage = regexp.MustCompile(`\b\d-[0-9A-HJKMNP-TV-Z]{18}\b`)
	varies   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\b(?:\d+[hm])*\d+(?:\.\d+)?m?s\b|\b(?:\d+[hm])+ left\b`) // instants and spans
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
