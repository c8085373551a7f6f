package publish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// newTeam is a team with a ledger of its own and its lead.
func newTeam(t *testing.T) (team.Layout, *ledger.Ledger) {
	t.Helper()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	for _, d := range []string{l.Dir, l.Locks()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{Create: true, LockPath: l.LedgerLock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	led := ledger.New(db, ledger.Direct(db))
	lead := team.LeadSessionKey("", "t")
	if _, err := led.CreateTeam(t.Context(), ledger.TeamRow{Key: "t", Name: "t", LeadSession: lead}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := led.AddMember(t.Context(), ledger.Member{SessionKey: lead, Name: team.LeadName, Role: team.RoleLeader, Desired: team.WantStopped}, true); err != nil {
		t.Fatal(err)
	}
	return l, led
}

// A config.json that cannot be read is moved aside, and the log says so once.
func TestConfigAsideIsAnEvent(t *testing.T) {
	t.Parallel()
	l, led := newTeam(t)
	publish := func() {
		t.Helper()
		if err := Config(t.Context(), l, led); err != nil {
			t.Fatal(err)
		}
	}
	events := func() []ledger.Event {
		t.Helper()
		all, err := led.Events(t.Context(), 0, 0, ledger.EventFilter{What: team.EventConfigAside})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	publish()
	if all := events(); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
	const damaged = `{"name": "t", "mem`
	if err := os.WriteFile(l.Config(), []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	publish()
	publish()
	all := events()
	if len(all) != 1 {
		t.Fatalf("%d events: %+v", len(all), all)
	}
	if b, err := os.ReadFile(filepath.Join(l.Dir, all[0].ID)); err != nil || string(b) != damaged {
		t.Errorf("%q, %v", b, err)
	}
}

// What others do to the file between two writings of one supervisor counts: its words
// are kept, a file that is gone is made anew, a damaged one is moved aside.
func TestPublishSeesWhatOthersWrote(t *testing.T) {
	t.Parallel()
	l, led := newTeam(t)
	var f File
	publish := func() string {
		t.Helper()
		if err := f.Publish(t.Context(), l, led); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(l.Config())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(l.Config(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := publish()
	if again := publish(); again != first {
		t.Errorf("unchanged, but %q", again)
	}
	theirs := strings.Replace(first, `{`, `{"theirs":[1],`, 1)
	write(strings.Replace(theirs, `"name"`, `"name":"other","was"`, 1))
	now := publish()
	for _, want := range []string{`"theirs": [`, `"was": "`} {
		if !strings.Contains(now, want) {
			t.Errorf("%s is not kept: %s", want, now)
		}
	}
	if strings.Contains(now, "other") {
		t.Errorf("the name is theirs: %s", now)
	}
	if err := os.Remove(l.Config()); err != nil {
		t.Fatal(err)
	}
	if again := publish(); again != first {
		t.Errorf("made anew it is %q, not %q", again, first)
	}
	write(`{`)
	if again := publish(); again != first {
		t.Errorf("after a damaged one it is %q, not %q", again, first)
	}
}
