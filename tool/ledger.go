package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/found"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// LedgerCheck is the state of a team's ledger and its copies.
type LedgerCheck struct {
	Team     string        `json:"team"`
	Path     string        `json:"path"`
	Problems []string      `json:"problems"` // empty: it is sound
	Copies   []ledger.Copy `json:"copies"`   // newest first
}

// LedgerCheck reads the whole ledger of a team. Problems of the ledger are part of the result, not
// an error.
func (e *Env) LedgerCheck(ctx context.Context, key string) (LedgerCheck, error) {
	l := e.Home.Team(key)
	out := LedgerCheck{Team: key, Path: l.Ledger(), Problems: []string{}, Copies: []ledger.Copy{}}
	copies, err := ledger.Copies(l.Copies())
	if err != nil {
		return out, err
	}
	out.Copies = append(out.Copies, copies...)
	t, err := e.Open(ctx, key)
	if err != nil {
		if !ledgerLost(err) {
			return out, err
		}
		out.Problems = append(out.Problems, err.Error())
		return out, nil
	}
	problems, err := t.Ledger.Check(ctx)
	if err == nil && len(problems) == 0 {
		_, err = t.Ledger.Team(ctx)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		problems = append(problems, err.Error())
	}
	out.Problems = append(out.Problems, problems...)
	return out, nil
}

// ledgerLost reports whether an error says that the file is not a ledger, or not a readable one.
func ledgerLost(err error) bool {
	switch team.ReasonOf(err) {
	case "corrupt", "not_a_ledger", "ledger_not_found":
		return true
	}
	return false
}

// LedgerBackup makes a copy of the team's ledger.
func (t *Team) LedgerBackup(ctx context.Context, c Caller) (ledger.Copy, error) {
	if !c.Person {
		return ledger.Copy{}, errRole(c, OpMaintenance)
	}
	return t.Ledger.CopyTo(ctx, t.Layout.Copies(), services.CopiesKept)
}

// LedgerRecovered is the result of a recovery.
type LedgerRecovered struct {
	Team    string   `json:"team"`
	Status  string   `json:"status"`         // recovered, sound
	Kept    string   `json:"kept,omitempty"` // the damaged file
	Members []string `json:"members"`        // running members that were adopted
	ledger.Rebuilt
}

// LostTeams returns the keys of the teams whose ledger is missing.
func (e *Env) LostTeams() []string {
	entries, _ := os.ReadDir(e.Home.TeamsDir())
	var keys []string
	for _, d := range entries {
		if d.IsDir() && !strings.HasPrefix(d.Name(), ".") && lostLedger(e.Home.Team(d.Name())) {
			keys = append(keys, d.Name())
		}
	}
	return keys
}

// lostLedger reports whether a directory was a team's and has no ledger.
func lostLedger(l team.Layout) bool {
	if _, err := os.Lstat(l.Ledger()); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	if copies, err := ledger.Copies(l.Copies()); err == nil && len(copies) > 0 {
		return true
	}
	for _, ours := range []string{l.Config(), l.Members()} { // a native team has no bundles
		if _, err := os.Lstat(ours); err != nil {
			return false
		}
	}
	return true
}

func errLostLedger(key string) *team.Error {
	return team.Errorf(team.CodeUnavailable, "the ledger of team %q is missing", key).WithReason(team.ReasonCorrupt).
		WithHint("teamctl ledger recover " + key)
}

// LedgerKey is Resolve for a team whose ledger may be missing.
func (e *Env) LedgerKey(ctx context.Context, name string) (string, error) {
	key, err := e.Resolve(ctx, name)
	if err == nil {
		return key, nil
	}
	lost := e.LostTeams()
	if name == "" {
		name = os.Getenv(team.EnvTeam)
	}
	if name == "" && len(lost) == 1 {
		return lost[0], nil
	}
	if key, kerr := team.TeamKey(name); kerr == nil && slices.Contains(lost, key) {
		return key, nil
	}
	return "", err
}

// LedgerRecover rebuilds the ledger of a team from its readable parts, its newest copy, the
// mailboxes, config.json and the members' bundles. The damaged file is kept. A supervisor is
// started on the new ledger and adopts the running members. An interrupted recovery can be
// repeated.
func (e *Env) LedgerRecover(ctx context.Context, c Caller, key string) (out LedgerRecovered, err error) {
	out = LedgerRecovered{Team: key, Status: "recovered", Members: []string{}}
	if !c.Person {
		return out, errRole(c, OpMaintenance)
	}
	l := e.Home.Team(key)
	if !lostLedger(l) {
		check, err := e.LedgerCheck(ctx, key)
		if err != nil {
			return out, err
		}
		if len(check.Problems) == 0 {
			out.Status = "sound"
			return out, nil
		}
	}
	locks, err := e.quietTeam(ctx, l)
	if err != nil {
		return out, err
	}
	err = e.rebuildLedger(ctx, l, &out)
	for _, lock := range slices.Backward(locks) {
		err = errors.Join(err, lock.Unlock())
	}
	if err != nil {
		return out, firstCoded(err)
	}
	return out, e.afterRecovery(ctx, &out)
}

// quietTeam ends the team's supervisor, which has the damaged file open, and locks out other
// writers. The agents keep running.
func (e *Env) quietTeam(ctx context.Context, l team.Layout) (locks []*filelock.Held, err error) {
	if err := os.MkdirAll(l.Locks(), 0o700); err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "lock the ledger: %w", err)
	}
	if e.Dial != nil {
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		if s, derr := e.Dial(short, l, false); derr == nil && s != nil {
			_ = s.Quit(short, false) // if it does not quit, its process is ended below
		}
		cancel()
	}
	t := &Team{Env: e, Layout: l}
	if pid, _ := t.supervisorPID(); pid != 0 {
		if id, err := proc.Identify(pid); err == nil {
			if _, err := proc.KillTree(ctx, []backends.ProcID{id}, "", 5*time.Second); err != nil {
				return nil, team.Errorf(team.CodeTimeout, "end the supervisor, pid %d: %w", pid, err)
			}
		}
	}
	for _, path := range []string{l.SupervisorLock(), l.LedgerLock()} {
		wait, cancel := context.WithTimeout(ctx, 30*time.Second)
		lock, err := filelock.Lock(wait, path)
		cancel()
		if err != nil {
			for _, held := range slices.Backward(locks) {
				_ = held.Unlock()
			}
			return nil, team.Errorf(team.CodeTimeout, "the ledger of %s is in use: %w", l.Key, err).WithHint("teamctl doctor")
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

// recoverName is the pattern of a recovery's own directory.
const recoverName = ".recover-*"

// rebuildLedger creates the new file and renames it into place.
func (e *Env) rebuildLedger(ctx context.Context, l team.Layout, out *LedgerRecovered) (err error) {
	left, _ := filepath.Glob(filepath.Join(glob.Escape(l.Dir), recoverName)) // of killed recoveries: the locks are ours
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return unwritable(l.Dir, err)
		}
	}
	if err := resumeAside(l); err != nil {
		return err
	}
	work, err := os.MkdirTemp(l.Dir, recoverName)
	if err != nil {
		return unwritable(l.Dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	in := ledger.RebuildIn{Out: filepath.Join(work, "new.db")}
	if in.Copies, err = ledger.Copies(l.Copies()); err != nil {
		return err
	}
	damaged := l.Ledger()
	if _, err := os.Lstat(damaged); errors.Is(err, os.ErrNotExist) { // an earlier recovery may have been interrupted
		found, _ := filepath.Glob(glob.Escape(damaged) + ledger.DamagedMark + "*")
		found = slices.DeleteFunc(found, func(s string) bool { return strings.HasSuffix(s, "-wal") || strings.HasSuffix(s, "-shm") })
		if damaged = ""; len(found) > 0 {
			damaged = slices.Max(found)
		}
	}
	if damaged != "" {
		if in.Damaged, err = duplicate(damaged, filepath.Join(work, "damaged.db")); err != nil {
			return err
		}
	}
	if in.Damaged != "" {
		in.Pages = loosePages(ctx, in.Damaged, work)
	}
	in.Found = findTeam(ctx, l)
	if out.Rebuilt, err = ledger.Rebuild(ctx, in); err != nil {
		return err
	}
	if damaged == "" {
		out.Missing = append(out.Missing, "the file was missing: what happened since the copy is known from mailboxes and members only")
	}
	e.reached("recover-built")
	out.Kept = damaged
	kept := l.Ledger() + ledger.DamagedMark + time.Now().UTC().Format("20060102T150405.000Z")
	if damaged == l.Ledger() {
		out.Kept = kept
	}
	if err := e.setAside(l, kept); err != nil {
		return unwritable(l.Dir, err)
	}
	// The next supervisor restores mailbox entries that are missing.
	if err := os.Remove(l.MailBoot()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return unwritable(l.Dir, err)
	}
	if err := os.Rename(in.Out, l.Ledger()); err != nil {
		return unwritable(l.Dir, err)
	}
	e.reached("recover-placed")
	return syncDir(l.Dir)
}

// ledgerFiles are the endings of a ledger's files, the database first.
var ledgerFiles = []string{"", "-wal", "-shm"}

// setAside gives what there is of a ledger its kept name. A kill leaves the ledger as it was, or no
// ledger beside the whole kept one: never a database without its log, which would look sound, and
// never a log that the new file would take for its own.
func (e *Env) setAside(l team.Layout, kept string) error {
	for _, end := range slices.Backward(ledgerFiles) { // what lacks its database is not taken for a kept ledger
		switch err := os.Link(l.Ledger()+end, kept+end); {
		case err == nil || errors.Is(err, os.ErrNotExist):
		default: // no hard links here: the ledger is missing as soon as its database is moved
			return renameAside(l.Ledger(), kept)
		}
	}
	if err := syncDir(l.Dir); err != nil {
		return err
	}
	e.reached("recover-kept")
	for _, end := range ledgerFiles {
		if err := os.Remove(l.Ledger() + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := syncDir(l.Dir); err != nil {
			return err
		}
		e.reached("recover-removed" + end)
	}
	return nil
}

// renameAside is setAside where there are no hard links. The database goes first: a kill leaves no
// ledger.
func renameAside(ledger, kept string) error {
	for _, end := range ledgerFiles {
		if err := os.Rename(ledger+end, kept+end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return syncDir(filepath.Dir(ledger))
}

// resumeAside finishes a setAside that was killed: it gives up the kept names of a ledger that is
// still there, and removes what is left of one that is not.
func resumeAside(l team.Layout) error {
	_, missing := os.Lstat(l.Ledger())
	kept, _ := filepath.Glob(glob.Escape(l.Ledger()) + ledger.DamagedMark + "*")
	for _, end := range ledgerFiles {
		own, err := os.Lstat(l.Ledger() + end)
		if err != nil {
			continue
		}
		for _, name := range kept {
			if fi, err := os.Lstat(name); err != nil || !os.SameFile(own, fi) {
				continue
			}
			if missing != nil {
				name = l.Ledger() + end
			}
			if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
				return unwritable(l.Dir, err)
			}
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// duplicate copies a database with its log; "" if the source is not a file, or is empty.
func duplicate(from, to string) (string, error) {
	for _, end := range []string{"", "-wal"} {
		src, err := regular.Open(from + end)
		switch {
		case errors.Is(err, os.ErrNotExist) && end != "":
			continue
		case errors.Is(err, regular.ErrNotRegular):
			return "", nil
		case err != nil:
			return "", team.Errorf(team.CodeUnavailable, "read the damaged ledger: %w", err)
		}
		dst, err := os.OpenFile(to+end, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_, err = io.Copy(dst, src)
			err = errors.Join(err, dst.Close())
		}
		if err = errors.Join(err, src.Close()); err != nil {
			return "", team.Errorf(team.CodeUnavailable, "copy the damaged ledger: %w", err)
		}
	}
	return to, nil
}

// pagesWithin bounds the recovery by the sqlite3 program.
const pagesWithin = 5 * time.Minute

// loosePages returns the database that SQLite's own recovery makes of a damaged one; "" if its
// program is not installed or finds nothing.
func loosePages(ctx context.Context, damaged, work string) string {
	sqlite, err := exec.LookPath("sqlite3")
	if err != nil {
		return ""
	}
	own := filepath.Join(work, "pages-from.db") // it may be written to
	if _, err := duplicate(damaged, own); err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, pagesWithin)
	defer cancel()
	to := filepath.Join(work, "pages.db")
	out, in := exec.CommandContext(ctx, sqlite, "-batch", own, ".recover --ignore-freelist"), exec.CommandContext(ctx, sqlite, "-batch", to)
	out.WaitDelay, in.WaitDelay = time.Second, time.Second
	if in.Stdin, err = out.StdoutPipe(); err != nil {
		return ""
	}
	if in.Start() != nil {
		return ""
	}
	_ = errors.Join(out.Run(), in.Wait()) // the output is used, however the programs ended
	return to
}

// findTeam collects what the files of a team contain about it.
func findTeam(ctx context.Context, l team.Layout) (f ledger.Found) {
	var cfg *team.Config
	text, err := regular.ReadFile(l.Config())
	if err == nil {
		cfg, err = team.ParseConfig(text) // nil if it cannot be parsed
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.Unread = append(f.Unread, fmt.Sprintf("config.json could not be read: %v", err))
	}
	var unread []string
	f.Members, unread = found.Members(l, cfg)
	f.Unread = append(f.Unread, unread...)
	if cfg != nil {
		f.Team = &ledger.TeamRow{
			Key: l.Key, Name: cfg.Name, Description: cfg.Description, CreatedAt: cfg.CreatedAt,
			LeadSession: cfg.LeadSessionID, Hidden: cfg.HiddenPaneIDs,
		}
		for _, m := range cfg.Members {
			for _, dir := range []string{m.WorktreePath, m.Cwd} {
				if f.Team.Repo == "" && dir != "" {
					f.Team.Repo = worktree.RepoOf(ctx, dir)
				}
			}
		}
	}
	for _, m := range f.Members {
		entries, err := readMailbox(ctx, l, m.Member.Name)
		if err != nil {
			f.UnreadMail = append(f.UnreadMail, fmt.Sprintf("the mailbox of %s could not be read: %v", m.Member.Name, err))
		}
		for _, e := range entries {
			f.Messages = append(f.Messages, foundMessage(m.Member.Name, e))
		}
	}
	return f
}

// readMailbox returns the entries of a mailbox; of a damaged one, those that its repair has kept.
func readMailbox(ctx context.Context, l team.Layout, name string) ([]inbox.Entry, error) {
	box, err := inbox.Open(l.Inboxes(), l.Locks(), name)
	if err != nil {
		return nil, err
	}
	entries, err := box.Entries(ctx)
	if errors.As(err, new(*inbox.CorruptError)) { // its first user repairs it
		entries, err = box.Entries(ctx)
	}
	return entries, err
}

func foundMessage(to string, e inbox.Entry) ledger.FoundMessage {
	m := ledger.FoundMessage{ID: e.ID, From: e.From, To: to, Text: string(e.RawText()), Summary: e.Summary, Read: e.Read, At: time.Now().UnixMilli()}
	if at, err := time.Parse(time.RFC3339, e.Timestamp); err == nil {
		m.At = at.UnixMilli()
	}
	if frame, ok := e.Frame(); ok {
		m.Kind, m.RequestID = frame.Kind(), frame.Correlation()
	}
	return m
}

// afterRecovery records the recovery, and starts a supervisor, which adopts the running agents.
func (e *Env) afterRecovery(ctx context.Context, out *LedgerRecovered) error {
	t, err := e.Open(ctx, out.Team)
	if err != nil {
		return err
	}
	err = t.recovered(ctx, out)
	if err = errors.Join(err, t.Close()); err != nil {
		return firstCoded(err)
	}
	return e.rebuildRegistry()
}

func (t *Team) recovered(ctx context.Context, out *LedgerRecovered) error {
	problems, err := t.Ledger.Check(ctx)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return team.Errorf(team.CodeInternal, "the recovered ledger is not sound: %s", strings.Join(problems, "; ")).
			WithHint("the damaged one is " + out.Kept)
	}
	place, err := t.Ledger.Place(ctx)
	if err == nil && place.Path == "" {
		if place, err = ledger.PlaceAt(t.Layout.Dir, t.Layout.Dir); err == nil {
			err = t.Ledger.SetPlace(ctx, place)
		}
	}
	if err != nil {
		return err
	}
	if _, err := t.Ledger.Event(ctx, ledger.Event{What: team.EventLedgerRecovered, ID: filepath.Base(out.Kept), After: fmt.Sprintf("%d notes", len(out.Missing))}); err != nil {
		return err
	}
	if err := publish.Config(ctx, t.Layout, t.Ledger); err != nil {
		return err
	}
	members, _, err := t.Members(ctx) // starts a supervisor if members should be running
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Name != team.LeadName && m.Observed.Alive() {
			out.Members = append(out.Members, m.Name)
		}
	}
	return nil
}
