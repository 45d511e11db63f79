// Command write writes the rules for Prometheus and the dashboard for Grafana into a folder.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/curfew-dev/curfew/internal/deploy"
)

func main() {
	folder := flag.String("to", "deploy", "the folder")
	prefix := flag.String("prefix", "", "the prefix of all metrics (default: curfew_)")
	keep := flag.String("keep", "", "labels that distinguish namespaces of the same name, with commas: env,region")
	flag.Parse()
	if err := write(*folder, deploy.Config{Prefix: *prefix, Keep: labels(*keep)}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func labels(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func write(folder string, c deploy.Config, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("it takes flags only, and got %q", rest)
	}
	files, err := deploy.Files(c)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
