package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/filelock"
)

// status runs the program and returns its exit status and its output.
func (p *proof) status(args ...string) (int, string) {
	p.t.Helper()
	cmd := p.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// repair runs doctor --repair and returns the steps that found something.
func (p *proof) repair() map[string]string {
	p.t.Helper()
	_, out := p.status("doctor", "--repair", "--json")
	var report struct {
		Steps []struct{ Step, Status, Detail string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	found := map[string]string{}
	for _, s := range report.Steps {
		if s.Status != "ok" {
			found[s.Step] = s.Status + ": " + s.Detail
		}
	}
	return found
}

func (p *proof) box(name string) *inbox.Box {
	p.t.Helper()
	box, err := inbox.Open(p.layout.Inboxes(), p.layout.Locks(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	return box
}

func (p *proof) texts(name string) string {
	p.t.Helper()
	entries, err := p.box(name).Entries(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	var texts []string
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	return strings.Join(texts, " ")
}

func (p *proof) read(path string) []byte {
	p.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

func (p *proof) write(path string, data []byte) {
	p.t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *proof) asides(pattern string) int {
	p.t.Helper()
	found, err := filepath.Glob(pattern + ".corrupt-*")
	if err != nil {
		p.t.Fatal(err)
	}
	return len(found)
}

// TestFault29MailboxDamaged checks that a damaged mailbox is moved aside, not overwritten, and
// that the new one has each message once, from the readable part of the old one and from the
// ledger.
func TestFault29MailboxDamaged(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"cut off":         func(b []byte) []byte { return b[:len(b)*2/3] },
		"torn write":      func(b []byte) []byte { return append(b[:len(b)-2], ",\n  {\n    \"from\": \"te"...) },
		"garbage":         func([]byte) []byte { return []byte("\x00\x01garbage") },
		"empty":           func([]byte) []byte { return nil },
		"an object":       func([]byte) []byte { return []byte(`{"from":"x"}`) },
		"nuls at the end": func(b []byte) []byte { return append(b, make([]byte, 4096)...) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProof(t, "box")
			for i := range 3 {
				p.must("send", "box", fmt.Sprintf("m%d", i))
			}
			file := p.box("box").Path()
			sound := p.read(file)
			damaged := damage(bytes.Clone(sound))
			p.write(file, damaged)
			found := p.repair()
			if !strings.HasPrefix(found["mailbox box"], "fixed: ") {
				t.Errorf("report: %v", found)
			}
			if got := p.texts("box"); got != "m0 m1 m2" {
				t.Errorf("the mailbox has %q", got)
			}
			if n := p.asides(file); len(damaged) > 0 && n != 1 {
				t.Errorf("%d files aside", n)
			}
			if again := p.repair(); len(again) > 0 {
				t.Errorf("the second time: %v", again)
			}
			p.must("send", "box", "m3")
			if got := p.texts("box"); got != "m0 m1 m2 m3" {
				t.Errorf("afterwards the mailbox has %q", got)
			}
		})
	}
}

// TestFault29ReadMailStaysRead checks that a read message is not restored to a mailbox that has
// lost it.
func TestFault29ReadMailStaysRead(t *testing.T) {
	t.Parallel()
	p := newProof(t, "box")
	p.must("send", "box", "old")
	led := p.ledger()
	out, err := led.Messages(t.Context(), messagesTo("box"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := led.Mark(t.Context(), readMark(out[0].ID, "box")); err != nil {
		t.Fatal(err)
	}
	p.must("send", "box", "new")
	p.write(p.box("box").Path(), []byte("["))
	p.repair()
	if got := p.texts("box"); got != "new" {
		t.Errorf("the mailbox has %q", got)
	}
}

// TestFault29ConfigAndRegistry checks that config.json and the registry are rebuilt from the
// ledger. An unreadable file is kept under another name, and a readable one keeps its unknown
// keys.
func TestFault29ConfigAndRegistry(t *testing.T) {
	t.Parallel()
	p := newProof(t, "box")
	config, registry := p.layout.Config(), p.layout.Home.Registry()
	p.repair()
	good := p.read(config)
	for name, text := range map[string]string{"empty": "", "cut off": string(good[:len(good)/2]), "no object": "[]"} {
		p.write(config, []byte(text))
		before := p.asides(config)
		if found := p.repair(); !strings.Contains(found["config"], "could not be read") {
			t.Errorf("%s: %v", name, found)
		}
		if !bytes.Equal(p.read(config), good) || p.asides(config) != before+1 {
			t.Errorf("%s: %s", name, p.read(config))
		}
	}
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if found := p.repair(); !strings.Contains(found["config"], "missing") || !bytes.Equal(p.read(config), good) {
		t.Errorf("a missing config: %v", found)
	}
	p.write(config, bytes.Replace(good, []byte("{"), []byte(`{"mine": 1, `), 1))
	p.repair()
	if !strings.Contains(string(p.read(config)), `"mine": 1`) {
		t.Errorf("an unknown key is gone: %s", p.read(config))
	}
	for _, text := range []string{"{", `{"gone": "/nowhere"}`} {
		p.write(registry, []byte(text))
		if found := p.repair(); !strings.HasPrefix(found["registry"], "fixed") || !strings.Contains(string(p.read(registry)), p.layout.Dir) {
			t.Errorf("registry %s: %v, %s", text, found, p.read(registry))
		}
	}
	if p.asides(registry) != 1 {
		t.Error("the unreadable registry is gone")
	}
}

// lockHolder is a program that holds a lock until it is killed.
func lockHolder(args []string) int {
	if len(args) != 1 {
		return 64
	}
	if _, err := filelock.Lock(context.Background(), args[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("holding")
	select {}
}

// TestFault31KilledWhileHoldingTheLock checks that a process killed while it holds a lock blocks
// no other, and that its temporary files are removed.
func TestFault31KilledWhileHoldingTheLock(t *testing.T) {
	t.Parallel()
	p := newProof(t, "box")
	p.must("send", "box", "first")
	for _, path := range []string{filepath.Join(p.layout.Locks(), "box.guard"), p.layout.LedgerLock()} {
		cmd := exec.Command("lockholder", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if held, err := filelock.IsHeld(path); err != nil || !held {
			t.Errorf("%s: held %v, %v", path, held, err)
		}
		sent := make(chan error, 1)
		go func() {
			_, _, err := p.run(0, "send", "box", filepath.Base(path))
			sent <- err
		}()
		select {
		case err := <-sent:
			t.Errorf("sent while the lock was held: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		select {
		case err := <-sent:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("the next one does not enter")
		}
	}
	if got := p.texts("box"); !strings.HasPrefix(got, "first ") || len(strings.Fields(got)) < 2 {
		t.Errorf("the mailbox has %q", got)
	}

	old := time.Now().Add(-time.Hour)
	litter := []string{
		filepath.Join(p.layout.Inboxes(), ".box.json.tmp-0123456789abcdef"),
		filepath.Join(p.layout.Dir, ".config.json.tmp-0123456789abcdef"),
		filepath.Join(p.layout.Dir, ".ledger-123"),
		filepath.Join(p.layout.Copies(), ".ledger-123-journal"),
		filepath.Join(p.layout.Bundle("box").Outputs(), ".entry-1.txt.tmp-0123456789abcdef"),
		filepath.Join(p.layout.Locks(), "box.pid.4711"),
		filepath.Join(p.layout.Home.Dir, ".teams.json.tmp-0123456789abcdef"),
	}
	fresh := filepath.Join(p.layout.Inboxes(), ".box.json.tmp-fedcba9876543210")
	for _, path := range append(litter, fresh) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		p.write(path, []byte("half"))
		if path != fresh {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.repair()
	for _, path := range litter {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("not swept: %s", path)
		}
	}
	if _, err := os.Lstat(fresh); err != nil {
		t.Error("a temporary file of a living writer was removed")
	}
}

// TestFault35LedgerUnusable checks that an unusable ledger is refused with a reason and a hint,
// and that not even doctor --repair changes it.
func TestFault35LedgerUnusable(t *testing.T) {
	t.Parallel()
	patch := func(off int64, data []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(data, off); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		damage func(*testing.T, string)
		reason string
	}{
		"no database":         {patch(0, []byte("this is not a database at all")), "corrupt"},
		"newer schema":        {patch(60, binary.BigEndian.AppendUint32(nil, 9999)), "schema_newer"},
		"of something else":   {patch(68, []byte{1, 2, 3, 4}), "not_a_ledger"},
		"pages gone":          {func(t *testing.T, path string) { truncate(t, path, 8192) }, "corrupt"},
		"pages written over":  {patch(4096, bytes.Repeat([]byte{0x5a}, 32*4096)), "corrupt"},
		"a directory":         {func(t *testing.T, path string) { replaceByDir(t, path) }, "not_a_ledger"},
		"a link to elsewhere": {func(t *testing.T, path string) { replaceByLink(t, path) }, "not_a_ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProof(t)
			p.must("task", "add", "one")
			path := p.layout.Ledger()
			tt.damage(t, path)
			sum := fingerprint(t, path)
			for _, args := range [][]string{{"task", "add", "two"}, {"task", "ls"}, {"doctor", "--repair"}} {
				status, out := p.status(append(args, "--json", "--team", "t")...)
				if status != 7 {
					t.Errorf("teamctl %v: exit status %d: %s", args, status, out)
				}
				why := `"reason": "` + tt.reason + `"`
				if args[0] == "doctor" {
					why = `"status": "fail"`
				}
				if !strings.Contains(out, why) || !strings.Contains(out, `"hint"`) {
					t.Errorf("teamctl %v: %s", args, out)
				}
			}
			if fingerprint(t, path) != sum {
				t.Error("the damaged ledger was changed")
			}
		})
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func replaceByDir(t *testing.T, path string) {
	t.Helper()
	if err := os.Rename(path, path+".was"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func replaceByLink(t *testing.T, path string) {
	t.Helper()
	if err := os.Rename(path, path+".was"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+".was", path); err != nil {
		t.Fatal(err)
	}
}

func fingerprint(t *testing.T, path string) string {
	t.Helper()
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !fi.Mode().IsRegular() {
		return fi.Mode().String()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestFault36Symlinks checks that a link in place of a mailbox, their directory, a lock or
// config.json is not followed: its target is unchanged, the message is delivered, and doctor
// repairs the file.
func TestFault36Symlinks(t *testing.T) {
	t.Parallel()
	for name, trap := range map[string]func(p *proof, outside string){
		"a mailbox": func(p *proof, outside string) {
			link(p.t, filepath.Join(outside, "key"), filepath.Join(p.layout.Inboxes(), "box.json"))
		},
		"the directory": func(p *proof, outside string) {
			if err := os.Rename(p.layout.Inboxes(), p.layout.Inboxes()+".was"); err != nil {
				p.t.Fatal(err)
			}
			link(p.t, outside, p.layout.Inboxes())
		},
		"the lock": func(p *proof, outside string) {
			if err := os.MkdirAll(p.layout.Locks(), 0o700); err != nil {
				p.t.Fatal(err)
			}
			link(p.t, filepath.Join(outside, "key"), filepath.Join(p.layout.Locks(), "box.guard"))
		},
		"config.json": func(p *proof, outside string) {
			if err := os.Remove(p.layout.Config()); err != nil {
				p.t.Fatal(err)
			}
			link(p.t, filepath.Join(outside, "key"), p.layout.Config())
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProof(t, "box")
			outside := filepath.Join(p.dir, "outside")
			if err := os.Mkdir(outside, 0o700); err != nil {
				t.Fatal(err)
			}
			const secret = "[]"
			p.write(filepath.Join(outside, "key"), []byte(secret))
			trap(p, outside)
			status, out := p.status("send", "box", "hello")
			if name != "config.json" && (status != 0 || !strings.Contains(out, "not in the mailbox yet")) {
				t.Errorf("exit status %d: %s", status, out)
			}
			found := p.repair()
			if len(found) == 0 {
				t.Error("the doctor saw nothing")
			}
			for step, what := range found {
				if !strings.HasPrefix(what, "fixed") {
					t.Errorf("%s: %s", step, what)
				}
			}
			p.settle()
			if got := p.texts("box"); got != "hello" {
				t.Errorf("the mailbox has %q", got)
			}
			entries, err := os.ReadDir(outside)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != 1 || string(p.read(filepath.Join(outside, "key"))) != secret {
				t.Errorf("outside: %v, %s", entries, p.read(filepath.Join(outside, "key")))
			}
		})
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// settle runs doctor --repair until every posted message is mailed.
func (p *proof) settle() {
	p.t.Helper()
	led := p.ledger()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		out, err := led.Undelivered(context.WithoutCancel(p.t.Context()), 0)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(out) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%d messages are not mailed", len(out))
		}
		p.repair()
	}
}
