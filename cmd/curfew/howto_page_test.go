package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/pages"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// The commands of these pages are played in their order on a real Redis. Each succeeds, and prints what the page shows behind it.
func TestTheCommandsOfHowToPagesRun(t *testing.T) {
	for _, row := range []struct {
		page   string
		played int
	}{{"retry", 8}, {"once", 2}, {"limit", 3}, {"approve", 3}, {"size", 1}, {"deploy", 2}} {
		t.Run(row.page, func(t *testing.T) {
			page, err := pages.Read("../..", "docs/how-to/"+row.page+".md")
			if err != nil {
				t.Fatal(err)
			}
			reader := tutorial{t: t, ids: map[string]string{}}
			server := redistest.Start(t)
			url := "redis://" + server.Addr
			q, err := queue.Open(t.Context(), server.Client(t), queue.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ended, err := q.Enqueue(t.Context(), queue.Task{Kind: "mail", Payload: []byte("{}")})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.Cancel(t.Context(), ended.ID, ""); err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			if err := os.WriteFile(folder+"/mail.json", []byte(`{"to":"ada"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			played := 0
			for _, block := range page.Blocks() {
				if block.Language != "console" {
					continue
				}
				for _, part := range strings.Split("\n"+block.Code, "\n$ ")[1:] {
					line, output, _ := strings.Cut(part, "\n")
					words := pages.Block{Language: "sh", Code: line + "\n"}.Commands()[0]
					if words[0] != "curfew" {
						continue
					}
					played++
					for i, word := range words {
						word = strings.Replace(word, "@", "@"+folder+"/", 1)
						if idInPage.MatchString(word) && reader.ids[word] == "" {
							reader.ids[word] = ended.ID // a task from before
						}
						if id := reader.ids[word]; id != "" {
							word = id
						}
						words[i] = word
					}
					var out, errs bytes.Buffer
					code := runWith(t.Context(), append(words, "--redis", url), strings.NewReader(""), &out, &errs)
					if code != 0 || strings.TrimSpace(output) != "" && !reader.same(output, out.String()) {
						t.Errorf("%s: exit %d, %s%s", line, code, &out, &errs)
					}
				}
			}
			if played < row.played {
				t.Errorf("%d commands were played, want %d at least", played, row.played)
			}
		})
	}
}
