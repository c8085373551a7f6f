package teamctl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// TestMain removes the program that the examples built.
func TestMain(m *testing.M) {
	code := m.Run()
	if builtDir != "" {
		_ = os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

// builtDir is where built has put the program, for TestMain to remove.
var builtDir string

// built is the path of a teamctl made from this tree, once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "built")
	if err != nil {
		return "", err
	}
	builtDir = dir
	return strays.Program(dir)
})

func TestNewFindsItsProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := teamctl.New(teamctl.Options{Home: t.TempDir()})
	if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != "program_not_found" || team.HintOf(err) == "" {
		t.Errorf("without teamctl: %v", err)
	}
	t.Setenv(team.EnvHome, "/somewhere")
	env, err := teamctl.New(teamctl.Options{Program: []string{"/bin/teamctl"}})
	if err != nil || env.Home.Dir != "/somewhere" {
		t.Errorf("%+v, %v", env, err)
	}
}

// A program that uses the library lists models as the command line does.
func TestLibraryKnowsModels(t *testing.T) {
	t.Parallel()
	env, err := teamctl.New(teamctl.Options{Home: t.TempDir(), Program: []string{"/bin/teamctl"}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := env.Models(t.Context(), "", false)
	if err != nil || len(list) == 0 || list[0].Provider != "script" || list[0].Models[0].Ref != "script/demo" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := env.CheckModel(t.Context(), "nosuch/model"); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("a model of no provider: %v", err)
	}
}

// A program of another module needs nothing but the import.
func TestUsableFromAnotherModule(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/lead\n\ngo 1.26\n\nrequire github.com/teamctl/teamctl v0.0.0\n\nreplace github.com/teamctl/teamctl => " + root + "\n",
		"go.sum":  string(sums),
		"main.go": otherProgram,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off", team.EnvHome+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "task 1: vet" {
		t.Errorf("%v: %s", err, out)
	}
}

const otherProgram = `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/teamctl/teamctl"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/tool"
)

func main() {
	ctx, me := context.Background(), tool.Person()
	env, err := teamctl.New(teamctl.Options{Program: []string{"teamctl"}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := env.TeamCreate(ctx, me, tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		log.Fatal(err)
	}
	t, err := env.Open(ctx, "demo")
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	added, err := t.TaskAdd(ctx, me, tool.TaskAddIn{Tasks: []ledger.NewTask{{Subject: "vet"}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("task %s: %s\n", added[0].ID, added[0].Subject)
}
`
