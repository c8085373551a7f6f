package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/team"
)

func TestRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.file("a.txt", "one\ntwo\r\nthree\n")
	r.wants(r.read("a.txt"), false, "     1\tone\n     2\ttwo\n     3\tthree")
	r.wants(r.call("read", map[string]any{"path": "a.txt", "offset": -1}), false, "     3\tthree")
	r.wants(r.call("read", map[string]any{"path": "a.txt", "offset": 9}), true, "has 3 lines")
	r.wants(r.call("read", map[string]any{"path": "a.txt", "offset": 2, "limit": 1}), false, "two", "go on with offset 3")
	r.wants(r.read("none"), true, "no such file")
	r.wants(r.read("."), true, "list it with ls")
	r.file("empty", "")
	r.wants(r.read("empty"), false, "empty")
	r.file("bin", "a\x00b")
	r.wants(r.read("bin"), true, "binary")
	r.file("umlaut", strings.Repeat("\u00e4", 8<<10)) // a character crosses the end of the bytes that are inspected
	r.wants(r.read("umlaut"), false, "\u00e4")
	if err := syscall.Mkfifo(filepath.Join(r.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.wants(r.read("fifo"), true, "not a regular file")
	r.file("long", strings.Repeat("x", 100_000)+"\nend\n")
	r.wants(r.read("long"), false, "bytes more]", "     2\tend")
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	r.file("many", many.String())
	if o := r.read("many"); strings.Count(o.Text, "\n") > MaxLines || len(o.Text) > MaxBytes || !strings.Contains(o.Text, "go on with offset 2001") {
		t.Errorf("%d bytes, %d lines: ...%s", len(o.Text), strings.Count(o.Text, "\n"), o.Text[len(o.Text)-80:])
	}
}

func TestInputIsChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for input, want := range map[string]string{
		``:                          "path is missing",
		`{"path": "a"`:              "not JSON",
		`{"path": 7}`:               "path is a number, want string",
		`{"path": "a", "lines": 1}`: `unknown field "lines"`,
		`["a"]`:                     "array",
		`{"path": "a"} {}`:          "more than one value",
	} {
		r.wants(r.raw("read", input), true, "The input of read is not valid: ", want)
	}
}

// TestPaths checks that no symbolic link, whatever its name, leads out of the worktree.
func TestPaths(t *testing.T) {
	t.Parallel()
	home, other, open := t.TempDir(), t.TempDir(), t.TempDir()
	r := newRig(t, func(c *Config) { c.Home, c.Open = home, []string{open} })
	for _, dir := range []string{home, other, open} {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": other, "state": home, "loop": "loop", ".netrc": "loop", "nowhere": "/no/such/place", "dir": "sub", "environ": "/proc/self/environ"} {
		if err := os.Symlink(to, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.file("sub/f", "inside")
	for path, want := range map[string]Where{
		"sub/f": Inside, "dir/f": Inside, "./sub/../sub/f": Inside, "new/file": Inside, filepath.Join(r.dir, "sub/f"): Inside,
		"out/f": Outside, "../x": Outside, "/etc/passwd": Outside, filepath.Join(other, "f"): Outside, "loop": Outside, "nowhere/x": Outside,
		filepath.Join(open, "f"): Readable,
		"state/f":                Forbidden, filepath.Join(home, "f"): Forbidden, "environ": Forbidden, ".netrc": Forbidden, "/proc/1/environ": Forbidden, "/proc/self/mem": Forbidden,
		"/home/x/.ssh/id_ed25519": Forbidden, "/root/.netrc": Forbidden, ".aws/credentials": Forbidden, "/home/x/.ssh/id_ed25519.pub": Outside,
	} {
		if got := r.Locate(path); got != want {
			t.Errorf("%s is %d, want %d", path, got, want)
		}
	}
	r.wants(r.read("state/f"), true, "may not be read")
	for _, path := range []string{"out/f", "state/f", filepath.Join(open, "f"), "../x", "loop", ".git/config", "environ"} {
		o := r.call("write", map[string]any{"path": path, "content": "x"})
		if !o.Failed {
			t.Errorf("%s was written", path)
		}
	}
	r.wants(r.call("write", map[string]any{"path": "dir/new", "content": "x"}), false)
	if r.content("sub/new") != "x" {
		t.Error("a link inside the worktree was not followed")
	}
}

// TestHomeInside checks that an agent cannot open the files of teamctl's home even if it is
// inside the worktree.
func TestHomeInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home := filepath.Join(dir, ".teamctl")
	r := newRig(t, func(c *Config) { c.Dir, c.Home, c.Outputs = dir, home, filepath.Join(home, "out") })
	r.dir = dir
	r.file(".teamctl/ledger.db", "secret")
	r.file(".teamctl/out/long.txt", "shown")
	r.file("f", "secret")
	r.wants(r.read(".teamctl/ledger.db"), true, "may not be read")
	r.wants(r.read(".teamctl/out/long.txt"), false, "shown")
	r.wants(r.call("write", map[string]any{"path": ".teamctl/new", "content": "x"}), true, "may not be written")
	for _, o := range []Out{r.call("grep", map[string]any{"pattern": "secret"}), r.call("glob", map[string]any{"pattern": "**"}), r.call("ls", nil)} {
		r.wants(o, false, "f")
		if strings.Contains(o.Text, ".teamctl/ledger") || strings.Contains(o.Text, ".teamctl/\n") {
			t.Errorf("%q", o.Text)
		}
	}
}

// TestWriteOutside checks that a file outside the worktree can be written only if a rule names
// its path.
func TestWriteOutside(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	r := newRig(t, func(c *Config) {
		c.Rules = rulesOf(team.Permissions{Allow: []team.PermissionRule{rule("edit", out+"/ok/*", "")}})
	})
	if err := os.Mkdir(filepath.Join(out, "ok"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(out, "ok", "f")
	o := r.call("write", map[string]any{"path": file, "content": "one\n"})
	r.wants(o, false, file+" +1 -0")
	r.wants(r.edit(file, "one", "two"), false)
	if b, err := os.ReadFile(file); err != nil || string(b) != "two\n" || o.Paths[0] != file {
		t.Errorf("%q, %v, %q", b, err, o.Paths)
	}
	if err := os.Symlink(out, filepath.Join(out, "ok", "up")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(out, "f"), file + "/../../f", filepath.Join(out, "ok", "up")} {
		r.wants(r.call("write", map[string]any{"path": path, "content": "x"}), true)
	}
	r.wants(r.call("write", map[string]any{"path": "sub/.git/config", "content": "x"}), true, "git's own")
}

func TestWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.call("write", map[string]any{"path": "a/b.sh", "content": "one\n"})
	r.wants(o, false, "a/b.sh +1 -0")
	if err := os.Chmod(filepath.Join(r.dir, "a/b.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.wants(r.call("write", map[string]any{"path": "a/b.sh", "content": "two\n"}), false, "+1 -1") // the session has written the file itself
	if info, err := os.Stat(filepath.Join(r.dir, "a/b.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	r.file("old", "theirs")
	r.wants(r.call("write", map[string]any{"path": "old", "content": "mine"}), true, "stale: old has not been read")
	r.read("old")
	r.file("old", "changed")
	r.wants(r.call("write", map[string]any{"path": "old", "content": "mine"}), true, "stale: old has changed")
	if r.content("old") != "changed" {
		t.Error("it was written nevertheless")
	}
}

// TestEditLands checks that an edit applies at its text or not at all.
func TestEditLands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, old, new, after string // after "" means refused
		says                    string
	}{
		"exact":                   {before: "a\nb\nc\n", old: "b", new: "B", after: "a\nB\nc\n"},
		"twice":                   {before: "x\ny\nx\n", old: "x", new: "z", says: "2 times, at lines 1, 3"},
		"not there":               {before: "func add(a int) {\n\treturn\n}\n", old: "func add(b int) {", new: "x", says: "the nearest lines are:\n     1\tfunc add(a int) {"},
		"indented otherwise":      {before: "if x {\n\ty()\n}\n", old: "if x {\n    y()\n}", new: "z()", says: "not in the file"},
		"trailing blanks":         {before: "a  \nb\t\nc\n", old: "a\nb\n", new: "x\n", after: "x\nc\n"},
		"blanks, twice":           {before: "a \nb\na\t\n", old: "a\n", new: "x\n", says: "2 times but for line ends"},
		"crlf":                    {before: "a\r\nb\r\nc\r\n", old: "a\nb\n", new: "x\ny\n", after: "x\r\ny\r\nc\r\n"},
		"crlf, one line to two":   {before: "a\r\nb\r\n", old: "a", new: "x\ny", after: "x\r\ny\r\nb\r\n"},
		"crlf as it is":           {before: "a\r\nb\r\n", old: "a\r\n", new: "x\n", after: "x\nb\r\n"},
		"bom":                     {before: "\ufeffa \nb\n", old: "a\nb", new: "c", after: "\ufeffc\n"},
		"last line without end":   {before: "a\nb ", old: "b", new: "c", after: "a\nc "},
		"loose last line, no end": {before: "a \nb ", old: "a\nb", new: "c", after: "c"},
		"overlapping":             {before: "}\n}\n}\n", old: "}\n}\n", new: "", says: "2 times, at lines 1, 2"},
		"loose, overlapping":      {before: "} \n} \n} \n", old: "}\n}\n", new: "", says: "2 times but for line ends"},
		"a line too many":         {before: "a\nb\n", old: "b\n \n", new: "c", says: "not in the file"},
		"nothing but blanks":      {before: "a\n\nb\n", old: "  ", new: "c", says: "not in the file"},
		"empty old":               {before: "a", old: "", new: "b", says: "old is empty"},
		"same":                    {before: "a", old: "a", new: "a", says: "the same"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.file("f", c.before)
			r.read("f")
			o := r.edit("f", c.old, c.new)
			want := c.after
			if c.after == "" {
				want = c.before
			}
			r.wants(o, c.after == "", c.says)
			if got := r.content("f"); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestEditsAllOrNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.file("f", "a b c\n")
	r.wants(r.edit("f", "a", "x"), true, "has not been read")
	r.read("f")
	r.wants(r.edit("f", "a", "x", "nothing", "y"), true, "edit 2 of 2", "Nothing was changed")
	if r.content("f") != "a b c\n" {
		t.Errorf("%q", r.content("f"))
	}
	o := r.edit("f", "a", "x", "x b", "y")
	r.wants(o, false)
	if r.content("f") != "y c\n" || !strings.Contains(o.Diff, "-a b c\n+y c\n") || o.Paths[0] != "f" {
		t.Errorf("%q, %+v", r.content("f"), o)
	}
	r.wants(r.call("edit", map[string]any{"path": "f", "edits": []map[string]any{{"old": "c", "new": "d d", "all": true}}}), false)
	r.wants(r.edit("none", "a", "b"), true, "create it with write")
}

// TestEditChangesNothingElse checks that an edit changes no byte outside the one place with the
// old text.
func TestEditChangesNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([ab \t]{0,4}(\r\n|\n)){0,8}[ab ]{0,3}`)
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		old := rapid.StringMatching(`[ab ]{1,3}(\n[ab ]{0,3}){0,2}`).Draw(t, "old")
		fresh := rapid.StringMatching(`[cd\n]{0,6}`).Draw(t, "new")
		content := before + old + after
		got, err := replace(content, editPart{Old: old, New: fresh})
		if err != nil {
			return
		}
		// Some range of the content equals old apart from blanks and line ends, and was replaced;
		// the text before and after it is unchanged.
		squeeze := func(s string) string {
			return strings.Map(func(r rune) rune {
				if strings.ContainsRune(" \t\r\n", r) {
					return -1
				}
				return r
			}, s)
		}
		for i := range len(content) + 1 {
			for j := i; j <= len(content); j++ {
				if len(got) >= i+len(content)-j && strings.HasPrefix(got, content[:i]) && strings.HasSuffix(got, content[j:]) &&
					squeeze(content[i:j]) == squeeze(old) && squeeze(got[i:len(got)-(len(content)-j)]) == squeeze(fresh) {
					return
				}
			}
		}
		t.Fatalf("%q became %q by %q to %q", content, got, old, fresh)
	})
}

// TestEditKilled checks that a process killed during an edit leaves the old or the new file, and
// that the next start removes its temporary files.
func TestEditKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, func(c *Config) { c.Dir = dir })
	r.dir = dir
	r.wants(r.call("shell", map[string]any{"command": "git init -q ."}), false)
	versions := []string{strings.Repeat("old\n", 50_000), strings.Repeat("new\n", 50_000)}
	r.file("f", versions[0])
	for i := range 10 {
		steps, err := fsnotify.NewWatcher()
		if err == nil {
			err = steps.Add(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envEditor+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 1 + i { // each step of an edit: its temporary file is created, written, renamed
			select {
			case <-steps.Events:
			case err := <-steps.Errors:
				t.Error(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		if err := steps.Close(); err != nil {
			t.Error(err)
		}
		if got := r.content("f"); got != versions[0] && got != versions[1] {
			t.Fatalf("round %d: %d bytes", i, len(got))
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if err := os.Chtimes(filepath.Join(dir, e.Name()), time.Time{}, time.Now().Add(-2*sweepAge)); err != nil {
			t.Fatal(err)
		}
	}
	again := newRig(t, func(c *Config) { c.Dir = dir })
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 || list[0].Name() != ".git" {
		t.Errorf("%v, %v", list, err)
	}
	again.wants(again.read("f"), false)
}

func TestListAndSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) {
		c.Rules = rulesOf(team.Permissions{Deny: []team.PermissionRule{rule("read", "secrets/**", "")}})
	})
	r.file("main.go", "package main\n\nfunc Main() {}\n")
	r.file("sub/x_test.go", "package sub\n// main\n")
	r.file("secrets/key", "main\n")
	r.file("build/out", "main\n")
	r.file(".gitignore", "build/\n")
	r.file("bin", "main\x00")
	r.wants(r.call("ls", nil), false, "main.go  29", "sub/", ".gitignore")
	all := r.call("glob", map[string]any{"pattern": "**/*"})
	r.wants(all, false, "main.go", "sub/x_test.go", "build/out") // without a repository nothing is ignored
	r.wants(r.call("shell", map[string]any{"command": "git init -q ."}), false)
	for _, o := range []Out{r.call("glob", map[string]any{"pattern": "**/*"}), r.call("grep", map[string]any{"pattern": "main"}), r.call("ls", nil)} {
		r.wants(o, false)
		for _, not := range []string{"build/out", "secrets/key", "bin:"} {
			if strings.Contains(o.Text, not) {
				t.Errorf("%q shows %s", o.Text, not)
			}
		}
	}
	r.wants(r.call("grep", map[string]any{"pattern": "MAIN", "ignore_case": true, "glob": "*.go"}), false, "main.go:1:package main", "main.go:3:func Main", "sub/x_test.go:2:// main")
	r.wants(r.call("grep", map[string]any{"pattern": "func", "path": "main.go", "context": 2}), false, "main.go-1-package main\nmain.go-2-\nmain.go:3:func Main() {}")
	r.wants(r.call("grep", map[string]any{"pattern": "("}), true, "missing closing")
	r.wants(r.call("grep", map[string]any{"pattern": "zzz"}), false, "no line matches")
	r.wants(r.call("glob", map[string]any{"pattern": "["}), true, "not a valid pattern")
	r.wants(r.call("glob", map[string]any{"pattern": "*", "path": "none"}), true, "no such file")
	// A long result is complete in a file, which read can open.
	for i := range 3000 {
		r.file(fmt.Sprintf("many/%d", i), "")
	}
	o := r.call("glob", map[string]any{"pattern": "many/*"})
	if o.File == "" || strings.Count(o.Text, "\n") > MaxLines {
		t.Fatalf("%d lines, file %q", strings.Count(o.Text, "\n"), o.File)
	}
	r.wants(r.call("read", map[string]any{"path": o.File, "offset": -1}), false, "many/9")
}

func TestTodo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wants(r.raw("todo", `{"items":[{"text":"a","state":"done"},{"text":"b","state":"doing"}]}`), false, "2 items, 1 done")
	r.wants(r.raw("todo", `{"items":[{"text":"a","state":"later"}]}`), true, "want pending")
	if got := r.Todo(); got != "[x] a\n[>] b\n" {
		t.Errorf("%q", got)
	}
	again := newRig(t)
	again.RestoreTodo([]byte(`{"items":[{"text":"c","state":"pending"}]}`))
	if got := again.Todo(); got != "[ ] c\n" {
		t.Errorf("%q", got)
	}
}
