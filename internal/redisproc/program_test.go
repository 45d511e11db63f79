package redisproc

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// Two goroutines of three start processes all the time, and the third executes what it has just written.
func TestAProgramCanBeExecutedAtOnce(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					exec.Command(path).Run()
				}
			}
		})
	}
	defer others.Wait()
	defer close(over)
	dir := t.TempDir()
	for i := range 100 {
		program := filepath.Join(dir, strconv.Itoa(i))
		if err := WriteProgram(program, "#!/bin/sh\n"); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command(program).Run(); err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
	}
}
