package tool

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/team"
)

// All files of a team are private to its user: files 0600, directories 0700. Lock
// directories have a mode that distinguishes ours from others', in a private directory.
func TestStateIsPrivate(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	_, err := r.Join(ctx, Person(), JoinIn{Name: "guest"})
	if err != nil {
		t.Fatal(err)
	}
	a := r.as("a", team.RoleExecutor)
	r.say(Person(), "a", "hello")
	r.say(a, "guest", "hello")
	if _, err := r.consume(ctx, a); err != nil {
		t.Fatal(err)
	}
	if _, err := r.TaskAdd(ctx, a, TaskAddIn{Tasks: newTasks("one")}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ScratchpadMerge(ctx, a, json.RawMessage(`{"k":1}`), nil); err != nil {
		t.Fatal(err)
	}
	dump, err := r.TaskExport(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteTaskDir(ctx, filepath.Join(r.Layout.Home.Dir, "tasks"), dump); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(r.Layout.Home.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == r.Layout.Home.Dir { // it was there before
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		switch {
		case e.IsDir() && strings.HasSuffix(path, ".lockdir"):
			want = inbox.LockMode
		case e.IsDir():
			want = 0o700
		default:
			files++
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %v, want %v", path, got, want)
		}
		return nil
	})
	if err != nil || files < 8 {
		t.Errorf("%d files, %v", files, err)
	}
}
