package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/ledger"
)

// release is the newest release in docs/changelog; scripts/release sets it.
const release = "v0.1.0"

// version and commit are set by the linker in builds outside a module: -ldflags "-X
// main.version=v1.2.3 -X main.commit=abc".
var version, commit string

type versionInfo struct {
	Module  string `json:"module"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Dirty   bool   `json:"dirty,omitempty"` // built from a tree with changes
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	SQLite  string `json:"sqlite"`
}

// readVersion reports what this program was built from.
func readVersion() versionInfo {
	v := versionInfo{
		Module: "github.com/teamctl/teamctl", Version: version, Commit: commit,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, SQLite: ledger.SQLiteVersion(),
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		if b.Main.Path != "" {
			v.Module = b.Main.Path
		}
		if v.Version == "" {
			v.Version = released(b.Main.Version)
		}
		for _, s := range b.Settings {
			switch {
			case s.Key == "vcs.revision" && v.Commit == "":
				v.Commit = s.Value
			case s.Key == "vcs.modified":
				v.Dirty = s.Value == "true"
			}
		}
	}
	v.Version = cmp.Or(v.Version, release)
	return v
}

// released returns the version of a build. The go command knows it where it builds a release by
// its version, or a commit at or after a tag. Elsewhere it is the newest release that the source
// has, and the commit tells what was built.
func released(module string) string {
	if module == "" || module == "(devel)" || strings.HasPrefix(module, "v0.0.0-") {
		return release
	}
	return module
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  teamctl version\n  teamctl version --json",
		Args:    takes(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if a.out.value(v) {
				return nil
			}
			text := "teamctl " + v.Version
			if v.Commit != "" {
				text += " (" + short(v.Commit)
				if v.Dirty {
					text += ", changed"
				}
				text += ")"
			}
			a.out.line("%s\n%s, %s %s/%s, sqlite %s", text, v.Module, v.Go, v.OS, v.Arch, v.SQLite)
			return nil
		},
	}
}
