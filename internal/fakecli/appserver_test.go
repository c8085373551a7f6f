package fakecli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/fakemodel"
)

// TestThreadHasTextAndItem checks what a server that is killed leaves: the stored thread names each
// text that it holds, also the one that the model has not answered yet.
func TestThreadHasTextAndItem(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	model, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := StartAppServer(filepath.Join(home, "s"), NewEngine(model.URL, home), "", home, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.begin("thread-1", false); err != nil {
		t.Fatal(err)
	}
	s.Engine.Send(Text{ID: "first", Text: "@@sleep 1h\n@@say never"}, true)
	if _, err := model.Wait(t.Context(), func(r fakemodel.Request) bool { return strings.Contains(r.New, "never") }); err != nil {
		t.Fatal(err)
	}
	k, err := readKept(filepath.Join(home, ".codex", "sessions", "thread-1.json"))
	if err != nil {
		t.Fatal(err)
	}
	items, err := json.Marshal(k.Items)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(k.Talk), "@@say never") || !strings.Contains(string(items), `"clientId":"first"`) {
		t.Errorf("it keeps the conversation %s with the items %s", k.Talk, items)
	}
}
