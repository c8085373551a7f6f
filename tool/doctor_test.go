package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func findCheck(t *testing.T, list []Check, name string) Check {
	t.Helper()
	i := slices.IndexFunc(list, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %q in %v", name, list)
	}
	return list[i]
}

// fakeProgram puts a program that prints text first in PATH; with only, PATH has nothing else.
func fakeProgram(t *testing.T, name, text string, only bool) {
	t.Helper()
	dir := t.TempDir()
	if name != "" {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+text+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := dir
	if !only {
		path += ":" + os.Getenv("PATH")
	}
	t.Setenv("PATH", path)
}

func TestDoctorTmux(t *testing.T) {
	for text, want := range map[string]CheckStatus{
		"tmux 3.3a": CheckOK, "tmux 3.6": CheckOK, "tmux next-3.7": CheckOK, "tmux openbsd-7.6": CheckOK,
		"tmux 2.9a": CheckFail, "tmux master": CheckOK, "something else": CheckWarn,
	} {
		t.Run(text, func(t *testing.T) {
			fakeProgram(t, "tmux", text, false)
			c := tmuxCheck(t.Context())
			if c.Status != want {
				t.Errorf("%+v, want %s", c, want)
			}
			if note := strings.Contains(c.Detail, "before 3.6"); note != (text == "tmux 3.3a") {
				t.Errorf("note about 3.6 is %v: %s", note, c.Detail)
			}
		})
	}
}

func TestDoctorWithoutPrograms(t *testing.T) {
	fakeProgram(t, "", "", true)
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	list := e.Doctor(t.Context())
	for name, want := range map[string]CheckStatus{"tmux": CheckFail, "git": CheckFail, "go": CheckWarn} {
		c := findCheck(t, list, name)
		if c.Status != want || c.Hint == "" {
			t.Errorf("%+v, want %s with a hint", c, want)
		}
	}
}

func TestDoctorHome(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(name string, want CheckStatus) {
		t.Helper()
		e := &Env{Home: team.Home{Dir: filepath.Join(dir, name)}}
		if c := e.homeCheck(); c.Status != want || want != CheckOK && c.Hint == "" {
			t.Errorf("%s: %+v, want %s", name, c, want)
		}
	}
	check("missing/as/yet", CheckOK)
	if _, err := os.Stat(filepath.Join(dir, "missing")); err == nil {
		t.Error("the doctor made the home")
	}
	for name, mode := range map[string]os.FileMode{"private": 0o700, "open": 0o755} {
		if err := os.Mkdir(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	check("private", CheckOK)
	check("open", CheckWarn)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check("file", CheckFail)
	check("file/below", CheckFail)
}

func TestDoctorSockets(t *testing.T) {
	t.Setenv(team.EnvRuntime, "/tmp/short")
	if c := socketCheck(team.Home{Dir: "/h"}.Team("x")); c.Status != CheckOK {
		t.Errorf("%+v", c)
	}
	t.Setenv(team.EnvRuntime, "/tmp/"+strings.Repeat("long/", 20))
	if c := socketCheck(team.Home{Dir: "/h"}.Team("x")); c.Status != CheckFail || c.Hint == "" {
		t.Errorf("%+v, want a failure with a hint", c)
	}
}

func TestDoctorTeams(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := &Env{Home: team.Home{Dir: home}}
	if c := findCheck(t, e.teamChecks(t.Context()), "teams"); c.Status != CheckOK {
		t.Errorf("without teams: %+v", c)
	}
	for _, d := range []string{"teams/half", "teams/.deleted-x-1", "teams/broken"} {
		if err := os.MkdirAll(filepath.Join(home, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		"teams.json":             `{"gone":"` + home + `/teams/gone"}`,
		"teams/broken/ledger.db": "this is no database, and long enough to look at",
	} {
		if err := os.WriteFile(filepath.Join(home, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := e.teamChecks(t.Context())
	if c := findCheck(t, list, "registry"); c.Status != CheckWarn || !strings.Contains(c.Detail, "gone") {
		t.Errorf("%+v", c)
	}
	if c := findCheck(t, list, "team broken"); c.Status != CheckWarn {
		t.Errorf("%+v", c)
	}
	n := 0
	for _, c := range list {
		if c.Name == "leftover" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d leftovers, want 2: %+v", n, list)
	}
}
