package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mutants draws mutants, tries each, and merges the results into the table.
func mutants(args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ExitOnError)
	seed := flags.String("seed", "1", "draw with this `seed`")
	luas := flags.Int("lua", 200, "draw this `number` of mutants of the Lua")
	gos := flags.Int("go", 100, "draw this `number` of mutants of the Go")
	only := flags.String("only", "", "try only the mutant with this `id`")
	below := flags.String("in", "", "try only the drawn mutants of the files whose path begins with this `prefix`")
	fresh := flags.Bool("new", false, "try only mutants that the table does not have, or that other parts of the suite could still find")
	later := flags.Int("later", 100, "try at most this `number` of packages after the first parts, for a mutant that these do not find")
	verbose := flags.Bool("v", false, "print the output of the tests")
	list := flags.Bool("list", false, "list the mutants and try none")
	flags.Parse(args)

	g, err := open()
	if err != nil {
		return err
	}
	defer g.close()
	tree := os.DirFS(g.tree)
	all, err := luaCandidates(tree)
	if err != nil {
		return err
	}
	ofGo, err := goCandidates(tree)
	if err != nil {
		return err
	}
	drawn := append(draw(all, *seed, *luas), draw(ofGo, *seed, *gos)...)
	maps.Copy(all, ofGo)
	if *only != "" {
		m, known := all[*only]
		if !known {
			return fmt.Errorf("no file has a mutant %q any more", *only)
		}
		drawn = []mutant{m}
	}
	drawn = slices.DeleteFunc(drawn, func(m mutant) bool { return !strings.HasPrefix(m.file, *below) })
	if *list {
		for _, m := range drawn {
			fmt.Printf("%s %s:%d %s: %s\n", m.id, m.file, m.line, m.kind, m.shown)
		}
		return nil
	}
	rows, err := readTable(tree)
	if err != nil {
		return err
	}
	t := &tries{ground: g, rows: rows, verbose: *verbose}
	t.forget(all)
	if *fresh {
		drawn = slices.DeleteFunc(drawn, func(m mutant) bool {
			r, known := rows[m.id]
			return known && (*later == 0 || !r.pending(m))
		})
	}
	return t.run(drawn, *fresh, *later)
}

// tries are the mutants of one command.
type tries struct {
	*ground
	rows    map[string]result
	verbose bool
}

// forget drops the rows whose mutant is no longer there, and updates the places of the others.
func (t *tries) forget(all map[string]mutant) {
	for id, r := range t.rows {
		m, there := all[id]
		if !there {
			delete(t.rows, id)
			continue
		}
		r.place, r.shown = fmt.Sprint(m.file, ":", m.line), m.shown
		t.rows[id] = r
	}
}

// run tries mutants with the first parts of the suite. Those that are not found are tried with other packages at the
// end, all with one package and then all with the next.
func (t *tries) run(drawn []mutant, fresh bool, later int) error {
	untried := slices.DeleteFunc(slices.Clone(drawn), func(m mutant) bool {
		_, known := t.rows[m.id]
		return known && fresh
	})
	if slices.ContainsFunc(untried, mutant.lua) {
		if err := t.begin(); err != nil {
			return err
		}
	}
	for _, m := range untried {
		if err := t.first(m); err != nil {
			return fmt.Errorf("%s %s: %w", m.id, m.file, err)
		}
	}
	for ; later > 0; later-- {
		for _, m := range drawn {
			if !t.rows[m.id].pending(m) {
				continue
			}
			if err := t.next(m); err != nil {
				return fmt.Errorf("%s %s: %w", m.id, m.file, err)
			}
		}
	}
	fmt.Println(strings.Join(summary(t.rows), "\n"))
	return nil
}

func (t *tries) first(m mutant) error {
	r := result{id: m.id, place: fmt.Sprint(m.file, ":", m.line), kind: m.kind, shown: m.shown, reason: t.rows[m.id].reason}
	try := t.tryGo
	if m.lua() {
		try = t.tryLua
	}
	return t.keep(r, func(r *result) error { return try(m, r) })
}

func (t *tries) next(m mutant) error {
	r := t.rows[m.id]
	i := slices.IndexFunc(laterParts(m), func(part string) bool { return !slices.Contains(r.ran, part) })
	return t.keep(r, func(r *result) error { return t.later(laterParts(m)[i], m, r) })
}

// keep tries a mutant and writes the table, so that nothing is lost if the command is interrupted.
func (t *tries) keep(r result, try func(*result) error) error {
	begun := time.Now()
	if err := try(&r); err != nil {
		return err
	}
	if len(r.killed) > 0 {
		r.reason = ""
	}
	t.rows[r.id] = r
	found := "NOT FOUND by " + strings.Join(r.ran, ", ")
	if n := len(r.killed); n > 0 {
		found = fmt.Sprintf("%d: %s", n, strings.Join(r.killed[:min(n, 3)], ", "))
	}
	fmt.Printf("%s %4.0f s %-9s %s %s: %s\n", r.id, time.Since(begun).Seconds(), r.class, r.place, r.shown, found)
	return writeTable(filepath.Join(t.tree, tablePath), t.rows)
}
