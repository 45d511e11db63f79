package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "mutants" {
		if err := mutants(os.Args[2:]); err != nil {
			fail(err)
		}
		return
	}
	list := flag.Bool("list", false, "list the bugs and plant none")
	only := flag.String("only", "", "plant only the bug with this `name`")
	by := flag.String("by", "", "run this `part` of the suite for every bug, instead of the one that must find it: "+strings.Join(partNames(), ", ")+", or stories/ and a name")
	verbose := flag.Bool("v", false, "print the output of the failing test")
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

// row formats the result of a bug: its name, the time, and what found it.
const row = "%-66s %5.1f s  %s\n"

// run plants each bug and prints the result. It reports whether all were found in time.
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
