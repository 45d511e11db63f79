package app

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// Column is a column of a table.
type Column[T any] struct {
	Name  string
	Wide  bool // it is only in the format wide
	Right bool // it is aligned to the right, as numbers are
	Show  func(T) string
	Paint func(T) Colour // on a terminal; nil: none
}

// List configures how a command prints objects of a type.
type List[T any] struct {
	Columns []Column[T]
	ID      func(T) string // what the format id prints
}

// ListFlag returns the flag for the format of a list.
func ListFlag() cli.Flag {
	f := ChoiceFlag("output", "table", "table, wide: a table with more columns, json: one array, jsonl: a line of JSON for each, or id", "table", "wide", "json", "jsonl", "id")
	f.Aliases = []string{"o"}
	return f
}

// tableRows is how many rows are aligned at once, so that a long table needs no more memory than these.
const tableRows = 1000

// Print writes the objects in the format of ListFlag.
func (l List[T]) Print(c *cli.Context, all iter.Seq2[T, error]) error {
	switch out := c.App.Writer; c.String("output") {
	case "id":
		return each(all, func(v T) error { return line(out, l.ID(v)) })
	case "jsonl":
		return each(all, func(v T) error { return WriteLine(out, v) })
	case "json":
		var values []T
		if err := each(all, func(v T) error { values = append(values, v); return nil }); err != nil {
			return err
		}
		return WriteLine(out, values)
	default:
		return l.table(c, all)
	}
}

func each[T any](all iter.Seq2[T, error], do func(T) error) error {
	for v, err := range all {
		if err != nil {
			return err
		}
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

func (l List[T]) table(c *cli.Context, all iter.Seq2[T, error]) error {
	var columns []Column[T]
	heading := []string{}
	for _, column := range l.Columns {
		if !column.Wide || c.String("output") == "wide" {
			columns, heading = append(columns, column), append(heading, column.Name)
		}
	}
	rows, found := [][]cell{plain(heading)}, false
	coloured := Coloured(c, c.App.Writer)
	flush := func() error {
		err := writeRows(c.App.Writer, columns, rows)
		rows = rows[:0]
		return err
	}
	if err := each(all, func(v T) error {
		found = true
		row := make([]cell, len(columns))
		for i, column := range columns {
			row[i].text = column.Show(v)
			if coloured && column.Paint != nil {
				row[i].colour = column.Paint(v)
			}
		}
		if rows = append(rows, row); len(rows) > tableRows {
			return flush()
		}
		return nil
	}); err != nil {
		if found {
			flush() // what was read before the error
		}
		return err
	}
	if !found {
		return nil // a heading without rows says nothing
	}
	return flush()
}

// cell is a word of a table.
type cell struct {
	text   string
	colour Colour
}

func plain(words []string) []cell {
	cells := make([]cell, len(words))
	for i, word := range words {
		cells[i].text = word
	}
	return cells
}

func writeRows[T any](out io.Writer, columns []Column[T], rows [][]cell) error {
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, word := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(word.text))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, word := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(word.text))
			if columns[i].Right {
				b.WriteString(space + word.colour.On(word.text))
			} else {
				b.WriteString(word.colour.On(word.text) + space)
			}
		}
		if err := line(out, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func line(out io.Writer, text string) error {
	_, err := fmt.Fprintln(out, text)
	return err
}
