package ledger

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

const (
	filePage   = 4096
	fileSector = 512
)

// longTables returns a team whose members, tasks and settings have several pages each,
// a copy of its ledger, and its file. Some tasks were deleted after the copy.
func longTables(t *testing.T) (l *Ledger, copied Copy, file []byte) {
	t.Helper()
	ctx := ctxFor(t)
	l = newTeam(t)
	var batch []NewTask
	for i := range 60 {
		name := fmt.Sprintf("m%02d", i)
		if i < 16 {
			_, _, err := l.AddMember(ctx, Member{
				Name: name, SessionKey: "s-" + name, Branch: "branch of " + name, Spec: team.MemberSpec{Prompt: "prompt of " + name + strings.Repeat(" p", 50)},
			}, true)
			ok(t, err)
		}
		ok(t, l.Set(ctx, name, "setting of "+name+strings.Repeat(" s", 50)))
		batch = append(batch, NewTask{Subject: fmt.Sprintf("task %d", i+1), Description: strings.Repeat("d", 150) + fmt.Sprintf(" end %d", i+1), Verify: "verify"})
	}
	must[[]Task](t)(l.CreateTasks(ctx, batch, "lead"))
	copied = must[Copy](t)(l.CopyTo(ctx, filepath.Join(t.TempDir(), "copies"), 3))
	for _, id := range []string{"2", "3", "12", "55"} {
		_, err := l.DeleteTask(ctx, id)
		ok(t, err)
	}
	ok(t, l.Checkpoint(ctx))
	return l, copied, must[[]byte](t)(os.ReadFile(l.db.path))
}

// rebuiltOf returns the ledger that is rebuilt from a damaged file.
func rebuiltOf(t *testing.T, file []byte, copies ...Copy) (*Ledger, Rebuilt) {
	t.Helper()
	dir := t.TempDir()
	damaged, out := filepath.Join(dir, "damaged.db"), filepath.Join(dir, "new.db")
	ok(t, os.WriteFile(damaged, file, 0o600))
	got := must[Rebuilt](t)(Rebuild(ctxFor(t), RebuildIn{Out: out, Damaged: damaged, Copies: copies}))
	db := openAt(t, out)
	l := New(db, Direct(db))
	sound(t, l)
	return l, got
}

// pagesWith returns the offsets of the pages that have a text.
func pagesWith(t *testing.T, file []byte, text string) (pages []int) {
	t.Helper()
	for at := 0; at < len(file); at += filePage {
		if bytes.Contains(file[at:][:filePage], []byte(text)) {
			pages = append(pages, at)
		}
	}
	if len(pages) == 0 {
		t.Fatalf("%q is not in the file", text)
	}
	return pages
}

// A sector of zeros in a page is read without an error: as rows without a key,
// as texts that end in zeros, or as a page of the tree that leads past others.
// What it had comes from the copy, and what was deleted since stays deleted.
func TestRebuildAroundASectorOfZeros(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l, copied, file := longTables(t)
	members := must[[]Member](t)(l.Members(ctx, true))
	tasks := must[[]Task](t)(l.Tasks(ctx, TaskFilter{}))
	step := 1
	if testing.Short() {
		step = 6
	}
	for _, text := range []string{"prompt of m07", "end 20", "setting of m30"} {
		for _, at := range pagesWith(t, file, text) {
			for n := 1; n < filePage/fileSector; n += step { // the first has what makes it a page
				harmed := slices.Clone(file)
				clear(harmed[at+n*fileSector:][:fileSector])
				again, got := rebuiltOf(t, harmed, copied)
				where := fmt.Sprintf("the page at %d with %q, sector %d: ", at, text, n)
				differs(t, where, func(m Member) string { return m.Name }, must[[]Member](t)(again.Members(ctx, true)), members)
				differs(t, where, func(task Task) string { return task.ID }, must[[]Task](t)(again.Tasks(ctx, TaskFilter{})), tasks)
				for i := range 60 {
					var value string
					name := fmt.Sprintf("m%02d", i)
					if there := must[bool](t)(again.Setting(ctx, name, &value)); !there || value != "setting of "+name+strings.Repeat(" s", 50) {
						t.Errorf("%ssetting %s: %v, %q", where, name, there, value)
					}
				}
				if t.Failed() {
					t.Fatalf("missing: %q", got.Missing)
				}
			}
		}
	}
}

// differs compares the rows of two ledgers, by name.
func differs[T any](t *testing.T, where string, name func(T) string, is, was []T) {
	t.Helper()
	names := func(list []T) (out []string) {
		for _, one := range list {
			out = append(out, name(one))
		}
		return out
	}
	if !slices.Equal(names(is), names(was)) {
		t.Errorf("%s%q, there were %q", where, names(is), names(was))
		return
	}
	for i := range was {
		if !reflect.DeepEqual(is[i], was[i]) {
			t.Errorf("%s%+v was %+v", where, is[i], was[i])
		}
	}
}

// Rows that may be damaged are kept if nothing else has them.
func TestRebuildKeepsWhatMayBeDamaged(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l, copied, file := longTables(t)
	tasks := must[[]Task](t)(l.Tasks(ctx, TaskFilter{}))
	pages := pagesWith(t, file, "end 20")
	at := pages[len(pages)-1]
	for what, harm := range map[string]func(page []byte){
		"rows in another order": func(page []byte) { // the pointers to them follow the header
			swap := slices.Clone(page[8+4 : 8+6])
			copy(page[8+4:], page[8+10:8+12])
			copy(page[8+10:], swap)
		},
		"zeros in a text": func(page []byte) { clear(page[bytes.Index(page, []byte(" end 20"))-60:][:60]) },
	} {
		harmed := slices.Clone(file)
		harm(harmed[at:][:filePage])
		again, _ := rebuiltOf(t, harmed, copied)
		differs(t, what+", with a copy: ", func(task Task) string { return task.ID }, must[[]Task](t)(again.Tasks(ctx, TaskFilter{})), tasks)
		without, got := rebuiltOf(t, harmed)
		is := must[[]Task](t)(without.Tasks(ctx, TaskFilter{}))
		if !slices.EqualFunc(is, tasks, func(a, b Task) bool { return a.ID == b.ID && a.Subject == b.Subject }) ||
			!slices.ContainsFunc(got.Missing, func(s string) bool { return strings.HasSuffix(s, "rows may be damaged") }) {
			t.Errorf("%s, without a copy: %d of %d tasks; missing: %q", what, len(is), len(tasks), got.Missing)
		}
	}
}
