package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// A command that has done all when the signal comes is not interrupted. The signal comes between the last call and its reply.
func TestAFinishedCommandIsNotInterrupted(t *testing.T) {
	rdb, url := database(t)
	for name, row := range map[string]struct {
		args, stdin string
		last        string // a word of the last call
		out         string
	}{
		"drain":  {"queue drain mail --yes --reason enough", "", "enough", "mail  drained: 2 tasks cancelled\n"},
		"batch":  {"enqueue --batch -", `{"kind":"letter","id":"0-LETTER"}` + "\n", "0-LETTER", "0-LETTER\n"},
		"remove": {"namespace rm remove --yes --force", "", "remove:{0}", "keys of remove\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queuetest.Open(t, rdb, queue.Config{Namespace: name})
			for range 2 {
				queuetest.Enqueue(t, q, queue.Task{Queue: "mail"})
			}
			proxy := faultproxy.Start(t, rdb.Options().Addr)
			held := proxy.Hold(func(args [][]byte) bool {
				if name == "remove" {
					return len(args) == 2 && strings.EqualFold(string(args[0]), "unlink") && string(args[1]) == row.last
				}
				return bytes.Contains(bytes.Join(args, nil), []byte(row.last))
			})
			ctx, interrupt := context.WithCancel(t.Context())
			var out, errs bytes.Buffer
			ended := make(chan int, 1)
			go func() {
				words := append([]string{"curfew"}, strings.Fields(row.args)...)
				if name != "remove" {
					words = append(words, "--namespace", name)
				}
				ended <- runWith(ctx, append(words, "--redis", strings.Replace(url, rdb.Options().Addr, proxy.Addr, 1)), strings.NewReader(row.stdin), &out, &errs)
			}()
			held.Await(t)
			interrupt()
			proxy.Release()
			code := await.Receive(t, ended, "the end of the command")
			if code != 0 || !strings.Contains(out.String(), row.out) || errs.Len() > 0 {
				t.Errorf("curfew %s: exit %d, stdout %q, stderr %q; want %q", row.args, code, &out, &errs, row.out)
			}
		})
	}
}
