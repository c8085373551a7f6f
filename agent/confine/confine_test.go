package confine

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sh runs a command in dir, confined to the paths of write.
func sh(t *testing.T, dir, command string, write ...string) (string, run.Ended) {
	t.Helper()
	c, err := New(write...)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	end, err := run.Run(t.Context(), run.Cmd{
		Command: command, Dir: dir, Env: os.Environ(), Generation: team.NewUUID(),
		Stdout: &out, Stderr: &out, Limit: 5 * time.Minute, Grace: time.Second, Enter: c.Enter,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), end
}

func needsLandlock(t *testing.T) {
	t.Helper()
	if err := Supported(); err != nil {
		t.Skip("no confinement here: ", err)
	}
}

// TestConfined checks that a command can write below the named paths only, by whatever means.
func TestConfined(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	in, out := t.TempDir(), t.TempDir()
	one := filepath.Join(t.TempDir(), "one")
	for _, file := range []string{filepath.Join(out, "theirs"), filepath.Join(out, "also"), one} {
		if err := os.WriteFile(file, []byte("theirs\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(out, filepath.Join(in, "link")); err != nil {
		t.Fatal(err)
	}
	for command, works := range map[string]bool{
		"echo x > f && mkdir -p a/b && mv f a/b/g && ln -s g a/b/h && rm -r a": true,
		"mkdir c d && echo x > c/f && mv c/f d/f && ln d/f c/f":                true,
		"mkfifo p && rm p": true,
		"echo x > /dev/null && echo x >/dev/stderr && cat </dev/zero | head -c1": true,
		"echo more >> '" + one + "'":                                                             true,
		"cat '" + out + "/theirs' && ls '" + out + "' && test -r /etc/passwd":                    true,
		"git init -q r && cd r && git -c user.name=n -c user.email=e commit -qm m --allow-empty": true,
		"rm '" + one + "'":                                     false,
		"echo x > '" + out + "/new'":                           false,
		"echo x >> '" + out + "/theirs'":                       false,
		"echo x > link/new":                                    false,
		"truncate -s0 '" + out + "/theirs'":                    false,
		"rm '" + out + "/also'":                                false,
		"mkdir '" + out + "/d'":                                false,
		"mv '" + out + "/also' .":                              false,
		"touch mine && mv mine '" + out + "/new'":              false,
		"ln '" + out + "/also' here && echo x > here":          false,
		"ln -s x '" + out + "/l'":                              false,
		"(setsid bash -c 'echo x > \"" + out + "/new\"')":      false,
		"cd '" + out + "' && bash -c 'exec 3>new'":             false,
		"mknod dev b 7 0":                                      false,
		"mount --bind '" + out + "' . ; echo x > new && false": false,
	} {
		text, end := sh(t, in, command, in, one)
		if end.OK() != works {
			t.Errorf("%s: %s\n%s", command, end.Why(0), text)
		}
	}
	list, err := os.ReadDir(out)
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	for _, e := range list {
		if b, err := os.ReadFile(filepath.Join(out, e.Name())); err != nil || string(b) != "theirs\n" {
			t.Errorf("%s has %q, %v", e.Name(), b, err)
		}
	}
}

// TestThisProcessIsFree checks that confining a command does not confine the process that starts
// it.
func TestThisProcessIsFree(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	for range 20 {
		if text, end := sh(t, t.TempDir(), "true"); !end.OK() {
			t.Fatal(end, text)
		}
		done := make(chan error)
		for range 8 {
			go func() { done <- os.WriteFile(filepath.Join(t.TempDir(), "f"), nil, 0o600) }()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPathsAreNamedOnce checks that paths are resolved by New: replacing one with a symbolic link
// later does not widen what the command may write.
func TestPathsAreNamedOnce(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	in, out := t.TempDir(), t.TempDir()
	sub := filepath.Join(in, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := New(in, sub)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(sub), os.Symlink(out, sub)); err != nil {
		t.Fatal(err)
	}
	end, err := run.Run(t.Context(), run.Cmd{Command: "echo x > sub/f", Dir: in, Env: os.Environ(), Generation: team.NewUUID(), Grace: time.Second, Enter: c.Enter})
	if err != nil || end.OK() {
		t.Errorf("%+v, %v", end, err)
	}
}

func TestPathsAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{"rel": "not absolute", filepath.Join(dir, "none"): "no such file"} {
		if _, err := New(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	c, err := New("/", dir)
	if err != nil || len(c.write) != 1 {
		t.Errorf("%v, %v", c, err)
	}
	for path, want := range map[string]bool{"/a": true, "/a/b": true, "/ab": false, "/": false} {
		if got := below("/a", path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// TestGone checks that a command does not run if one of its paths no longer exists.
func TestGone(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	dir, gone := t.TempDir(), filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := New(dir, gone)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	end, err := run.Run(t.Context(), run.Cmd{Command: "touch ran", Dir: dir, Env: os.Environ(), Generation: team.NewUUID(), Enter: c.Enter})
	if err != nil || !errors.Is(end.Err, os.ErrNotExist) {
		t.Errorf("%+v, %v", end, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran")
	}
}
