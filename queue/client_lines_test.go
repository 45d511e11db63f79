package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// own is a logger of go-redis that a program has made.
type own struct{}

func (own) Printf(context.Context, string, ...any) { fmt.Println("own logger") }

// clientProgram is a program that makes go-redis write lines, since nothing listens at an address. It does before what its name says.
func clientProgram(name, addr string) {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	open := func(logger *slog.Logger) {
		if _, err := queue.Open(context.Background(), rdb, queue.Config{Logger: logger}); err != nil {
			fmt.Println(err)
		}
	}
	switch name {
	case "opens":
		open(logger)
	case "opens twice":
		open(logger)
		open(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
	case "sets its own logger and opens":
		redis.SetLogger(own{})
		open(logger)
	case "names a logger and opens":
		queue.LogClient(logger)
		open(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}
	redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}).Ping(context.Background())
}

// The lines of go-redis go where the program wants them, and a program that only opens a namespace has none of them on stderr.
func TestTheLinesOfTheClientGoToTheLogger(t *testing.T) {
	if name, is := os.LookupEnv("CURFEW_CLIENT_PROGRAM"); is {
		clientProgram(name, os.Getenv("CURFEW_CLIENT_ADDR"))
		os.Exit(0)
	}
	addr := redistest.Shared(t).Addr
	const logged = `level=DEBUG msg=".*failed to dial.*" client=go-redis`
	for _, row := range []struct{ program, stdout, stderr string }{ // what is on one does not go to the other
		{"opens", logged, ""},
		{"opens twice", logged, ""},
		{"names a logger and opens", logged, ""},
		{"sets its own logger and opens", `^own logger$`, ""},
		{"does not open", "", `^redis: .* pool\.go:\d+: .*failed to dial`},
	} {
		child := exec.Command(os.Args[0], "-test.run", "^TestTheLinesOfTheClientGoToTheLogger$")
		child.Env = append(os.Environ(), "CURFEW_CLIENT_PROGRAM="+row.program, "CURFEW_CLIENT_ADDR="+addr)
		var out, errs bytes.Buffer
		child.Stdout, child.Stderr = &out, &errs
		if err := child.Run(); err != nil {
			t.Fatalf("a program that %s: %v: %s", row.program, err, &errs)
		}
		for _, stream := range []struct{ name, text, want string }{{"stdout", out.String(), row.stdout}, {"stderr", errs.String(), row.stderr}} {
			of := regexp.MustCompile(`(?m).*(failed to dial|own logger).*`).FindAllString(stream.text, -1)
			if (stream.want == "") != (len(of) == 0) || len(of) > 0 && !regexp.MustCompile(stream.want).MatchString(of[0]) {
				t.Errorf("a program that %s: %s is %q, want lines of go-redis that fit %q", row.program, stream.name, strings.TrimSpace(stream.text), stream.want)
			}
		}
	}
}
