package mcp

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/tool/op"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The three texts, word for word as a client gets them. Models read them, so a changed
// word is a change of behaviour. Every tool that they name exists.
func TestPromptsGolden(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	cs, _ := r.client(r.person())
	list, err := cs.ListPrompts(t.Context(), nil)
	if err != nil || len(list.Prompts) != 3 {
		t.Fatalf("%v %v", list, err)
	}
	steps := map[string]int{"team-workflow": 6, "shutdown-reminder": 4, "delegate-mode": 0}
	for _, p := range list.Prompts {
		got, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: p.Name})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Messages) != 1 || got.Messages[0].Role != "user" || got.Description != p.Description {
			t.Fatalf("%s: %+v", p.Name, got)
		}
		text := strings.ReplaceAll(got.Messages[0].Content.(*sdk.TextContent).Text, r.env.Home.Dir, "HOME")
		promptGolden(t, p.Name+".txt", text+"\n")
		n := 0
		for _, l := range strings.Split(text, "\n") {
			if l != "" && l[0] >= '1' && l[0] <= '9' {
				n++
			}
		}
		if want, known := steps[p.Name]; !known || n != want {
			t.Errorf("%s has %d steps, want %d", p.Name, n, want)
		}
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < 'A' || r > 'z') }) {
			if len(word) > 4 && word[0] <= 'Z' && strings.ToUpper(word) != word && strings.ContainsAny(word[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				if _, err := op.Find(word); err != nil {
					t.Errorf("%s names %s, which is no tool", p.Name, word)
				}
			}
		}
	}
}

func promptGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}
