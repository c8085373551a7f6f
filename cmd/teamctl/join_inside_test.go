package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// settles stands for the supervisor's queue of mail.
type settles struct{ tool.Settler }

// Agents in the supervisor's process have its ledger, its group commit and its queue of mail, for its
// own team alone.
func TestAgentsInsideJoinTheSupervisor(t *testing.T) {
	t.Parallel()
	home := team.Home{Dir: t.TempDir()}
	l := home.Team("demo")
	db := openLedger(t, l)
	group := ledger.NewGroup(db)
	inside := control.Inside{DB: db, Writer: group, Mail: settles{}}
	o := parts{home: home, layout: l}.join(inside)
	got, release, err := o.ledgers.Open(t.Context(), l.Ledger(), ledger.Options{LockPath: l.LedgerLock()})
	if err != nil || got != db {
		t.Errorf("the ledger is %p, not %p; %v", got, db, err)
	}
	if err := release(); err != nil || db.Replaced() != nil {
		t.Errorf("release: %v, %v", err, db.Replaced())
	}
	if _, err := ledger.New(db, nil).Members(t.Context(), true); err != nil {
		t.Errorf("the supervisor's ledger after a release: %v", err)
	}
	if w, m := o.writer(l, nil); w != ledger.Writer(group) || m != inside.Mail {
		t.Errorf("they write by %T and mail by %T", w, m)
	}
	if w, m := o.writer(home.Team("other"), nil); w == ledger.Writer(group) || m == inside.Mail {
		t.Error("they write to another team as its supervisor does")
	}
}

func openLedger(t *testing.T, l team.Layout) *ledger.DB {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(l.Dir, "locks"), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{LockPath: l.LedgerLock(), Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
