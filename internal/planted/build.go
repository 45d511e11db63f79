package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// folder is the environment variable that tells a test process where to read its Lua.
const folder = "CURFEW_PLANTED_LUA"

// ground is the tree whose bugs are planted, and a temporary folder for what is built.
type ground struct {
	tree, own string
	binaries  map[string]string // by package
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
	return &ground{tree: filepath.Dir(strings.TrimSpace(string(mod))), own: own, binaries: map[string]string{}}, nil
}

func (g *ground) close() { os.RemoveAll(g.own) }

func (g *ground) lua() string { return filepath.Join(g.tree, "lua") }

// binary returns the test binary of a package, built to read its Lua from a folder. It is
// built once for all bugs, since the build takes most of the time.
func (g *ground) binary(pkg string) (string, error) {
	if built := g.binaries[pkg]; built != "" {
		return built, nil
	}
	overlay, err := g.overlay()
	if err != nil {
		return "", err
	}
	built := filepath.Join(g.own, strings.ReplaceAll(pkg, "/", "_")+".test")
	build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", built, "./"+pkg)
	build.Dir = g.tree
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, said)
	}
	g.binaries[pkg] = built
	return built, nil
}

// overlay writes a library.go for the build alone, and the file that makes go use it.
func (g *ground) overlay() (string, error) {
	name := filepath.Join(g.lua(), "library.go")
	source, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	text, err := edit("lua/library.go", string(source), "//go:embed */*.lua\nvar files embed.FS",
		fmt.Sprintf("var files = os.DirFS(os.Getenv(%q))", folder))
	if err == nil {
		text, err = edit("lua/library.go", text, "\t\"embed\"\n", "\t\"os\"\n")
	}
	if err != nil {
		return "", err
	}
	library := filepath.Join(g.own, "library.go")
	if err := os.WriteFile(library, []byte(text), 0o644); err != nil {
		return "", err
	}
	said, err := json.Marshal(map[string]any{"Replace": map[string]string{name: library}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(g.own, "overlay.json")
	return overlay, os.WriteFile(overlay, said, 0o644)
}
