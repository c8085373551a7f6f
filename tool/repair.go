package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// RepairStatus is the result of a repair step.
type RepairStatus string

// Values of RepairStatus.
const (
	RepairOK    RepairStatus = "ok"    // nothing was wrong
	RepairFixed RepairStatus = "fixed" // repaired
	RepairFail  RepairStatus = "fail"  // unchanged
)

// RepairStep is one line of a repair's report.
type RepairStep struct {
	Team   string       `json:"team,omitempty"` // empty: the home directory
	Step   string       `json:"step"`           // "ledger", "config", "mailbox builder", ...
	Status RepairStatus `json:"status"`
	Detail string       `json:"detail"`
	Hint   string       `json:"hint,omitempty"`
}

// litterAge is the age of a temporary file that no running writer uses.
const litterAge = time.Minute

// Repair brings the files of every team, or of the named one, in line with its ledger:
// config.json, the mailboxes, the registry. Unreadable files are renamed; only leftovers of killed
// writers, and what was never a team, are deleted. It works beside a running supervisor and
// agents.
func (e *Env) Repair(ctx context.Context, c Caller, key string) ([]RepairStep, error) {
	if !c.Person {
		return nil, errRole(c, OpMaintenance)
	}
	keys := []string{key}
	if key == "" {
		var err error
		if keys, err = e.Keys(); err != nil {
			return nil, err
		}
	}
	r := &repairer{env: e}
	for _, k := range keys {
		r.team = k
		r.repairTeam(ctx, e.Home.Team(k))
	}
	r.team = ""
	r.registry()
	r.unfinished()
	r.sweep("temporary files", e.Home.Dir)
	return r.steps, nil
}

// repairer collects the report.
type repairer struct {
	env   *Env
	team  string
	steps []RepairStep
}

func (r *repairer) say(step string, s RepairStatus, format string, args ...any) {
	r.steps = append(r.steps, RepairStep{Team: r.team, Step: step, Status: s, Detail: fmt.Sprintf(format, args...)})
}

func (r *repairer) fail(step string, err error) {
	r.steps = append(r.steps, RepairStep{Team: r.team, Step: step, Status: RepairFail, Detail: err.Error(), Hint: team.HintOf(err)})
}

func (r *repairer) repairTeam(ctx context.Context, l team.Layout) {
	t, err := r.env.Open(ctx, l.Key)
	if err != nil { // without the ledger nothing is known about the team
		r.fail("ledger", withBackups(err, l))
		return
	}
	defer func() {
		if err := t.Close(); err != nil {
			r.fail("ledger", err)
		}
	}()
	if t.Elsewhere != nil {
		r.fail("directory", t.Elsewhere)
		return
	}
	l = t.Layout
	if !r.ledger(ctx, t) {
		return
	}
	r.places(l)
	r.config(ctx, t)
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		r.fail("mailboxes", err)
		return
	}
	for _, m := range members {
		r.mailbox(ctx, t, m)
	}
	switch n, again, err := (mail.Mailer{Layout: l, Ledger: t.Ledger, Via: t.via}).Sweep(ctx); {
	case err != nil:
		r.fail("outbox", err)
	case n > 0:
		r.say("outbox", RepairFixed, "%d messages mailed", n)
	case again > 0:
		r.say("outbox", RepairOK, "messages that were posted a moment ago are on their way")
	default:
		r.say("outbox", RepairOK, "nothing waits to be mailed")
	}
	r.commands(ctx, t)
	dirs := []string{l.Dir, l.Members(), l.Commands(), l.Reviews()}
	for _, m := range members {
		dirs = append(dirs, string(l.Bundle(m.Name)), l.Bundle(m.Name).Outputs())
	}
	n, err := inbox.Sweep(l.Inboxes(), l.Locks(), litterAge)
	if err != nil {
		r.fail("temporary files", err)
	}
	r.sweepAnd("temporary files", n+ledger.SweepCopies(l.Copies()), dirs...)
}

// withBackups adds the copies of a ledger beside it to the error.
func withBackups(err error, l team.Layout) error {
	if !ledgerLost(err) {
		return err
	}
	hint := "teamctl ledger recover " + l.Key
	if found := ledger.Backups(l.Ledger()); len(found) > 0 {
		hint += "; a copy from before an upgrade is " + found[len(found)-1]
	}
	return team.Errorf(team.CodeOf(err), "%w", err).WithReason(team.ReasonOf(err)).WithHint(hint)
}

// ledger checks the ledger and repairs it if possible; false if it cannot be relied on.
func (r *repairer) ledger(ctx context.Context, t *Team) bool {
	problems, err := t.Ledger.Check(ctx)
	if err != nil {
		r.fail("ledger", withBackups(err, t.Layout))
		return false
	}
	if len(problems) == 0 {
		r.say("ledger", RepairOK, "sound")
		return true
	}
	fixed, err := t.Ledger.Repair(ctx)
	if err == nil {
		problems, err = t.Ledger.Check(ctx)
	}
	if err == nil && len(problems) > 0 {
		err = team.Errorf(team.CodeUnavailable, "damaged: %s", strings.Join(problems, "; ")).WithReason(team.ReasonCorrupt).
			WithHint("nothing was touched; keep " + t.Layout.Ledger() + " and its -wal")
	}
	if err != nil {
		r.fail("ledger", withBackups(err, t.Layout))
		return false
	}
	if len(fixed) == 0 {
		fixed = []string{"indexes made anew"}
	}
	r.say("ledger", RepairFixed, "%s", strings.Join(fixed, "; "))
	return true
}

// places creates missing directories, and moves other files in their place aside.
func (r *repairer) places(l team.Layout) {
	for _, dir := range []string{l.Inboxes(), l.Locks(), l.Members()} {
		step := filepath.Base(dir) + " directory"
		moved, err := setAside(dir, func(fi fs.FileInfo) bool { return fi.IsDir() })
		if err == nil {
			err = os.Mkdir(dir, 0o700)
			if err == nil && moved == "" {
				r.say(step, RepairFixed, "was missing")
			}
		}
		switch {
		case moved != "":
			r.say(step, RepairFixed, "what was in its place is %s now", moved)
		case err != nil && !errors.Is(err, fs.ErrExist):
			r.fail(step, team.Errorf(team.CodeUnavailable, "%w", err))
		}
	}
}

// setAside renames the file at path if it exists, unless ok accepts it.
func setAside(path string, ok func(fs.FileInfo) bool) (moved string, err error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || ok(fi) {
		return "", err
	}
	stamp := time.Now().UTC().Format("20060102T150405.000")
	for n := 0; ; n++ {
		moved = path + ".corrupt-" + stamp
		if n > 0 {
			moved = fmt.Sprintf("%s-%d", moved, n)
		}
		if _, err := os.Lstat(moved); errors.Is(err, fs.ErrNotExist) {
			return moved, os.Rename(path, moved)
		}
	}
}

func (r *repairer) config(ctx context.Context, t *Team) {
	path := t.Layout.Config()
	moved, err := setAside(path, func(fi fs.FileInfo) bool { return fi.Mode().IsRegular() })
	if err != nil {
		r.fail("config", err)
		return
	}
	before, readErr := regular.ReadFile(path)
	olds := corrupted(path)
	if err := publish.Config(ctx, t.Layout, t.Ledger); err != nil {
		r.fail("config", err)
		return
	}
	if news := corrupted(path); moved == "" && len(news) > len(olds) {
		moved = news[len(news)-1]
	}
	after, err := regular.ReadFile(path)
	switch {
	case err != nil:
		r.fail("config", err)
	case moved != "":
		r.say("config", RepairFixed, "made from the ledger; what could not be read is %s now", moved)
	case readErr != nil:
		r.say("config", RepairFixed, "was missing; made from the ledger")
	case string(before) != string(after):
		r.say("config", RepairFixed, "brought in line with the ledger")
	default:
		r.say("config", RepairOK, "as the ledger has it")
	}
}

func corrupted(path string) []string {
	found, err := filepath.Glob(glob.Escape(path) + ".corrupt-*")
	if err != nil {
		return nil // the pattern is valid
	}
	return found
}

func (r *repairer) mailbox(ctx context.Context, t *Team, m ledger.Member) {
	step := "mailbox " + m.Name
	l := t.Layout
	file := filepath.Join(l.Inboxes(), m.Name+".json")
	regular := func(fi fs.FileInfo) bool { return fi.Mode().IsRegular() }
	var notes []string
	for _, p := range []struct {
		path string
		ok   func(fs.FileInfo) bool
	}{
		{file, regular},
		{file + ".lock", func(fi fs.FileInfo) bool { return fi.IsDir() }}, // possibly another client's
		{filepath.Join(l.Locks(), m.Name+".guard"), regular},
	} {
		moved, err := setAside(p.path, p.ok)
		if err != nil {
			r.fail(step, err)
			return
		}
		if moved != "" {
			notes = append(notes, "what could not be trusted is "+moved+" now")
		}
	}
	done, err := (mail.Mailer{Layout: l, Ledger: t.Ledger, Via: t.via}).RepairBox(ctx, m)
	if done.Damaged != nil {
		notes = append(notes, fmt.Sprintf("damaged at byte %d; kept %d messages, the file is %s now", done.Damaged.Offset, done.Damaged.Salvaged, done.Damaged.Moved))
	}
	if done.Restored > 0 {
		notes = append(notes, fmt.Sprintf("%d messages put back", done.Restored))
	}
	switch {
	case err != nil:
		r.fail(step, err)
	case len(notes) > 0:
		r.say(step, RepairFixed, "%s", strings.Join(notes, "; "))
	default:
		r.say(step, RepairOK, "sound")
	}
}

// commands removes what killed merges, set-ups and hooks have left.
func (r *repairer) commands(ctx context.Context, t *Team) {
	const step = "killed commands"
	done, err := t.clearScratch(ctx)
	if err != nil {
		r.fail(step, err)
	}
	switch {
	case done.commands+done.worktrees > 0:
		r.say(step, RepairFixed, "%d cleared, with %d processes and %d scratch worktrees", done.commands, done.processes, done.worktrees)
	case err == nil:
		r.say(step, RepairOK, "none has left anything")
	}
}

// registry rebuilds teams.json from the directories.
func (r *repairer) registry() {
	path := r.env.Home.Registry()
	before, readErr := regular.ReadFile(path)
	moved, err := setAside(path, func(fi fs.FileInfo) bool {
		var m map[string]string
		return fi.Mode().IsRegular() && readErr == nil && json.Unmarshal(before, &m) == nil
	})
	if err == nil {
		err = r.env.rebuildRegistry()
	}
	if err != nil {
		r.fail("registry", err)
		return
	}
	after, err := regular.ReadFile(path)
	switch {
	case err != nil:
		r.fail("registry", err)
	case moved != "":
		r.say("registry", RepairFixed, "made anew; what could not be read is %s now", moved)
	case string(before) != string(after):
		r.say("registry", RepairFixed, "brought in line with the directories")
	default:
		r.say("registry", RepairOK, "as the directories are")
	}
}

// unfinished removes what killed creates and deletes have left. It does not have a team's name: a
// create had not renamed it yet, and a delete had done so last.
func (r *repairer) unfinished() {
	const step = "unfinished teams"
	n, err := r.env.sweepUnfinished()
	switch {
	case err != nil:
		r.fail(step, err)
	case n > 0:
		r.say(step, RepairFixed, "%d removed that a killed create or delete has left", n)
	default:
		r.say(step, RepairOK, "none that a killed create or delete has left")
	}
}

func (r *repairer) sweep(step string, dirs ...string) { r.sweepAnd(step, 0, dirs...) }

// ledgerTemp matches the leftover of a process that was killed while it created a ledger.
var ledgerTemp = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.ledger-[0-9]+(-journal)?$`) })

// sweepAnd removes old temporary files; n were removed before.
func (r *repairer) sweepAnd(step string, n int, dirs ...string) {
	failed := false
	for _, dir := range dirs {
		k, err := atomicfile.SweepTemp(dir, litterAge)
		if err != nil {
			failed = true
			r.fail(step, err)
		}
		n += k
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it is empty
		}
		for _, e := range entries {
			if fi, err := e.Info(); err == nil && ledgerTemp().MatchString(e.Name()) && time.Since(fi.ModTime()) > litterAge {
				if err := os.Remove(filepath.Join(dir, e.Name())); err == nil {
					n++
				}
			}
		}
	}
	switch {
	case n > 0:
		r.say(step, RepairFixed, "%d removed", n)
	case !failed:
		r.say(step, RepairOK, "none that a killed writer has left")
	}
}
