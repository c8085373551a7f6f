package look

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/tool"
)

// TestLockedLedger checks that a ledger that another process keeps locked is
// named as such, and that the same team is written to and read again once that has ended.
func TestLockedLedger(t *testing.T) {
	t.Parallel()
	tm := newMailTeam(t, "ann")
	other, err := sql.Open("sqlite3", "file:"+tm.Layout.Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if words := view.TroubleWords(tm.CheckWrites(ctx, tool.Person())); words != "the ledger is locked" {
		t.Errorf("%q", words)
	}
	if _, err := Needs(t.Context(), tm); err != nil {
		t.Errorf("it cannot be read, either: %v", err)
	}
	if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := tm.CheckWrites(t.Context(), tool.Person()); err != nil {
		t.Errorf("after it: %v", err)
	}
	if names, err := tm.Ledger.SettingNames(t.Context(), ""); err != nil || len(names) > 0 && names[len(names)-1] == "write check" {
		t.Errorf("it leaves %q, %v", names, err)
	}
}
