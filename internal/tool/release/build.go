package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// build is a clone of the source, and the archives that were built from it.
type build struct {
	folder   string // of the clone
	cache    string // Go's build cache; "": the usual one
	archives []archive
	programs map[string][]file // by platform
}

// archive is a file of the release.
type archive struct {
	name    string
	content []byte
}

// released are the programs of an archive, which are in the folder cmd.
var released = []string{"curfew", "curfew-bench"}

// settings replace the user's environment, so that builds on different machines are the same. Go reads the version from git.
var settings = []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off"}

// flags are those of go build. -buildvcs fails if Go cannot read git.
var flags = []string{"build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w"}

// make clones HEAD of the source and builds an archive for each platform.
func (b *build) make(ctx context.Context, source string, platforms []string) error {
	commit, err := output(ctx, source, nil, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if _, err := output(ctx, source, nil, "git", "clone", "--quiet", "--no-checkout", source, b.folder); err != nil {
		return err
	}
	if _, err := output(ctx, b.folder, nil, "git", "checkout", "--quiet", "--detach", commit); err != nil {
		return err
	}
	seconds, err := output(ctx, b.folder, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	shared, version, err := b.shared(ctx)
	if err != nil {
		return err
	}
	for _, platform := range platforms {
		system, processor, found := strings.Cut(platform, "/")
		if !found {
			return fmt.Errorf("the platform %q must be a system and a processor, such as linux/amd64", platform)
		}
		programs, err := b.compile(ctx, system, processor)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("curfew_%s_%s_%s", version, system, processor)
		packed, err := pack(system, name, time.Unix(unix, 0).UTC(), slices.Concat(programs, shared))
		if err != nil {
			return err
		}
		b.archives = append(b.archives, packed)
		fmt.Fprintf(os.Stderr, "%s  %s: %.1f MB\n", filepath.Base(b.folder), packed.name, float64(len(packed.content))/1e6)
	}
	return nil
}

// shared returns the files that are the same for all platforms, and the version. The programs for this machine print them.
func (b *build) shared(ctx context.Context) (files []file, version string, err error) {
	programs, err := b.compile(ctx, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return nil, "", err
	}
	for i, program := range released {
		for _, of := range []struct{ name, command string }{
			{"man/" + program + ".1", "__docs man"},
			{"completions/" + program + ".bash", "completion bash"},
			{"completions/_" + program, "completion zsh"},
			{"completions/" + program + ".fish", "completion fish"},
			{"completions/" + program + ".ps1", "completion powershell"},
		} {
			text, err := output(ctx, b.folder, nil, b.path(programs[i]), strings.Fields(of.command)...)
			if err != nil {
				return nil, "", err
			}
			files = append(files, file{of.name, []byte(text + "\n"), 0o644})
		}
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(b.folder, name))
		if err != nil {
			return nil, "", err
		}
		files = append(files, file{name, text, 0o644})
	}
	text, err := output(ctx, b.folder, nil, b.path(programs[0]), "version", "-o", "json")
	if err != nil {
		return nil, "", err
	}
	var is struct{ Program string }
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		return nil, "", err
	}
	if !strings.HasPrefix(is.Program, "v") {
		return nil, "", fmt.Errorf("the program has the version %q, which is not that of a commit", is.Program)
	}
	return files, strings.TrimPrefix(is.Program, "v"), nil
}

// path returns where compile writes a program.
func (b *build) path(program file) string { return filepath.Join(b.folder, "bin", program.name) }

// compile builds the programs for a platform, once.
func (b *build) compile(ctx context.Context, system, processor string) ([]file, error) {
	if programs, built := b.programs[system+"/"+processor]; built {
		return programs, nil
	}
	env := append([]string{"GOOS=" + system, "GOARCH=" + processor}, settings...)
	if b.cache != "" {
		env = append(env, "GOCACHE="+b.cache)
	}
	args := slices.Concat(flags, []string{"-o", "bin" + string(filepath.Separator)})
	for _, program := range released {
		args = append(args, "./cmd/"+program)
	}
	if _, err := output(ctx, b.folder, env, "go", args...); err != nil {
		return nil, err
	}
	var programs []file
	for _, name := range released {
		if system == "windows" {
			name += ".exe"
		}
		program := file{name: name, mode: 0o755}
		var err error
		if program.content, err = os.ReadFile(b.path(program)); err != nil {
			return nil, err
		}
		programs = append(programs, program)
	}
	if b.programs == nil {
		b.programs = map[string][]file{}
	}
	b.programs[system+"/"+processor] = programs
	return programs, nil
}

// same returns an error if another build has other archives.
func (b *build) same(other *build) error {
	var differ []error
	for i, of := range b.archives {
		if !bytes.Equal(of.content, other.archives[i].content) {
			differ = append(differ, fmt.Errorf("%s differs between two builds: %x and %x", of.name, sha256.Sum256(of.content), sha256.Sum256(other.archives[i].content)))
		}
	}
	return errors.Join(differ...)
}

// write writes the archives and their checksums into a folder. It removes those of an earlier release.
func (b *build) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "curfew_*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	var sums strings.Builder
	for _, of := range b.archives {
		if err := os.WriteFile(filepath.Join(folder, of.name), of.content, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(of.content), of.name)
	}
	if err := os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	fmt.Print(sums.String())
	return nil
}
