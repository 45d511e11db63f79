package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// goBinary builds the tests of a package with an edit. It returns "" if the edit does not compile.
func (g *ground) goBinary(pkg string, m mutant, e textEdit) (string, error) {
	original := filepath.Join(g.tree, m.file)
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	edited, overlay, built := filepath.Join(g.own, "edited.go"), filepath.Join(g.own, "overlay.json"), filepath.Join(g.own, "mutant.test")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: edited}})
	if err != nil {
		return "", err
	}
	err = errors.Join(os.WriteFile(edited, []byte(e.apply(string(text))), 0o644), os.WriteFile(overlay, replace, 0o644))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", built, "./"+pkg)
	build.Dir = g.tree
	said, err := build.CombinedOutput()
	if err != nil && bytes.Contains(said, []byte("[build failed]")) || bytes.HasPrefix(said, []byte("# ")) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, said)
	}
	return built, nil
}

// tryGo builds a mutant of the Go, runs the tests of its package that reach it, and fills in its row.
func (g *ground) tryGo(m mutant, r *result) error {
	pkg := filepath.Dir(m.file)
	binary, err := g.goBinary(pkg, m, m.edit)
	if err != nil || binary == "" {
		r.class = classInvalid
		return err
	}
	tests, err := g.reaching(m)
	if err != nil {
		return err
	}
	if len(tests) == 0 {
		r.class, r.ran = classUnreached, []string{pkg}
		return nil
	}
	r.class = classValid
	found, err := g.confirmed(binary, pkg, m, runs(tests))
	r.note(pkg, found.failed, found)
	return err
}

// reach is the part of a package's Go code that one of its tests runs.
type reach struct {
	test string
	took time.Duration
	code []block
}

// block is a part of a file that runs as a whole. Lines and columns count from 1.
type block struct {
	file                    string
	line, column, end, till int
	ran                     bool
}

func (b block) has(m mutant) bool {
	return strings.HasSuffix(b.file, "/"+m.file) && (m.line > b.line || m.line == b.line && m.column >= b.column) &&
		(m.line < b.end || m.line == b.end && m.column < b.till)
}

// reaching returns the tests of a mutant's package that reach it, the fastest first, up to limit in all. What is
// outside functions is reached by all.
func (g *ground) reaching(m mutant) ([]string, error) {
	pkg := filepath.Dir(m.file)
	if g.reach[pkg] == nil {
		list, err := g.cover(pkg)
		if err != nil {
			return nil, err
		}
		g.reach[pkg] = list
	}
	var tests []string
	var all time.Duration
	for _, r := range g.reach[pkg] {
		inside := func(b block) bool { return b.has(m) }
		ran := func(b block) bool { return b.ran && b.has(m) }
		if slices.ContainsFunc(r.code, ran) || !slices.ContainsFunc(r.code, inside) {
			if all += r.took; all > limit {
				break
			}
			tests = append(tests, r.test)
		}
	}
	return tests, nil
}

var coverLine = regexp.MustCompile(`(?m)^(\S+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// cover runs each test of a package alone. Tests that fail alone are left out.
func (g *ground) cover(pkg string) (list []reach, err error) {
	built, profile := filepath.Join(g.own, "cover.test"), filepath.Join(g.own, "profile")
	build := exec.Command("go", "test", "-c", "-cover", "-o", built, "./"+pkg)
	build.Dir = g.tree
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go test -c -cover ./%s: %w\n%s", pkg, err, said)
	}
	names := exec.Command(built, "-test.list", ".")
	names.Dir = filepath.Join(g.tree, pkg)
	said, err := names.Output()
	if err != nil {
		return nil, err
	}
	for _, test := range strings.Fields(string(said)) {
		begun := time.Now()
		os.Remove(profile)
		o, err := g.play(built, pkg, limit, "-test.short", runs([]string{test}), "-test.coverprofile="+profile)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(profile)
		if err != nil || !o.fine() {
			continue
		}
		r := reach{test: test, took: time.Since(begun)}
		for _, match := range coverLine.FindAllStringSubmatch(string(text), -1) {
			number := func(i int) int { n, _ := strconv.Atoi(match[i]); return n }
			r.code = append(r.code, block{match[1], number(2), number(3), number(4), number(5), number(6) > 0})
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b reach) int { return cmp.Compare(a.took, b.took) })
	return list, nil
}
