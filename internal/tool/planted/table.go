package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// tablePath is the table of mutants, below the top.
const tablePath = "internal/tool/planted/testdata/mutants.tsv"

// Classes of mutants.
const (
	classValid     = "valid"     // Lua: a reply, key, event or message differs in the steps of the model. Go: a test of its package reaches it
	classUnseen    = "unseen"    // these steps do not differ
	classUnreached = "unreached" // these steps make no call that uses the file, or no test finds the mutant and they do not reach it. Go: no test of its package reaches it
	classInvalid   = "invalid"   // it does not compile
)

var classes = []string{classValid, classUnseen, classUnreached, classInvalid}

// result is a line of the table.
type result struct {
	id, place, kind, shown, class string
	killed                        []string // the tests that find it, at most mostKillers, and the number of the others
	ran                           []string // the parts of the suite that ran
	reason                        string   // why no test needs to find it: written by hand, and kept
}

const mostKillers = 12

// partly follows the name of a part whose time was over before all of its tests had run.
const partly = "(in part)"

var columns = []string{"id", "place", "kind", "edit", "class", "found by", "ran", "reason"}

// note adds the result of a part.
func (r *result) note(part string, failed []string, o outcome) {
	if r.ran = append(r.ran, part); o.partly {
		r.ran = append(r.ran, partly)
	}
	if o.fine() {
		return
	}
	for _, test := range failed {
		if !strings.HasPrefix(test, stories+"/") {
			test = part + " " + test
		}
		r.killed = append(r.killed, test)
	}
	if len(failed) == 0 {
		r.killed = append(r.killed, part)
	}
}

// pending reports whether other parts should still try the mutant. A reason says that none can find it.
func (r result) pending(m mutant) bool {
	if r.class == classInvalid || len(r.killed) > 0 || r.reason != "" {
		return false
	}
	return slices.ContainsFunc(laterParts(m), func(part string) bool { return !slices.Contains(r.ran, part) })
}

// survived reports whether no test finds the mutant although all parts have run whole.
func (r result) survived() bool {
	file, _, _ := strings.Cut(r.place, ":")
	return r.class != classInvalid && len(r.killed) == 0 && !slices.Contains(r.ran, partly) && !r.pending(mutant{file: file})
}

func (r result) lua() bool { return strings.Contains(r.place, ".lua:") }

func (r result) line() string {
	killed := r.killed
	if more := len(killed) - mostKillers; more > 0 {
		killed = append(slices.Clone(killed[:mostKillers]), fmt.Sprint("and ", more, " more"))
	}
	cells := []string{r.id, r.place, r.kind, r.shown, r.class, strings.Join(killed, ", "), strings.Join(r.ran, ", "), r.reason}
	return strings.Join(cells, "\t")
}

func parseResult(line string) (result, error) {
	cells := strings.Split(line, "\t")
	if len(cells) != len(columns) {
		return result{}, fmt.Errorf("%d cells, want %d: %q", len(cells), len(columns), line)
	}
	list := func(cell string) []string {
		if cell == "" {
			return nil
		}
		return strings.Split(cell, ", ")
	}
	return result{cells[0], cells[1], cells[2], cells[3], cells[4], list(cells[5]), list(cells[6]), cells[7]}, nil
}

// readTable returns the rows by id. A table that does not exist has none.
func readTable(tree fs.FS) (map[string]result, error) {
	rows := map[string]result{}
	text, err := fs.ReadFile(tree, tablePath)
	if errors.Is(err, fs.ErrNotExist) {
		return rows, nil
	} else if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines[1:] {
		r, err := parseResult(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(tablePath), err)
		}
		if _, twice := rows[r.id]; twice {
			return nil, fmt.Errorf("%s: two rows have the id %s", path.Base(tablePath), r.id)
		}
		rows[r.id] = r
	}
	return rows, nil
}

func writeTable(file string, rows map[string]result) error {
	lines := []string{strings.Join(columns, "\t")}
	for _, id := range order(rows) {
		lines = append(lines, rows[id].line())
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// order returns the ids of the rows by the place of the mutant.
func order(rows map[string]result) []string {
	var ids []string
	for id := range rows {
		ids = append(ids, id)
	}
	place := func(id string) (file string, line int) {
		file, number, _ := strings.Cut(rows[id].place, ":")
		fmt.Sscan(number, &line)
		return file, line
	}
	slices.SortFunc(ids, func(a, b string) int {
		fileA, lineA := place(a)
		fileB, lineB := place(b)
		return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(lineA, lineB), cmp.Compare(a, b))
	})
	return ids
}

// summary returns the lines about the mutants in mutants.md: counts, and what no test needs to find.
func summary(rows map[string]result) (lines []string) {
	for _, language := range []string{"Lua", "Go"} {
		for _, class := range classes {
			var all, found, reasons int
			for _, r := range rows {
				if r.class != class || r.lua() != (language == "Lua") {
					continue
				}
				all++
				if len(r.killed) > 0 {
					found++
				} else if r.reason != "" {
					reasons++
				}
			}
			switch {
			case all > 0 && class == classInvalid:
				lines = append(lines, fmt.Sprintf("| %s, %s | %d | | | |", language, class, all))
			case all > 0:
				lines = append(lines, fmt.Sprintf("| %s, %s | %d | %d | %d | %d |", language, class, all, found, reasons, all-found-reasons))
			}
		}
	}
	for _, id := range order(rows) {
		if r := rows[id]; r.reason != "" {
			file, _, _ := strings.Cut(r.place, ":")
			lines = append(lines, fmt.Sprintf("| `%s`: `%s` | %s | %s |", file, strings.ReplaceAll(r.shown, "|", "\\|"), r.class, r.reason))
		}
	}
	return lines
}
