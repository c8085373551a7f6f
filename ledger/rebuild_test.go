package ledger

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// A hole in the middle of a table loses only the rows in it; the copy fills it,
// and rows deleted since the copy stay deleted. A DB that has the damaged file
// open continues with the new one.
func TestRebuildAroundAHole(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	db, err := Open(ctx, path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	led := New(db, Direct(db))
	if _, err := led.CreateTeam(ctx, TeamRow{Key: "t", Name: "t", LeadSession: "lead"}); err != nil {
		t.Fatal(err)
	}
	add := func(n int, word string) {
		t.Helper()
		var batch []NewTask
		for i := range n {
			batch = append(batch, NewTask{Subject: fmt.Sprintf("%s %d", word, i), Description: string(bytes.Repeat([]byte("d"), 300))})
		}
		if _, err := led.CreateTasks(ctx, batch, "t"); err != nil {
			t.Fatal(err)
		}
	}
	add(400, "early")
	if err := led.Set(ctx, "gone", 1); err != nil {
		t.Fatal(err)
	}
	copied, err := led.CopyTo(ctx, filepath.Join(dir, "copies"), 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := led.DeleteTask(ctx, "7"); err != nil {
		t.Fatal(err)
	}
	add(400, "late")
	changes, stop, err := led.Changes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := led.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	all, err := led.Tasks(ctx, TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}

	// A leaf page of the tasks that contains only early ones.
	damaged := filepath.Join(dir, "damaged.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := bytes.Index(data, []byte("early 200ddd"))/4096 + 1
	copy(data[(page-1)*4096:], bytes.Repeat([]byte{0x5a}, 4096))
	if err := os.WriteFile(damaged, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "new.db")
	got, err := Rebuild(ctx, RebuildIn{Out: out, Damaged: damaged, Copies: []Copy{copied}})
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Copied["tasks"]; n == 0 || n > 40 || got.Rows["tasks"]+n != len(all) || len(got.Missing) != 1 {
		t.Errorf("%d tasks of the file and %d of the copy are not the %d there were; missing: %q", got.Rows["tasks"], n, len(all), got.Missing)
	}
	if err := os.Rename(path, path+DamagedMark+"1"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"-wal", "-shm"} {
		_ = os.Rename(path+end, path+DamagedMark+"1"+end)
	}
	if err := os.Rename(out, path); err != nil {
		t.Fatal(err)
	}
	again, err := led.Tasks(ctx, TaskFilter{})
	if err != nil || len(again) != len(all) {
		t.Fatalf("%d tasks, %v; there were %d", len(again), err, len(all))
	}
	for i := range all {
		if again[i].ID != all[i].ID || again[i].Subject != all[i].Subject || again[i].Status != all[i].Status {
			t.Fatalf("task %+v is %+v", all[i], again[i])
		}
	}
	if problems, err := led.Check(ctx); err != nil || len(problems) > 0 {
		t.Errorf("not sound: %q, %v", problems, err)
	}
	made, err := led.CreateTasks(ctx, []NewTask{{Subject: "after", Description: "d"}}, "t")
	if err != nil || seqNumber(made[0].ID) <= seqNumber(all[len(all)-1].ID) {
		t.Fatalf("a task after it: %+v, %v", made, err)
	}
	id := made[0]
	other, err := Open(ctx, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if found, err := New(other, nil).Tasks(ctx, TaskFilter{IDs: []string{id.ID}}); err != nil || len(found) != 1 {
		t.Errorf("what was written afterwards is not there: %v, %v", found, err)
	}
	drained := time.After(0)
	for waiting := true; waiting; {
		select {
		case <-changes:
		case <-drained:
			waiting = false
		}
	}
	if _, err := New(other, Direct(other)).CreateTasks(ctx, []NewTask{{Subject: "told", Description: "d"}}, "t"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changes:
	case <-time.After(5 * time.Minute):
		t.Error("a watch of the damaged file hears nothing of the recovered one")
	}
}

// After the clock was set back a new copy is kept and is the newest, and those dated after now are
// removed first.
func TestCopiesAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	copies := filepath.Join(dir, "copies")
	ok(t, os.Mkdir(copies, 0o700))
	db, err := Open(ctx, filepath.Join(dir, "ledger.db"), Options{Create: true})
	ok(t, err)
	defer func() { _ = db.Close() }()
	led := New(db, Direct(db))
	must[TeamRow](t)(led.CreateTeam(ctx, TeamRow{Key: "t", Name: "t", LeadSession: "lead"}))
	at := func(ago time.Duration) string {
		return filepath.Join(copies, copyPrefix+time.Now().Add(-ago).UTC().Format(copyTime)+copySuffix)
	}
	first, second, old := at(-2*time.Hour), at(-3*time.Hour), at(time.Hour)
	for _, path := range []string{first, second, old} {
		ok(t, os.WriteFile(path, nil, 0o600))
	}
	want := []string{old, second}
	for made := 0; made < 4; made++ {
		c := must[Copy](t)(led.CopyTo(ctx, copies, 3))
		if c.Path == want[0] { // made in the same millisecond, and in its place
			made--
			continue
		}
		want = append([]string{c.Path}, want...)[:3]
		var got []string
		for _, c := range must[[]Copy](t)(Copies(copies)) {
			got = append(got, c.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("kept %q, want %q", got, want)
		}
	}
}

// Three copies are kept, each is complete, and a damaged ledger replaces none
// of them.
func TestCopies(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	path, copies := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "copies")
	db, err := Open(ctx, path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	led := New(db, Direct(db))
	if _, err := led.CreateTeam(ctx, TeamRow{Key: "t", Name: "t", LeadSession: "lead"}); err != nil {
		t.Fatal(err)
	}
	var last Copy
	for range 5 {
		if last, err = led.CopyTo(ctx, copies, 3); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Copies(copies)
	if err != nil || len(list) == 0 || len(list) > 3 || list[0].Path != last.Path {
		t.Fatalf("copies: %+v, %v; the newest is %s", list, err, last.Path)
	}
	one, err := Open(ctx, last.Path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	if problems, err := New(one, nil).Check(ctx); err != nil || len(problems) > 0 {
		t.Errorf("a copy is not sound: %q, %v", problems, err)
	}
	if fi, err := os.Stat(last.Path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode of a copy: %v, %v", fi, err)
	}
}

// An empty file is not a new ledger: the log next to it would be lost.
func TestEmptyLedgerIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), path, Options{})
	if err == nil {
		_ = db.Close()
		t.Fatal("it was opened")
	}
	if fi, err := os.Stat(path); err != nil || fi.Size() != 0 {
		t.Errorf("it was written: %v, %v", fi, err)
	}
}

// A claim that would never end is not copied: the task is pending in the new
// ledger, and the counts are computed.
func TestRebuildReleasesClaimsWithoutEnd(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "no lease"}, {Subject: "left"}, {Subject: "sound"}}, "lead"))
	for id, owner := range map[string]string{"1": "s-a", "2": "s-b", "3": "s-a"} {
		must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: owner, ID: id}))
	}
	for _, harm := range []string{
		"UPDATE tasks SET leaseUntil = NULL WHERE id = '1'", "UPDATE members SET removedAt = 1 WHERE name = 'b'", "UPDATE task_counts SET claimed = 9",
	} {
		ok(t, sqlExec(t, l.DB(), harm))
	}
	ok(t, l.Checkpoint(ctx))
	out := filepath.Join(t.TempDir(), "new.db")
	got := must[Rebuilt](t)(Rebuild(ctx, RebuildIn{Out: out, Damaged: l.db.path}))
	if len(got.Missing) != 2 {
		t.Errorf("missing: %q", got.Missing)
	}
	db := openAt(t, out)
	again := New(db, Direct(db))
	sound(t, again)
	if n := must[Counts](t)(again.Counts(ctx)); n != (Counts{Pending: 2, Ready: 2, Claimed: 1}) {
		t.Errorf("%+v", n)
	}
}

// A disk that is full when the new ledger is moved from its log into its file
// fails the recovery: the file alone would be accepted without the rows.
func TestRebuildOnADiskThatGetsFull(t *testing.T) {
	ctx := ctxFor(t)
	l := newTeam(t)
	var batch []NewTask
	for i := range 200 {
		batch = append(batch, NewTask{Subject: fmt.Sprint(i), Description: string(bytes.Repeat([]byte("d"), 3000))})
	}
	must[[]Task](t)(l.CreateTasks(ctx, batch, "lead"))
	ok(t, l.Checkpoint(ctx))
	in := RebuildIn{Out: filepath.Join(t.TempDir(), "new.db"), Damaged: l.db.path}
	must[Rebuilt](t)(Rebuild(ctx, in))
	whole, err := os.Stat(in.Out)
	ok(t, err)
	if left, err := filepath.Glob(in.Out + "-*"); err != nil || len(left) > 0 {
		t.Errorf("left beside the new ledger: %q, %v", left, err)
	}
	in.Out = filepath.Join(t.TempDir(), "new.db")
	var was syscall.Rlimit
	ok(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	small := was
	small.Cur = uint64(whole.Size()) - 4096 // the log is smaller: it has no pages of empty tables
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Skipf("no file size limit here: %v", err)
	}
	_, err = Rebuild(ctx, in)
	ok(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	if err == nil {
		t.Fatal("a ledger that did not fit was built")
	}
	if !isFull(err) || team.CodeOf(err) != team.CodeUnavailable {
		t.Errorf("%s: %v", team.CodeOf(err), err)
	}
}
