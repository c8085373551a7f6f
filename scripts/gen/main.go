// Command gen writes the checked-in files that are made from the code:
//
//	docs/teamctl.schema.json    JSON schema of teamctl.yaml, from the types of tool/teamfile
//	docs/announce.schema.json   JSON schema of the announce of a child session, from team
//	docs/ui.schema.json         JSON schema of ui.yaml, from internal/tui
//	docs/states.md              the states of members, stops, tasks and turns, from team's transition tables
//	docs/tools.md               every operation with its schemas, from tool/op
//	tool/op/models.json         the input schemas of the operations for models, from tool/op
//
// Run it with "go generate ./tool/teamfile" or "go run ./scripts/gen". With -check
// it writes nothing and fails when a file is stale.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/internal/tui"
	"github.com/teamctl/teamctl/tool/op"
	"github.com/teamctl/teamctl/tool/teamfile"
)

// files says what is made, relative to the root of the repository.
var files = []struct {
	path string
	make func() ([]byte, error)
}{
	{"docs/teamctl.schema.json", teamfile.Schema},
	{"docs/announce.schema.json", op.AnnounceSchemaFile},
	{"docs/ui.schema.json", tui.ConfigSchema},
	{"docs/states.md", states},
	{"docs/tools.md", tools},
	{"tool/op/models.json", op.ModelSchemaFile},
	{"tool/op/tools.json", op.ToolSchemaFile},
}

func main() {
	check := flag.Bool("check", false, "write nothing, fail when a file is stale")
	flag.Parse()
	if err := run(*check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(check bool, out io.Writer) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	var stale []error
	for _, f := range files {
		want, err := f.make()
		if err != nil {
			return fmt.Errorf("make %s: %w", f.path, err)
		}
		path := filepath.Join(root, f.path)
		have, err := os.ReadFile(path)
		if err == nil && bytes.Equal(have, want) {
			continue
		}
		if check {
			stale = append(stale, fmt.Errorf("%s is stale: run go run ./scripts/gen", f.path))
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, "wrote", f.path); err != nil {
			return err
		}
	}
	return errors.Join(stale...)
}

// findRoot is the directory of go.mod at or above the working directory.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod at or above the working directory")
		}
		dir = up
	}
}
