package inbox

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestHostileFiles(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.json")
	if err := os.WriteFile(outside, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	prepare := map[string]func(t *testing.T, dir string){
		"file is a symlink": func(t *testing.T, dir string) { link(t, outside, filepath.Join(dir, "inboxes", "bob.json")) },
		"file is a symlink inside": func(t *testing.T, dir string) {
			put(t, boxIn(t, dir), "[]")
			if err := os.Rename(filepath.Join(dir, "inboxes", "bob.json"), filepath.Join(dir, "inboxes", "eve.json")); err != nil {
				t.Fatal(err)
			}
			link(t, "eve.json", filepath.Join(dir, "inboxes", "bob.json"))
		},
		"dangling symlink": func(t *testing.T, dir string) {
			link(t, filepath.Join(dir, "none"), filepath.Join(dir, "inboxes", "bob.json"))
		},
		"directory is a symlink": func(t *testing.T, dir string) { link(t, filepath.Dir(outside), filepath.Join(dir, "inboxes")) },
		"file is a directory": func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, "inboxes", "bob.json"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"file is a pipe": func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "inboxes"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(filepath.Join(dir, "inboxes", "bob.json"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"everybody may write the file": func(t *testing.T, dir string) {
			put(t, boxIn(t, dir), "[]")
			if err := os.Chmod(filepath.Join(dir, "inboxes", "bob.json"), 0o666); err != nil {
				t.Fatal(err)
			}
		},
		"everybody may write the directory": func(t *testing.T, dir string) {
			put(t, boxIn(t, dir), "[]")
			if err := os.Chmod(filepath.Join(dir, "inboxes"), 0o777); err != nil {
				t.Fatal(err)
			}
		},
		"another user's file": func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			put(t, boxIn(t, dir), "[]")
			if err := os.Chown(filepath.Join(dir, "inboxes", "bob.json"), 65534, 65534); err != nil {
				t.Skip(err)
			}
		},
		"lock is a file": func(t *testing.T, dir string) {
			put(t, boxIn(t, dir), "[]")
			if err := os.WriteFile(filepath.Join(dir, "inboxes", "bob.json.lock"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"lock is a symlink": func(t *testing.T, dir string) {
			put(t, boxIn(t, dir), "[]")
			link(t, filepath.Dir(outside), filepath.Join(dir, "inboxes", "bob.json.lock"))
		},
	}
	for name, setup := range prepare {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			setup(t, dir)
			b, ctx := boxIn(t, dir), bg(t)
			if err := b.Append(ctx, Entry{From: "a", Text: "x"}); !team.IsCode(err, team.CodeDenied) {
				t.Errorf("append: %v", err)
			}
			if _, err := b.Entries(ctx); !team.IsCode(err, team.CodeDenied) {
				t.Errorf("read: %v", err)
			}
			if _, err := b.Consume(ctx, 0, nil); !team.IsCode(err, team.CodeDenied) {
				t.Errorf("consume: %v", err)
			}
			if data, err := os.ReadFile(outside); err != nil || string(data) != "[]" {
				t.Errorf("the file outside is %q, %v", data, err)
			}
			if got := names(t, filepath.Dir(outside)); len(got) != 1 {
				t.Errorf("outside there is %q", got)
			}
		})
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
