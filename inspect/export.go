package inspect

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const (
	// maxExport bounds the lines of a page of [Export].
	maxExport = 10_000
	// exportBytes ends a page early that holds large payloads or results.
	exportBytes = 4 << 20
)

// ExportPage is some lines of an export, all of one partition.
type ExportPage struct {
	Partition int          `json:"partition"`
	Lines     []ExportLine `json:"lines"`
	// Next asks for the page that follows; "" behind the last one.
	Next string `json:"next"`
}

// Export reads a namespace whole, a page a call: with page "" from the beginning, then
// with the Next of the page before. A page has up to n lines (1 to 10,000), fewer where
// they are large and perhaps none; it may run over by one step of Redis's HSCAN or
// SSCAN. Next holds what Redis has told and this page has not, so it may be some 50 KB.
//
// It changes nothing, and it is no picture of one instant unless nothing changes
// meanwhile. Each task is read in one script, at its ReadAt, and agrees with itself. A task
// that is there from beginning to end is told, perhaps twice if tasks come and go: the
// later line holds.
func Export(ctx context.Context, q *queue.Queue, page string, n int) (ExportPage, error) {
	if err := q.Ready(ctx); err != nil {
		return ExportPage{}, refusal.Failed("export", "", err)
	}
	if n < 1 || n > maxExport {
		return ExportPage{}, refusal.Failed("export", "", refusal.Invalid("n", "%d must be 1 to %d", n, maxExport))
	}
	at, err := exporter{q}.readExportPlace(page)
	if err != nil {
		return ExportPage{}, refusal.Failed("export", "", err)
	}
	told := ExportPage{Partition: at.Partition}
	if told.Lines, err = (exporter{q}).exportStep(ctx, &at, n); err != nil {
		return ExportPage{}, refusal.Failed("export", "", err)
	}
	told.Next = at.page(q.Partitions())
	if told.Lines == nil {
		told.Lines = []ExportLine{} // in JSON [], not null
	}
	return told, nil
}

// ExportTo writes the whole namespace as JSON, a line an object, and last a line of type
// "end" that says how many came before it: an export without that line is not whole. What
// Export says of consistency holds here too. It keeps three pages in memory, of about 4 MiB at the
// most: one is read while another is written.
func ExportTo(ctx context.Context, q *queue.Queue, w io.Writer) error {
	if err := q.Ready(ctx); err != nil {
		return refusal.Failed("export", "", err)
	}
	if engine.IsNil(w) {
		return refusal.Failed("export", "", refusal.Invalid("writer", "is nil"))
	}
	ctx, cancel := context.WithCancel(ctx)
	pages := exporter{q}.exportPages(ctx)
	defer func() {
		cancel()
		for range pages { // until the reader has ended
		}
	}()
	out := bufio.NewWriterSize(w, 64<<10)
	lines := 0
	for page := range pages {
		if page.err != nil {
			return refusal.Failed("export", "", page.err)
		}
		for _, line := range page.lines {
			if err := writeLine(out, line.json()); err != nil {
				return refusal.Failed("export", "", err)
			}
		}
		lines += len(page.lines)
	}
	if err := context.Cause(ctx); err != nil {
		return refusal.Failed("export", "", err)
	}
	err := writeLine(out, []byte(`{"type":"end","lines":`+strconv.Itoa(lines)+`}`))
	if err == nil {
		err = out.Flush()
	}
	return refusal.Failed("export", "", err)
}

// exportedPage is a page of the export, or the error of reading it.
type exportedPage struct {
	lines []ExportLine
	err   error
}

// exportPages reads all pages, each while the one before it is used.
func (q exporter) exportPages(ctx context.Context) <-chan exportedPage {
	pages := make(chan exportedPage, 1)
	go func() {
		defer close(pages)
		for at := (exportPlace{}); at.Partition < q.Partitions(); {
			lines, err := q.exportStep(ctx, &at, 500)
			select {
			case pages <- exportedPage{lines, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return pages
}

func writeLine(out *bufio.Writer, line []byte) error {
	if _, err := out.Write(line); err != nil {
		return err
	}
	return out.WriteByte('\n')
}

// exporter reads a namespace for an export.
type exporter struct{ *queue.Queue }

// exportPlace is how far an export has come.
type exportPlace struct {
	Partition int         `json:"p"`
	Stage     int         `json:"g,omitempty"` // stageNamespace, …
	Scan      uint64      `json:"s,omitempty"` // cursor of SCAN
	Server    string      `json:"r,omitempty"` // which gave it
	Found     []exportKey `json:"k,omitempty"` // by SCAN and not told yet
	From      uint64      `json:"f,omitempty"` // how much of Found[0] was told: a rank, or a cursor of HSCAN
	To        int64       `json:"e,omitempty"` // how long Found[0] was when it was begun, so that a reader need not chase writers
}

// exportKey is a key, without its root, and its type when SCAN found it.
type exportKey struct {
	Name string `json:"n"`
	Type string `json:"t"`
}

// The stages of a partition.
const (
	stageNamespace = iota // the namespace's line, before the first partition
	stageRoot
	stageFirst // the first SCAN
	stageScan
)

// page is the place as text, "" at the end of so many partitions.
func (at exportPlace) page(partitions int) string {
	if at.Partition >= partitions {
		return ""
	}
	b, _ := json.Marshal(at) // of numbers and strings
	return base64.RawURLEncoding.EncodeToString(b)
}

// readExportPlace reads what page wrote. A stranger may have made it up: it names only
// keys behind our own root, and a key that is not there is told as nothing.
func (q exporter) readExportPlace(page string) (exportPlace, error) {
	var at exportPlace
	if page == "" {
		return at, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(page)
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	if err != nil || at.Stage < stageNamespace || at.Stage > stageScan {
		return at, refusal.Invalid("page", "%q is not valid: it must be \"\" for the first, or the Next of the page before", refusal.Clip(page))
	}
	if at.Partition < 0 || at.Partition >= q.Partitions() {
		return at, refusal.Invalid("page", "is of partition %d, and this namespace has %d: it is of another namespace", at.Partition, q.Partitions())
	}
	at.Found = slices.DeleteFunc(at.Found, func(k exportKey) bool { return k.Name == "" })
	return at, nil
}
