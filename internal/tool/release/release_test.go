package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/size"
)

// Two builds of HEAD in different folders give the same archive, and the checksum is that of the archive.
func TestAReleaseIsReproducible(t *testing.T) {
	if !size.Long() {
		t.Skip("CURFEW_LONG is not 1: this test compiles and links the programs twice")
	}
	out := t.TempDir()
	stale := filepath.Join(out, "curfew_0.0.1_linux_amd64.tar.gz")
	if err := os.WriteFile(stale, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../..")
	r := release{platforms: []string{runtime.GOOS + "/" + runtime.GOARCH}, out: out}
	if err := r.run(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sum, name, _ := strings.Cut(strings.TrimSpace(string(sums)), "  ")
	content, err := os.ReadFile(filepath.Join(out, name))
	if err != nil || sum != fmt.Sprintf("%x", sha256.Sum256(content)) {
		t.Errorf("%q, %v", sums, err)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("the archive of an earlier release is still there")
	}
	files, _ := untar(t, content)
	folder := strings.TrimSuffix(name, ".tar.gz") + "/"
	wanted := []string{"LICENSE", "README.md", "CHANGELOG.md"}
	for _, program := range []string{"curfew", "curfew-bench"} {
		wanted = append(wanted, program, "man/"+program+".1", "completions/"+program+".bash", "completions/_"+program, "completions/"+program+".fish", "completions/"+program+".ps1")
	}
	for _, file := range wanted {
		if files[folder+file] == "" {
			t.Errorf("%s is not in the archive, or empty", file)
		}
	}
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curfew", "curfew-bench"} {
		program := filepath.Join(out, name)
		if err := redisproc.WriteProgram(program, files[folder+name]); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(program, "version").CombinedOutput()
		if want := "\ncommit " + strings.TrimSpace(string(head)) + "\n"; err != nil || !strings.HasPrefix(string(said), name+" v") || !strings.Contains(string(said), want) || strings.Contains(string(said), "dirty") {
			t.Errorf("%s, %v, want %q", said, err, want)
		}
	}
}

// The comparison can fail.
func TestADifferenceIsAnError(t *testing.T) {
	a, b := &build{archives: []archive{{"x", []byte("a")}, {"y", []byte("a")}}}, &build{archives: []archive{{"x", []byte("a")}, {"y", []byte("b")}}}
	if err := a.same(b); err == nil || !strings.Contains(err.Error(), "y differs") || strings.Contains(err.Error(), "x differs") {
		t.Error(err)
	}
}

func TestUncommittedChangesAreRefused(t *testing.T) {
	folder := t.TempDir()
	for _, args := range [][]string{{"init", "--quiet"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--allow-empty", "-m", "first"}} {
		git := exec.Command("git", args...)
		git.Dir = folder
		if said, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v, %s", args, err, said)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	r := release{out: "dist"}
	if err := r.run(t.Context(), false); err == nil || !strings.Contains(err.Error(), "DIRTY=1") || !strings.Contains(err.Error(), "?? new") {
		t.Error(err)
	}
	if _, err := os.Stat("dist"); err == nil {
		t.Error("dist was written")
	}
}

// The files of an archive have one time and no owner of this machine.
func TestArchivesDependOnTheirFilesOnly(t *testing.T) {
	at := time.Unix(1_700_000_000, 0).UTC()
	files := []file{{"curfew", []byte("program"), 0o755}, {"man/curfew.1", []byte("page"), 0o644}}
	tarred, err1 := pack("linux", "curfew_1", at, files)
	zipped, err2 := pack("windows", "curfew_1", at, files)
	if err1 != nil || err2 != nil || tarred.name != "curfew_1.tar.gz" || zipped.name != "curfew_1.zip" {
		t.Fatal(tarred.name, zipped.name, err1, err2)
	}
	content, headers := untar(t, tarred.content)
	for _, h := range headers {
		if !h.ModTime.Equal(at) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%+v", h)
		}
	}
	if content["curfew_1/curfew"] != "program" || headers[0].Mode != 0o755 || len(headers) != 2 {
		t.Errorf("%v, %+v", content, headers)
	}
	r, err := zip.NewReader(bytes.NewReader(zipped.content), int64(len(zipped.content)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
		if !f.Modified.Equal(at) {
			t.Errorf("%s: %v", f.Name, f.Modified)
		}
	}
	if !slices.Equal(names, []string{"curfew_1/curfew", "curfew_1/man/curfew.1"}) || r.File[0].Mode() != 0o755 {
		t.Errorf("%v, %v", names, r.File[0].Mode())
	}
}

func untar(t *testing.T, content []byte) (files map[string]string, headers []*tar.Header) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], headers = string(text), append(headers, h)
	}
}
