package requirements

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

type page struct{ Path string }

func render(context.Context, page) (string, error) { return "index.png", nil }

// Example is the code of README.md. It needs a Redis, so TestTheReadmeRuns calls it.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	rdb, err := queue.Connect(os.Getenv("REDIS_URL")) // redis://localhost:6379/0
	if err != nil {
		log.Fatal(err)
	}
	q, err := queue.Open(ctx, rdb, queue.Config{})
	if err != nil {
		log.Fatal(err)
	}

	w := worker.New(q, worker.Config{Concurrency: 50})
	worker.Handle(w, "render", func(ctx context.Context, in page) (string, error) {
		return render(ctx, in) // ctx ends when the task's time is up
	})
	go w.Run(ctx)

	task, err := q.Enqueue(ctx, queue.Task{Kind: "render", Payload: []byte(`{"Path": "/"}`), Timeout: 30 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	result, err := q.Result(ctx, task.ID)
	var late *queue.TaskTimedOutError
	if errors.As(err, &late) {
		fmt.Println("not in time:", late.Deadline)
	}
	fmt.Println(string(result), err)
}

func TestTheReadmeRuns(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+redistest.Start(t).Addr+"/0")
	real := os.Stdout
	defer func() { os.Stdout = real }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = w
	Example()
	w.Close()
	var out bytes.Buffer
	out.ReadFrom(r)
	if got, want := out.String(), "\"index.png\" <nil>\n"; got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
}

// TestTheReadmeIsThatCode compares the first block of Go in README.md with Example.
func TestTheReadmeIsThatCode(t *testing.T) {
	_, block, found := strings.Cut(document(t, "README.md"), "```go\n")
	block, _, ended := strings.Cut(block, "\n```")
	if !found || !ended {
		t.Fatal("README.md has no block of Go code")
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "readme_test.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == "Example" {
			var text bytes.Buffer
			printer.Fprint(&text, files, &printer.CommentedNode{Node: f.Body, Comments: parsed.Comments})
			if got, want := lines(block), lines(strings.Trim(text.String(), "{}")); got != want {
				t.Errorf("the code in README.md is\n%s\nand that of Example is\n%s", got, want)
			}
		}
	}
}

// lines returns code without indentation and empty lines.
func lines(code string) string {
	var kept []string
	for line := range strings.Lines(code) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
