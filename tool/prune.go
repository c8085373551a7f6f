package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// PruneOut is what a prune removed and where it is archived.
type PruneOut struct {
	ledger.Pruned
	Mailboxes int    `json:"mailboxes,omitempty"` // read messages removed from mailbox files; the ledger keeps them
	Archive   string `json:"archive,omitempty"`   // empty: nothing was removed
}

// Prune removes history that is older than age from the ledger: events, the messages of closed
// runs for which nothing waits, and the transcripts of closed conversations. They are first written durably to an archive in the team's
// directory. Mailbox files keep the newest mail.KeepRead read messages of any age, as with a
// running supervisor.
func (t *Team) Prune(ctx context.Context, c Caller, age time.Duration) (out PruneOut, err error) {
	if err := t.may(ctx, c, OpMaintenance); err != nil {
		return out, err
	}
	if age <= 0 {
		return out, team.Errorf(team.CodeInvalid, "the minimum age must be positive")
	}
	if out.Mailboxes, err = t.mailer(c).PruneAll(ctx); err != nil { // first, since it marks read messages in the ledger
		return out, err
	}
	mark, err := t.Ledger.PruneMark(ctx, time.Now().Add(-age).UnixMilli())
	if err != nil {
		return out, err
	}
	dir := filepath.Join(t.Layout.Dir, "archive")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return out, team.Errorf(team.CodeUnavailable, "make the archive: %w", err)
	}
	name := filepath.Join(dir, fmt.Sprintf("history-%s.jsonl", time.Now().UTC().Format("20060102T150405.000Z")))
	n, err := t.archive(ctx, mark, name)
	if err != nil {
		return out, errors.Join(err, os.Remove(name))
	}
	if n == (ledger.Pruned{}) {
		return out, os.Remove(name)
	}
	out.Archive = name
	out.Pruned, err = t.as(c).Prune(ctx, mark)
	return out, err
}

// archive writes a new file and returns when it is durable.
func (t *Team) archive(ctx context.Context, mark ledger.PruneMark, name string) (n ledger.Pruned, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return n, team.Errorf(team.CodeUnavailable, "make the archive: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if n, err = t.Ledger.Archive(ctx, mark, f); err != nil {
		return n, err
	}
	if err := f.Sync(); err != nil {
		return n, team.Errorf(team.CodeUnavailable, "write the archive: %w", err)
	}
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return n, team.Errorf(team.CodeUnavailable, "write the archive: %w", err)
	}
	return n, errors.Join(d.Sync(), d.Close())
}
