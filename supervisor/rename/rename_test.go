package rename

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// rig is a team with ann, who has mail and a bundle. What must not happen at a kill is tested with
// processes, in package supervisor.
func rig(t *testing.T) (s *Renames, ann ledger.Member, steps *[]string) {
	t.Helper()
	tm, members := looptest.NewTeam(t, "ann", "bob")
	steps = new([]string)
	s = New(Options{
		Team:  tm,
		Alive: func(context.Context, ledger.Member) string { return "" },
		Dispose: func(_ context.Context, row ledger.Member) error {
			*steps = append(*steps, "disposed of "+row.Name)
			return nil
		},
		Step: func(name string) { *steps = append(*steps, name) },
	})
	if _, _, err := tm.Mailer().Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	write(t, tm.Layout.Bundle("ann").Log(), "said by ann")
	stopped := team.WantStopped
	if _, err := tm.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: members[0].SessionKey, Desired: &stopped}); err != nil {
		t.Fatal(err)
	}
	return s, members[0], steps
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mail returns what a mailbox has.
func mail(t *testing.T, s *Renames, name string) (texts []string) {
	t.Helper()
	box, err := s.Mailer().Box(name)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := box.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	return texts
}

// A rename moves the mailbox and the bundle, and a bundle of the new name that belongs to no member
// is kept beside it.
func TestTo(t *testing.T) {
	t.Parallel()
	s, ann, steps := rig(t)
	write(t, s.Layout.Bundle("eve").Log(), "said by an earlier eve")
	for range 2 { // the second changes nothing
		if err := s.To(t.Context(), ann.SessionKey, "eve"); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"begun", "disposed of ann", "linked", "applied", "mailbox", "bundle"}; !slices.Equal(*steps, want) {
		t.Errorf("steps %q, want %q", *steps, want)
	}
	row, err := s.Ledger.MemberBySession(t.Context(), ann.SessionKey)
	if err != nil || row.Name != "eve" {
		t.Errorf("row %s, %v", row.Name, err)
	}
	if got := mail(t, s, "eve"); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("mail of eve: %q", got)
	}
	if log, err := os.ReadFile(s.Layout.Bundle("eve").Log()); string(log) != "said by ann" {
		t.Errorf("log of eve: %q, %v", log, err)
	}
	if aside, err := filepath.Glob(filepath.Join(s.Layout.Members(), ".eve-*")); err != nil || len(aside) != 1 {
		t.Errorf("kept beside it: %q, %v", aside, err)
	}
}

// What may have a process keeps its name, and so does one whose new name is taken.
func TestRefused(t *testing.T) {
	t.Parallel()
	s, ann, steps := rig(t)
	s.Alive = func(context.Context, ledger.Member) string { return "its run lock is held" }
	if err := s.To(t.Context(), ann.SessionKey, "eve"); team.ReasonOf(err) != team.ReasonMemberRunning {
		t.Errorf("alive: %v", err)
	}
	s.Alive = func(context.Context, ledger.Member) string { return "" }
	if err := s.To(t.Context(), ann.SessionKey, "bob"); team.ReasonOf(err) != team.ReasonNameTaken {
		t.Errorf("to a name that is taken: %v", err)
	}
	if open, err := s.Ledger.OpenRenames(t.Context()); err != nil || len(open) != 0 || len(*steps) != 0 {
		t.Errorf("open %+v, steps %q, %v", open, *steps, err)
	}
}

// A rename that a kill has cut short is completed: of all members at the start of a supervisor, of
// one before that one starts.
func TestLeft(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]func(*Renames, ledger.Member) error{
		"all": func(s *Renames, _ ledger.Member) error { return s.Left(t.Context()) },
		"one": func(s *Renames, ann ledger.Member) error { return s.LeftOf(t.Context(), ann) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ann, _ := rig(t)
			if _, err := s.Ledger.BeginRename(t.Context(), ann.SessionKey, "eve"); err != nil {
				t.Fatal(err)
			}
			if err := left(s, ann); err != nil {
				t.Fatal(err)
			}
			if row, err := s.Ledger.MemberBySession(t.Context(), ann.SessionKey); err != nil || row.Name != "eve" {
				t.Errorf("row %s, %v", row.Name, err)
			}
			if got := mail(t, s, "eve"); !slices.Equal(got, []string{"hello"}) {
				t.Errorf("mail of eve: %q", got)
			}
		})
	}
}
