package tool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func dump() TaskDump {
	return TaskDump{Format: dumpFormat, Version: dumpVersion, HighWater: 12, Tasks: []ledger.Task{
		{ID: "1", Subject: "done <&>", Description: "é\u2028", Status: team.TaskCompleted, OwnerName: "a", DependsOn: []string{},
			Metadata: json.RawMessage(`{"k":{"x":[1,null]}}`), Attempt: 2, CreatedAt: 5, ClaimedAt: 6, StartedAt: 7, CompletedAt: 8,
			Result: &ledger.Result{Summary: "ok", Commit: "c"}},
		{ID: "2", Subject: "failed", Status: team.TaskFailed, OwnerName: "b", DependsOn: []string{"1"}, CreatedAt: 5, CompletedAt: 9,
			Result: &ledger.Result{Error: "no"}, RetryPolicy: ledger.RetryPolicy{MaxRetries: 2, RetryBackoff: 10}, Retries: 2},
		{ID: "3", Subject: "claimed", Status: team.TaskClaimed, OwnerName: "b", DependsOn: []string{}, CreatedAt: 5, ClaimedAt: 9, Priority: 3, Verify: "true"},
		{ID: "10", Subject: "free", ActiveForm: "freeing", Status: team.TaskPending, DependsOn: []string{"3", "2"}, CreatedAt: 5},
	}}
}

func TestTaskDirRoundTrip(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tasks", "demo")
	want := dump()
	for range 2 { // writing over what is there
		if err := WriteTaskDir(t.Context(), dir, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadTaskDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "2.json"))
	if err != nil {
		t.Fatal(err)
	}
	const golden = `{
  "id": "2",
  "subject": "failed",
  "description": "",
  "owner": "b",
  "status": "in_progress",
  "blocks": [
    "10"
  ],
  "blockedBy": [
    "1"
  ],
  "metadata": {
    "teamctl": {
      "status": "failed",
      "createdAt": 5,
      "completedAt": 9,
      "result": {
        "error": "no"
      },
      "maxRetries": 2,
      "retryBackoff": 10,
      "retries": 2
    }
  }
}`
	if d := cmp.Diff(golden, string(raw)); d != "" {
		t.Error(d)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.json.lock"))
	if err != nil || len(left) > 0 {
		t.Errorf("locks left: %v, %v", left, err)
	}
}

// The files of a real client, and what it changes in a file of ours. An export keeps what another
// client has written beside the keys that we know.
func TestTaskDirKeepsForeignKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "3.json")
	if err := os.WriteFile(path, []byte(`{"id":"3","color":"red","subject":"old","status":"pending","blocks":["9"],"blockedBy":[],"extra":{"a":[1]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteTaskDir(t.Context(), dir, dump()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Color, Subject string
		Blocks         []string
		Extra          json.RawMessage
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.Color != "red" || got.Subject != "claimed" || len(got.Blocks) != 1 || got.Blocks[0] != "10" || len(got.Extra) == 0 {
		t.Errorf("%s", raw)
	}
}

func TestTaskDirOfAForeignClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1.json", `{"id":"1","subject":"First task","description":"Do the first thing","activeForm":"Doing the first thing","owner":"worker","status":"pending","blocks":["2"],"blockedBy":[],"metadata":{"k":"v"}}`)
	write("2.json", `{"id":"2","subject":"Second","description":"","status":"completed","blocks":[],"blockedBy":[],"metadata":{"teamctl":{"status":"claimed","priority":4}}}`)
	write(".highwatermark", "7\n")
	write(".lock", "")
	write("notes.json", "{}")
	got, err := ReadTaskDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := TaskDump{Format: dumpFormat, Version: dumpVersion, HighWater: 7, Tasks: []ledger.Task{
		{ID: "1", Subject: "First task", Description: "Do the first thing", ActiveForm: "Doing the first thing", OwnerName: "worker",
			Status: team.TaskPending, DependsOn: []string{}, Metadata: json.RawMessage(`{"k":"v"}`)},
		{ID: "2", Subject: "Second", Status: team.TaskCompleted, DependsOn: []string{"1"}, Priority: 4},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for name, text := range map[string]string{"3.json": "{", "4.json": `{"id":"5","subject":"s"}`, "5.json": `{"id":7}`} {
		write(name, text)
		if _, err := ReadTaskDir(t.Context(), dir); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "6.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTaskDir(t.Context(), dir); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("a symlink: %v", err)
	}
}

// A fresh lock of another client is waited for, and an abandoned one is taken over.
func TestTaskDirLocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock := filepath.Join(dir, "1.json.lock")
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := WriteTaskDir(ctx, dir, dump()); !team.IsCode(err, team.CodeTimeout) {
		t.Errorf("a fresh lock: %v", err)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	if err := WriteTaskDir(t.Context(), dir, dump()); err != nil {
		t.Error(err)
	}
}

// A file that another client is writing in place, under its lock, is read when it is complete.
func TestReadTaskDirWaitsForAWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := dump()
	if err := WriteTaskDir(t.Context(), dir, want); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "3.json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	type result struct {
		d   TaskDump
		err error
	}
	done := make(chan result, 1)
	go func() {
		d, err := ReadTaskDir(t.Context(), dir)
		done <- result{d, err}
	}()
	tick := time.NewTicker(20 * time.Millisecond) // whoever does not wait is done by then
	defer tick.Stop()
	for range 10 {
		select {
		case r := <-done:
			t.Fatalf("it did not wait: %v", r.err)
		case <-tick.C:
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	if d := cmp.Diff(want, r.d); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(path + ".lock"); !os.IsNotExist(err) {
		t.Errorf("a lock is left: %v", err)
	}
}
