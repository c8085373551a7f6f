package memory

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/team"
)

// envWriter makes the test binary write entries until it is killed.
const envWriter = "MEMORY_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(envWriter); path != "" {
		fmt.Fprintln(os.Stderr, writeForEver(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func writeForEver(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := s.Save(ctx, Entry{Key: fmt.Sprintf("t/%d/%d", os.Getpid(), i), Text: "written"}); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func open(t *testing.T) (*Store, context.Context) {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a b%20?#", "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	at := time.UnixMilli(1_000_000)
	s.now = func() time.Time { at = at.Add(time.Second); return at }
	return s, t.Context()
}

func save(t *testing.T, s *Store, key, session, text string, tags ...string) {
	t.Helper()
	if _, err := s.Save(t.Context(), Entry{Key: key, Text: text, Tags: tags, Session: session}); err != nil {
		t.Fatal(err)
	}
}

func keys(list []Entry) string {
	var out []string
	for _, e := range list {
		out = append(out, e.Key)
	}
	return strings.Join(out, " ")
}

func TestSave(t *testing.T) {
	t.Parallel()
	s, ctx := open(t)
	save(t, s, "shop/dev/build", "s1", "make all", "go", "build", "go")
	e, err := s.Get(ctx, "shop/dev/build")
	if err != nil || strings.Join(e.Tags, " ") != "build go" || e.Session != "s1" || e.CreatedAt != e.UpdatedAt {
		t.Errorf("%+v, %v", e, err)
	}
	save(t, s, "shop/dev/build", "s2", "make all", "build", "go")
	if again, _ := s.Get(ctx, "shop/dev/build"); again.UpdatedAt != e.UpdatedAt {
		t.Errorf("saving the same again is a change: %+v", again)
	}
	save(t, s, "shop/dev/build", "s2", "make")
	if again, _ := s.Get(ctx, "shop/dev/build"); again.UpdatedAt == e.UpdatedAt || again.CreatedAt != e.CreatedAt || again.Text != "make" || again.Tags != nil {
		t.Errorf("%+v", again)
	}
	if err := s.Forget(ctx, "shop/dev/build"); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(ctx, "shop/dev/build"); team.CodeOf(err) != team.CodeNotFound {
		t.Error(err)
	}
	for _, bad := range []Entry{{Key: "x", Text: "t"}, {Key: "a//b", Text: "t"}, {Key: "a/b/c\n", Text: "t"}, {Key: "a/b/c", Text: " "}, {Key: "a/b/c", Text: strings.Repeat("x", MaxText+1)}, {Key: "a/b/c", Text: "t", Tags: []string{""}}} {
		if _, err := s.Save(ctx, bad); team.CodeOf(err) != team.CodeInvalid {
			t.Errorf("%.40q: %v", bad.Key, err)
		}
	}
}

// The best match comes first; of equal ones that of the same session, agent, team, and
// the newer one.
func TestSearch(t *testing.T) {
	t.Parallel()
	s, ctx := open(t)
	save(t, s, "other/ann/tests", "s9", "run the tests with make check")
	save(t, s, "shop/bob/tests", "s8", "run the tests with make check")
	save(t, s, "shop/dev/tests-old", "s7", "run the tests with make check")
	save(t, s, "shop/dev/tests", "s6", "run the tests with make check")
	save(t, s, "shop/zoe/tests", "s1", "run the tests with make check")
	save(t, s, "shop/dev/port", "s1", "the server listens on Gr\u00f6\u00dfe 8080", "network")
	q := Query{Text: "how do I run tests?", Session: "s1", Team: "shop", Agent: "dev"}
	list, err := s.Search(ctx, q)
	if err != nil || keys(list) != "shop/zoe/tests shop/dev/tests shop/dev/tests-old shop/bob/tests other/ann/tests" {
		t.Errorf("%s, %v", keys(list), err)
	}
	q.Keys, q.Limit = []string{"shop/dev/*"}, 1
	if list, err := s.Search(ctx, q); err != nil || keys(list) != "shop/dev/tests" {
		t.Errorf("%s, %v", keys(list), err)
	}
	for text, want := range map[string]string{
		"network": "shop/dev/port", "gr\u00f6\u00df": "shop/dev/port", "808": "shop/dev/port", "nothing": "", "": "", "?!": "",
		`NEAR OR "AND`: "", "port": "shop/dev/port",
	} {
		if list, err := s.Search(ctx, Query{Text: text}); err != nil || keys(list) != want {
			t.Errorf("%q: %s, %v, want %s", text, keys(list), err, want)
		}
	}
	if err := s.Forget(ctx, "shop/dev/port"); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Search(ctx, Query{Text: "network"}); err != nil || len(list) != 0 {
		t.Errorf("found although forgotten: %v, %v", list, err)
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	s, ctx := open(t)
	save(t, s, "a/b/long", "", "word "+strings.Repeat("x", 4000))
	save(t, s, "a/b/short", "", "word\nof two lines")
	got, err := s.Recall(ctx, Query{Text: "word"}, team.DefaultMemoryBudget)
	if err != nil || got != "- a/b/short: word of two lines\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// An export is the same bytes for the same entries, and its import changes nothing.
func TestExport(t *testing.T) {
	t.Parallel()
	s, ctx := open(t)
	save(t, s, "b/b/two", "s", "<b> & \"quoted\"\nsecond line", "z", "a")
	save(t, s, "a/a/one", "", "first")
	export := func(s *Store, format string) string {
		t.Helper()
		var b bytes.Buffer
		if err := s.Export(ctx, &b, format, ""); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	lines := export(s, FormatJSONL)
	if !strings.HasPrefix(lines, `{"key":"a/a/one"`) || strings.Count(lines, "\n") != 2 || !strings.Contains(lines, "<b> &") {
		t.Errorf("%s", lines)
	}
	if md := export(s, FormatMarkdown); !strings.HasPrefix(md, "## a/a/one\n\nfirst\n\nUpdated 1970-01-01T00:16:42Z\n\n## b/b/two\n\nTags: a, z\n\n") {
		t.Errorf("%s", md)
	}
	if n, err := s.Import(ctx, strings.NewReader(lines)); err != nil || n != 0 {
		t.Errorf("%d changed, %v", n, err)
	}
	other, _ := open(t)
	if n, err := other.Import(ctx, strings.NewReader(lines+"\n")); err != nil || n != 2 {
		t.Errorf("%d changed, %v", n, err)
	}
	if got := export(other, FormatJSONL); got != lines {
		t.Errorf("%s", got)
	}
	save(t, other, "a/a/one", "", "changed here later") // an older one does not take its place
	if n, err := other.Import(ctx, strings.NewReader(strings.ReplaceAll(lines, "1002000", "1"))); err != nil || n != 0 {
		t.Errorf("%d changed, %v", n, err)
	}
	if n, err := other.Import(ctx, strings.NewReader(`{"key":"c/c/c","text":"new"}`+"\n{}")); team.CodeOf(err) != team.CodeInvalid || !strings.Contains(err.Error(), "line 2") || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := other.Get(ctx, "c/c/c"); team.CodeOf(err) != team.CodeNotFound {
		t.Errorf("half an import: %v", err)
	}
	if err := s.Export(ctx, &bytes.Buffer{}, "xml", ""); team.CodeOf(err) != team.CodeInvalid {
		t.Error(err)
	}
}

// Several processes write, and are killed; what was answered is there and is found.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	said := make([]bytes.Buffer, 3)
	var cmds []*exec.Cmd
	for i := range said {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envWriter+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
		b := make([]byte, 64)
		for said[i].Len() < 20 {
			n, err := out.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			said[i].Write(b[:n])
		}
	}
	for _, cmd := range cmds {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for i, cmd := range cmds {
		lines := strings.Fields(said[i].String()[:strings.LastIndexByte(said[i].String(), '\n')])
		for _, n := range lines {
			if _, err := s.Get(t.Context(), fmt.Sprintf("t/%d/%s", cmd.Process.Pid, n)); err != nil {
				t.Error(err)
			}
		}
		if found, err := s.Search(t.Context(), Query{Text: fmt.Sprint(cmd.Process.Pid), Limit: 1000}); err != nil || len(found) < len(lines) {
			t.Errorf("%d found of %d, %v", len(found), len(lines), err)
		}
	}
}
