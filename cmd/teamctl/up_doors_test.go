package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestUpAtEveryDoor checks that an MCP client, teamctl call, teamctl up and a Go program can
// compare a team file, bring it up, repeat that and remove members, with the same results. The
// commands of a file in a repository run through none of them without a person's consent, and
// through all of them once a person has agreed.
func TestUpAtEveryDoor(t *testing.T) {
	doors := map[string]func(*world) door{
		"mcp": (*world).viaMCP, "call": (*world).viaCall, "verb": (*world).viaVerbs, "go": (*world).viaGo,
	}
	if testing.Short() {
		spare(doors, "verb")
	}
	for name, open := range doors {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := open(w)
			write := func(path, text string) string {
				t.Helper()
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			const members = "team: demo\nmembers:\n  - {name: a, command: [sleep, '1000'], backend: pty}\n"
			file := write(filepath.Join(w.dir, "team.yaml"), members+"  - {name: b, command: [sleep, '1000'], backend: pty}\ntasks:\n  - {id: t, subject: look}\n")
			up := func(in map[string]any) (out tool.UpOut) {
				t.Helper()
				in["file"] = file
				w.must(d, "TeamUp", in, &out)
				return out
			}
			changes := func(out tool.UpOut) string {
				var list []string
				for _, c := range out.Changes {
					list = append(list, fmt.Sprint(c.Op, " ", c.What, " ", c.Name, " ", c.Skipped != ""))
				}
				slices.Sort(list)
				return strings.Join(list, ", ")
			}
			if got := changes(up(map[string]any{"dry_run": true})); got != "add member a false, add member b false, add task t false, add team demo false" {
				t.Errorf("dry run of a new team: %s", got)
			}
			if list, err := (&tool.Env{Home: w.home()}).Teams(t.Context()); err != nil || len(list) != 0 {
				t.Fatalf("a dry run created a team: %v %v", list, err)
			}
			if out := up(map[string]any{}); len(out.Members) != 2 || len(out.Tasks) != 1 || out.Outcome != "" {
				t.Errorf("up: %+v", out)
			}
			if out := up(map[string]any{}); out.Outcome != "already_up" || len(out.Members) != 0 {
				t.Errorf("up again: %+v", out)
			}
			write(file, members)
			if got := changes(up(map[string]any{"dry_run": true, "remove": true})); got != "remove member b false, remove task 1 false" {
				t.Errorf("dry run of a removal: %s", got)
			}
			if got := changes(up(map[string]any{})); got != "remove member b true, remove task 1 true" {
				t.Errorf("up removes without being asked: %s", got)
			}
			if got := changes(up(map[string]any{"remove": true})); got != "remove member b false, remove task 1 false" {
				t.Errorf("up removes: %s", got)
			}
			w.must(d, "TeamShutdown", nil, nil)
			w.must(d, "TeamDelete", nil, nil)

			repo := filepath.Join(w.dir, "repo")
			if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			file = write(filepath.Join(repo, "team.yaml"), members)
			if _, f := d("TeamUp", map[string]any{"file": file}); f == nil || f.Code != team.CodeDenied || f.Reason != team.ReasonConsent {
				t.Errorf("commands of a repository ran without consent: %+v", f)
			}
			if _, f := d("TeamUp", map[string]any{"file": file, "agree": true}); name != "verb" && (f == nil || f.Code != team.CodeInvalid) {
				t.Errorf("a program can agree: %+v", f)
			}
			if _, f := w.run("up", "-f", file, "--agree", "--json"); f != nil {
				t.Fatalf("a person agrees: %+v", *f)
			}
			if out := up(map[string]any{}); out.Outcome != "already_up" {
				t.Errorf("up of what a person agreed to: %+v", out)
			}
			w.must(d, "TeamShutdown", nil, nil)
			w.must(d, "TeamDelete", nil, nil)
		})
	}
}

// TestUpByALead checks that a program that leads the team can bring up a file that keeps the
// current settings. A change of settings that only a person may change is refused before anything
// is done, also in a dry run.
func TestUpByALead(t *testing.T) {
	for name, open := range map[string]func(*world) door{"mcp": (*world).viaMCP, "go": (*world).viaGo} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := open(w)
			file := filepath.Join(w.dir, "team.yaml")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			refused := func(settings string) {
				t.Helper()
				for _, dry := range []bool{true, false} {
					_, f := d("TeamUp", map[string]any{"file": file, "dry_run": dry})
					if f == nil || f.Code != team.CodeDenied || f.Reason != team.ReasonRole || !strings.HasSuffix(f.Error, "changes "+settings) {
						t.Errorf("dry run %v: %+v", dry, f)
					}
				}
			}
			person := func(args ...string) (out tool.UpOut) {
				t.Helper()
				res, f := w.run(append([]string{"up", "-f", file, "--json"}, args...)...)
				if f != nil {
					t.Fatalf("%+v", *f)
				}
				if err := json.Unmarshal(res, &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			names := func() (list []string) {
				t.Helper()
				var out struct{ Members []struct{ Name string } }
				w.must(d, "TeamStatus", nil, &out)
				for _, m := range out.Members {
					list = append(list, m.Name)
				}
				return list
			}
			const member = "members:\n  - {name: a, command: [sleep, '1000'], backend: pty}\n"
			const more = "  - {name: b, command: [sleep, '1000'], backend: pty}\n"
			const settings = "budget: {tokens: 100000}\nhooks: {TaskCreated: [{command: 'true'}]}\n" +
				"permissions: {deny: [{tool: shell, command: 'rm *'}]}\nmcp: {files: {command: [cat]}}\n"
			write("team: demo\n" + settings + member)
			refused("hooks, permissions, budgets, mcp")
			if list, err := (&tool.Env{Home: w.home()}).Teams(t.Context()); err != nil || len(list) != 0 {
				t.Fatalf("a refused file created a team: %v %v", list, err)
			}
			if out := person("--dry-run"); len(out.Changes) != 6 || out.Changes[1].What+" "+out.Changes[1].Name != "setting hooks" {
				t.Errorf("dry run of a new team: %+v", out.Changes)
			}
			person()
			var out tool.UpOut
			if w.must(d, "TeamUp", map[string]any{"file": file}, &out); out.Outcome != "already_up" {
				t.Errorf("up of what is up: %+v", out)
			}
			write("team: demo\n" + settings + member + more)
			if w.must(d, "TeamUp", map[string]any{"file": file}, &out); len(out.Members) != 1 || !slices.Equal(names(), []string{team.LeadName, "a", "b"}) {
				t.Errorf("up of another member: %+v, %v", out, names())
			}
			write("team: demo\n" + strings.Replace(settings, "100000", "200000", 1) + member + more + strings.Replace(more, "name: b", "name: c", 1))
			refused("budgets")
			if got := names(); len(got) != 3 {
				t.Errorf("a refused file created members: %v", got)
			}
			write("team: demo\n" + strings.Replace(settings, "mcp: {files: {command: [cat]}}\n", "", 1) + member + more)
			refused("mcp")
			if out := person("--dry-run"); len(out.Changes) != 1 || out.Changes[0].Op+" "+out.Changes[0].Name != "remove mcp" {
				t.Errorf("dry run without servers: %+v", out.Changes)
			}
			if out := person(); out.Outcome != "" {
				t.Errorf("a setting was changed, but the team is reported as already up: %+v", out)
			}
			w.must(d, "TeamUp", map[string]any{"file": file}, &out)
			w.must(d, "TeamShutdown", nil, nil)
			w.must(d, "TeamDelete", nil, nil)
		})
	}
}
