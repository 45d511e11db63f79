package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	list := flag.Bool("list", false, "only tell which bugs there are")
	only := flag.String("only", "", "plant only the bug of this `name`")
	by := flag.String("by", "", "have this `part` of the suite look for them, not what must find each: "+strings.Join(partNames(), ", ")+", or stories/ and a name")
	verbose := flag.Bool("v", false, "show what the failing test said")
	flag.Parse()

	chosen, err := choose(*only, *by)
	if err != nil {
		fail(err)
	}
	if *list {
		for _, b := range chosen {
			fmt.Printf("%-66s %-50s %s\n", b.name, b.by, b.file)
		}
		return
	}
	ok, err := run(chosen, *verbose)
	if err != nil {
		fail(err)
	}
	if !ok {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "planted:", err)
	os.Exit(2)
}

// choose picks bugs by name, and may give them to another part of the suite.
func choose(only, by string) ([]bug, error) {
	var chosen []bug
	for _, b := range bugs {
		if only != "" && b.name != only {
			continue
		}
		if by != "" {
			b.by = by
		}
		chosen = append(chosen, b)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no bug is called %q: -list tells the names", only)
	}
	return chosen, nil
}

// row tells of a bug: its name, and what found it when.
const row = "%-66s %5.1f s  %s\n"

// run plants each bug and tells what became of it. It returns whether all were found.
func run(chosen []bug, verbose bool) (bool, error) {
	begun := time.Now()
	g, err := open()
	if err != nil {
		return false, err
	}
	defer g.close()
	if err := g.control(chosen); err != nil {
		return false, err
	}
	survivors := 0
	for _, b := range chosen {
		f, err := g.hunt(b)
		if err != nil {
			f.by = "NOT PLANTED: " + err.Error()
		}
		fmt.Printf(row, b.name, f.after.Seconds(), f.by)
		if verbose {
			fmt.Println(f.said)
		}
		if err != nil || !f.inTime() {
			survivors++
		}
	}
	fmt.Printf("%d planted, %d not found within %v; %.0f s in all\n", len(chosen), survivors, limit, time.Since(begun).Seconds())
	return survivors == 0, nil
}
