package tasks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

// A batch is sent in chunks of so many tasks, or bytes.
const (
	chunkTasks = 2000
	chunkBytes = 8 << 20
)

// notWithBatch are flags about one task.
var notWithBatch = []string{"queue", "timeout", "deadline", "delay", "at", "attempt-timeout", "queue-timeout", "retries", "backoff", "backoff-delay", "backoff-max",
	"jitter", "priority", "idempotency-key", "header", "id", "retention", "promise", "wait", "raw"}

// enqueueBatch enqueues the tasks of a file. It reads the file twice: nothing is sent before all lines are checked.
func enqueueBatch(c *cli.Context) error {
	if c.Args().Present() {
		return app.UsageOf(c, "--batch takes no argument, and got %q: the lines of the file have kinds and payloads", c.Args().First())
	}
	for _, name := range notWithBatch {
		if c.IsSet(name) {
			return app.UsageOf(c, "--%s is for one task: write it into the lines of the file", name)
		}
	}
	file, done, err := openBatch(c)
	if err != nil {
		return err
	}
	defer done()
	lines, bad, err := checkBatch(c, file)
	if err != nil {
		return app.Failure(c, err)
	}
	if bad > 0 && !c.Bool("skip-bad") {
		return app.Usage("nothing was enqueued: %s of %s bad; correct the file, or enqueue the others with --skip-bad",
			app.Grouped(bad), app.Plural(lines, "line is", "lines are"))
	}
	return app.OnNamespaceAs(queue.AccessProduce, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
		app.GoOn(c)
		b := &batch{c: c, q: q, file: file, total: lines - bad, counter: app.NewCounter(c)}
		err := b.print()
		b.counter.Clear()
		return b.verdict(err, bad)
	})(c)
}

// openBatch returns the file of --batch. Stdin is copied to a file first, since the batch is read twice.
func openBatch(c *cli.Context) (file *os.File, done func(), err error) {
	name := c.String("batch")
	if name == "" {
		return nil, nil, app.UsageOf(c, "--batch needs the name of a file, or - for stdin")
	}
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, app.Usage("--batch: %v", err)
		}
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file, func() { file.Close() }, nil
		}
		return spool(c.Context, file)
	}
	return spool(c.Context, c.App.Reader)
}

func spool(ctx context.Context, in io.Reader) (file *os.File, done func(), err error) {
	file, err = os.CreateTemp("", "curfew-batch-")
	if err != nil {
		return nil, nil, err
	}
	os.Remove(file.Name()) // the open file is enough; where that is not possible, done removes it
	done = func() {
		file.Close()
		os.Remove(file.Name())
	}
	copied := make(chan error, 1)
	go func() { // a read of a terminal cannot be interrupted
		_, err := io.Copy(file, in)
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		done()
		return nil, nil, app.Interrupted("nothing was enqueued")
	}
	if err != nil {
		done()
		return nil, nil, app.Usage("--batch: %v", err)
	}
	return file, done, nil
}

// line is a line of a batch: a task, or the error in it.
type line struct {
	number int64
	task   queue.Task
	err    error
}

// linesOf returns the lines of a batch that are not empty.
func linesOf(file io.ReadSeeker) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			yield(line{}, err)
			return
		}
		in := bufio.NewReaderSize(file, 1<<20)
		for n := int64(1); ; n++ {
			text, err := in.ReadBytes('\n')
			if err != nil && err != io.EOF {
				yield(line{}, err)
				return
			}
			if text = bytes.TrimSpace(text); len(text) > 0 {
				l := line{number: n}
				if l.task, l.err = jsonx.ReadTask(text, 1<<20); l.err == nil && l.task.ID != "" {
					_, l.err = queue.PartitionOf(l.task.ID)
				}
				if !yield(l, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
		}
	}
}

// maxReported is how many bad lines are reported.
const maxReported = 20

// checkBatch counts the lines, and reports those that are bad.
func checkBatch(c *cli.Context, file io.ReadSeeker) (lines, bad int64, err error) {
	counter := app.NewCounter(c)
	defer counter.Clear()
	for l, err := range linesOf(file) {
		if err == nil {
			err = c.Context.Err()
		}
		if err != nil {
			return lines, bad, err
		}
		lines++
		counter.Show("checked %s lines", app.Grouped(lines))
		if l.err == nil {
			continue
		}
		if bad++; bad <= maxReported {
			counter.Clear()
			fmt.Fprintf(c.App.ErrWriter, "line %d: %s\n", l.number, plainText(l.err.Error()))
		}
	}
	if bad > maxReported {
		fmt.Fprintf(c.App.ErrWriter, "and %s more\n", app.Plural(bad-maxReported, "bad line", "bad lines"))
	}
	if lines == 0 {
		return 0, 0, app.Usage("--batch: there is no task in %s", c.String("batch"))
	}
	return lines, bad, nil
}

// batch is a batch that is being sent.
type batch struct {
	c       *cli.Context
	q       *queue.Queue
	file    io.ReadSeeker
	counter *app.Counter
	total   int64
	stored  int64
	refused int64 // by Redis
	last    int64 // the line up to which all were answered
}

var enqueuedList = app.List[lines.Enqueued]{ID: func(e lines.Enqueued) string { return e.ID }}

func (b *batch) print() error {
	return enqueuedList.Print(b.c, func(yield func(lines.Enqueued, error) bool) {
		var tasks []queue.Task
		var numbers []int64
		size := 0
		send := func() bool {
			receipts, err := b.q.EnqueueAll(b.c.Context, tasks)
			b.counter.Clear()
			for i, r := range receipts {
				switch {
				case r.Err == nil:
					b.stored++
					if !yield(lines.Enqueued{ID: r.ID, Deadline: r.Deadline, New: r.New}, nil) {
						return false
					}
				case err == nil:
					b.refused++
					fmt.Fprintf(b.c.App.ErrWriter, "line %d: %s\n", numbers[i], plainText(r.Err.Error()))
				}
			}
			if err != nil {
				yield(lines.Enqueued{}, err)
				return false
			}
			b.last = numbers[len(numbers)-1]
			b.counter.Show("enqueued %s of %s tasks", app.Grouped(b.stored), app.Grouped(b.total))
			tasks, numbers, size = tasks[:0], numbers[:0], 0
			return true
		}
		for l, err := range linesOf(b.file) {
			if err == nil {
				err = b.c.Context.Err()
			}
			if err != nil {
				yield(lines.Enqueued{}, err)
				return
			}
			if l.err != nil {
				continue
			}
			tasks, numbers, size = append(tasks, l.task), append(numbers, l.number), size+200+len(l.task.Payload)
			if (len(tasks) == chunkTasks || size > chunkBytes) && !send() {
				return
			}
		}
		if len(tasks) > 0 {
			send()
		}
	})
}

// verdict returns the error of a batch, with how far it came.
func (b *batch) verdict(err error, bad int64) error {
	text := fmt.Sprintf("%s of %s enqueued, all lines up to %d; those behind it may be in part: a task with an id or an idempotency_key can be enqueued again",
		app.Grouped(b.stored), app.Plural(b.total, "task is", "tasks are"), b.last)
	switch {
	case err != nil && b.c.Context.Err() != nil:
		return app.Interrupted("%s", text)
	case err != nil:
		failed := app.Failure(b.c, err)
		code := app.ExitFailed
		var coded cli.ExitCoder
		if errors.As(failed, &coded) {
			code = coded.ExitCode()
		}
		return cli.Exit(fmt.Sprintf("%v; %s", failed, text), code)
	case b.refused > 0:
		return fmt.Errorf("%s of %s refused, and the others are enqueued", app.Grouped(b.refused), app.Plural(b.total, "task was", "tasks were"))
	case bad > 0:
		return fmt.Errorf("%s skipped, and the others are enqueued", app.Plural(bad, "bad line was", "bad lines were"))
	}
	return nil
}
