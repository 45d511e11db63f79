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
	// maxExport is the maximum number of lines in a page of [Export].
	maxExport = 10_000
	// exportBytes is the size at which a page ends early.
	exportBytes = 4 << 20
)

// ExportPage is a page of an export. All its lines are of one partition.
type ExportPage struct {
	Partition int          `json:"partition"`
	Lines     []ExportLine `json:"lines"`
	// Next is the argument for the next page; "" after the last page.
	Next string `json:"next"`
}

// Export reads a whole namespace, one page in each call. Pass "" as page for the first page, then
// the Next of the previous page.
//
// A page has up to n lines (1 to 10,000). It has fewer if they are large, and can be empty. It can
// exceed n by one step of the HSCAN or SSCAN of Redis. Next can be about 50 KB long, because it
// contains the names of keys that were found and are not in a page yet.
//
// Export changes nothing. It is not a snapshot: tasks may change while it reads. Each task is read
// atomically, at its ReadAt. A task that exists during the whole export is in it. It may be in it
// twice if keys are added or removed meanwhile; then the later line is the newer one.
//
// If page or n is not valid, Export returns [refusal.ErrInvalid]. If Redis is restarted or replaced
// by a replica, it returns an error, and the export must begin again.
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
	result := ExportPage{Partition: at.Partition}
	if result.Lines, err = (exporter{q}).exportStep(ctx, &at, n); err != nil {
		return ExportPage{}, refusal.Failed("export", "", err)
	}
	result.Next = at.page(q.Partitions())
	if result.Lines == nil {
		result.Lines = []ExportLine{} // in JSON [], not null
	}
	return result, nil
}

// ExportTo writes a whole namespace as JSON, one object per line. The last line has the type "end"
// and the number of lines before it: an export without that line is not complete. Tasks may change
// while ExportTo reads, as with [Export]. It holds up to three pages of about 4 MiB in memory,
// because it reads one page while it writes another. It wraps an error of w, or the cause of ctx if
// that ends. If w is nil, it returns [refusal.ErrInvalid].
//
// ExportTo calls each of change with each line before it writes the line. Pass Hide[*ExportLine] to
// leave out payloads and other texts of users.
func ExportTo(ctx context.Context, q *queue.Queue, w io.Writer, change ...func(*ExportLine)) error {
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
		for range pages { // no goroutine may remain, so wait until the reader has ended
		}
	}()
	out := bufio.NewWriterSize(w, 64<<10)
	lines := 0
	for page := range pages {
		if page.err != nil {
			return refusal.Failed("export", "", page.err)
		}
		for _, line := range page.lines {
			for _, f := range change {
				f(&line)
			}
			if err := writeLine(out, line.json()); err != nil {
				return refusal.Failed("export", "", err)
			}
		}
		lines += len(page.lines)
	}
	if err := context.Cause(ctx); err != nil {
		return refusal.Failed("export", "", err)
	}
	err := writeLine(out, []byte(`{"type":"end","count":`+strconv.Itoa(lines)+`}`))
	if err == nil {
		err = out.Flush()
	}
	return refusal.Failed("export", "", err)
}

// exportedPage is a page of the export, or the error from reading it.
type exportedPage struct {
	lines []ExportLine
	err   error
}

// exportPages reads all pages, and reads ahead while a page is used.
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

// exportPlace is the position of an export.
type exportPlace struct {
	Partition int         `json:"p"`
	Stage     int         `json:"g,omitempty"` // stageNamespace, …
	Scan      uint64      `json:"s,omitempty"` // cursor of SCAN
	Server    string      `json:"r,omitempty"` // run_id of the server that returned the cursor
	Found     []exportKey `json:"k,omitempty"` // keys that SCAN returned and that are not exported yet
	From      uint64      `json:"f,omitempty"` // position in Found[0]: a rank, or a cursor of HSCAN or SSCAN
	To        int64       `json:"e,omitempty"` // length of Found[0] when its export began, so that the export ends even if the key grows
}

// exportKey is a key without its root, and its type when SCAN found it.
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

// page returns the position as text, "" after the last partition.
func (at exportPlace) page(partitions int) string {
	if at.Partition >= partitions {
		return ""
	}
	b, _ := json.Marshal(at) // cannot fail: it has only numbers and strings
	return base64.RawURLEncoding.EncodeToString(b)
}

// readExportPlace decodes the result of page. A caller can make up the text, so it can name only
// keys under the root of the partition. A key that does not exist gives no lines.
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
		return at, refusal.Invalid("page", "is for partition %d, and this namespace has %d partitions: it is from another namespace", at.Partition, q.Partitions())
	}
	at.Found = slices.DeleteFunc(at.Found, func(k exportKey) bool { return k.Name == "" })
	return at, nil
}
