package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// folder is the variable of package lua that says where a test binary reads the Lua. The linker sets it, so that the
// packages are not compiled again.
const folder = "github.com/curfew-dev/curfew/lua.folder"

// ground is the tree whose bugs are planted, and a temporary folder for what is built.
type ground struct {
	tree, own string
	binaries  map[string]string  // by package
	reach     map[string][]reach // by package: what each test reaches of its Go
	modelled  map[string]bool    // files of the Lua that the model can reach
}

func open() (*ground, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	own, err := os.MkdirTemp("", "planted")
	if err != nil {
		return nil, err
	}
	return &ground{tree: filepath.Dir(strings.TrimSpace(string(mod))), own: own, binaries: map[string]string{}, reach: map[string][]reach{}, modelled: map[string]bool{}}, nil
}

func (g *ground) close() { os.RemoveAll(g.own) }

func (g *ground) lua() string { return filepath.Join(g.tree, "lua") }

// planted is the folder from which the binaries read their Lua.
func (g *ground) planted() string { return filepath.Join(g.own, "lua") }

// binary returns the test binary of a package, linked to read its Lua from planted. It is
// built once for all bugs, since the build takes most of the time.
func (g *ground) binary(pkg string) (string, error) {
	if built := g.binaries[pkg]; built != "" {
		return built, nil
	}
	built := filepath.Join(g.own, strings.ReplaceAll(pkg, "/", "_")+".test")
	build := exec.Command("go", "test", "-c", "-ldflags", "-X "+folder+"="+g.planted(), "-o", built, "./"+pkg)
	build.Dir = g.tree
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, said)
	}
	g.binaries[pkg] = built
	return built, nil
}
