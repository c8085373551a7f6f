package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// In configures a bridge.
type In struct {
	Team   *tool.Team
	Caller tool.Caller // a person: the native lead speaks as team-lead
	Dir    string      // configuration directory of the native program
	Native string      // the native team; see FindNative
	Once   bool        // synchronise once and return
	// Say receives notes, from one goroutine.
	Say func(Note)
}

// Note reports one thing that the bridge did or could not do.
type Note struct {
	At   int64  `json:"at"`
	What string `json:"what"` // "member.here", "member.there", "task.here", "mail.there", "refused", ...
	Name string `json:"name,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Subjects of notes. Here: mirrored from the native team; there: mirrored to it.
const (
	NoteJoined      = "joined"
	NoteMemberHere  = "member.here"
	NoteMemberThere = "member.there"
	NoteMemberLeft  = "member.left"
	NoteTaskHere    = "task.here"
	NoteTaskThere   = "task.there"
	NoteMailHere    = "mail.here"
	NoteMailThere   = "mail.there"
	NoteClash       = "name.clash"
	NoteRefused     = "refused"
	NoteWaits       = "waits"
	NoteGone        = "gone"
)

type bridge struct {
	in       In
	native   native
	id       string
	locks    string // directory of locks and of moved lock directories
	hub      team.Watcher
	owners   map[string]string // see ownerOf
	patience time.Duration     // recordWithin
	starts   starts
	next     time.Time // when a pass is due although nothing changes; zero: never
	taken    *taker
	told     map[string]bool // refusals and conflicts that were reported
	passes   atomic.Int64    // for tests: constant at rest
	since    int64           // mail posted up to here predates the bridge
	// rest pauses after a pass; tests replace it.
	rest func(context.Context, time.Duration) error
}

// Run mirrors until ctx ends or the native team is deleted; neither is an error. A second bridge
// of the same team is refused: CodeConflict (bridged).
func Run(ctx context.Context, in In) (err error) {
	b, unlock, err := open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := b.begin(ctx); err != nil {
		return err
	}
	b.say(NoteJoined, b.native.name, "writes only below "+b.native.team()+" and "+b.native.tasks())
	if in.Once {
		return b.ended(ctx, b.retried(ctx, b.pass))
	}
	return b.follow(ctx)
}

// onceWait bounds how long a single synchronisation waits for files being written, not its work.
const onceWait = 10 * time.Second

// retried tries something until it need not be tried again.
func (b *bridge) retried(ctx context.Context, try func(context.Context) (soon bool, err error)) error {
	late := time.NewTimer(onceWait)
	defer late.Stop()
	t := time.NewTicker(firstPause)
	defer t.Stop()
	for {
		soon, err := try(ctx)
		if err == nil && !soon || err != nil && !passing(err) {
			return err
		}
		select {
		case <-t.C:
		case <-late.C:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

func open(ctx context.Context, in In) (*bridge, func() error, error) {
	if !in.Caller.Person {
		return nil, nil, team.Errorf(team.CodeDenied, "only a person may bridge two teams: the native lead speaks as the lead of this team").
			WithReason(team.ReasonRole).WithHint("ask the person to run teamctl bridge")
	}
	dir, err := filepath.Abs(in.Dir)
	if err != nil {
		return nil, nil, team.Errorf(team.CodeInvalid, "resolve %s: %w", in.Dir, err)
	}
	name, err := FindNative(dir, in.Native)
	if err != nil {
		return nil, nil, err
	}
	n := native{dir: dir, name: name}
	sum := sha256.Sum256([]byte(n.id()))
	b := &bridge{in: in, native: n, id: n.id(), hub: in.Team.Env.Watch, told: map[string]bool{}, owners: map[string]string{}, patience: recordWithin,
		starts: starts{startWithin, marksWithin, readsWithin}, rest: pause.For,
		locks: filepath.Join(in.Team.Layout.Locks(), "bridge-"+hex.EncodeToString(sum[:6]))}
	b.taken = newTaker(n, b.box)
	if b.hub == nil {
		b.hub = new(dirwatch.Hub)
	}
	for _, d := range []string{b.locks, n.tasks()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, nil, team.Errorf(team.CodeUnavailable, "make %s: %w", d, err)
		}
	}
	if err := os.Mkdir(n.inboxes(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // its team may be deleted by now
		return nil, nil, team.Errorf(team.CodeUnavailable, "make %s: %w", n.inboxes(), err)
	}
	lock, ok, err := filelock.TryLock(filepath.Join(in.Team.Layout.Locks(), "bridge.lock"))
	if err != nil {
		return nil, nil, team.Errorf(team.CodeUnavailable, "lock the bridge: %w", err)
	}
	if !ok {
		return nil, nil, team.Errorf(team.CodeConflict, "team %q is bridged already, by another process", in.Team.Layout.Key).WithReason(team.ReasonBridged)
	}
	if err := n.sweepLocks(); err != nil {
		return nil, nil, errors.Join(team.Errorf(team.CodeUnavailable, "free the locks of a bridge that was killed: %w", err), lock.Unlock())
	}
	return b, lock.Unlock, nil
}

// begin settles the drafts of a killed bridge, and records from which message on mail is mirrored:
// not earlier mail.
func (b *bridge) begin(ctx context.Context) error {
	if err := b.settleDrafts(ctx); err != nil {
		return err
	}
	known, err := b.led().Setting(ctx, sinceSetting+b.id, &b.since)
	if err != nil || known {
		return err
	}
	last, err := b.led().Messages(ctx, ledger.MessageFilter{Newest: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(last) > 0 {
		b.since = last[0].Seq
	}
	return b.led().Set(ctx, sinceSetting+b.id, b.since)
}

// sinceSetting is the prefix of the setting with b.since of a bridge.
const sinceSetting = "bridge.since."

// Retry pauses for temporary errors: after the last one only a change of a file or of the ledger
// triggers another attempt.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 30 * time.Second
)

// restAfter is the pause after a pass that took so long: changes that do not end cost a third of a
// processor at most, however much there is to compare. Mail is late by no more than restMost, even
// after a pass that has waited for a lock of the program, or has mirrored a whole board.
func restAfter(took time.Duration) time.Duration { return min(2*took, restMost) }

const restMost = 5 * time.Second

func (b *bridge) follow(ctx context.Context) error {
	wakes := make(chan struct{}, 1)
	wake := func() {
		select {
		case wakes <- struct{}{}:
		default:
		}
	}
	tell := func(team.FileEvent) { wake() }
	watches := []*watch{{dir: b.native.team()}, {dir: b.native.inboxes()}, {dir: b.native.tasks()}, {dir: filepath.Dir(b.native.tasks())}}
	defer func() {
		for _, w := range watches {
			w.end()
		}
	}()
	changes, stop, err := b.in.Team.Ledger.Changes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	defer b.taken.follow(wake)()
	retryIn := firstPause
	again := time.NewTimer(0)
	defer again.Stop()
	later := time.NewTimer(lastPause)
	defer later.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wakes:
			retryIn = firstPause
		case _, ok := <-changes:
			if !ok {
				return nil
			}
			retryIn = firstPause
		case <-again.C:
		case <-later.C:
		}
		began, soon := time.Now(), false
		err := b.watch(watches, tell)
		if err == nil {
			soon, err = b.pass(ctx)
		}
		switch {
		case err != nil && !passing(err):
			return b.ended(ctx, err)
		case err != nil:
			b.sayOnce(NoteWaits, "", err.Error())
			soon = true
		}
		if !soon {
			retryIn = firstPause
			again.Stop()
		} else if retryIn <= lastPause {
			again.Reset(retryIn)
			retryIn *= 2
		}
		if later.Stop(); !b.next.IsZero() {
			later.Reset(time.Until(b.next))
		}
		if b.rest(ctx, restAfter(time.Since(began))) != nil {
			return nil
		}
	}
}

// watch is a watched directory; one that was deleted and created again is another.
type watch struct {
	dir  string
	info fs.FileInfo
	stop func()
}

func (w *watch) end() {
	if w.stop != nil {
		w.stop()
	}
}

// watch watches directories that are not watched yet. It waits for a missing directory and does
// not create it: the program may be deleting the team.
func (b *bridge) watch(all []*watch, tell func(team.FileEvent)) error {
	for _, w := range all {
		info, err := os.Stat(w.dir)
		if err == nil && w.info != nil && os.SameFile(info, w.info) {
			continue
		}
		w.end()
		w.info, w.stop = nil, nil
		if err == nil {
			w.stop, err = b.hub.Watch(w.dir, tell)
		}
		if b.native.gone() {
			return errGone
		}
		if err != nil {
			return unsettled(fmt.Errorf("watch %s: %w", w.dir, err))
		}
		w.info = info
	}
	return nil
}

// passing reports whether an error may be temporary.
func passing(err error) bool {
	return team.IsCode(err, team.CodeUnavailable) || team.IsCode(err, team.CodeTimeout) || team.IsCode(err, team.CodeConflict)
}

// ended returns the bridge's result for an error of a pass.
func (b *bridge) ended(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errGone):
		b.say(NoteGone, b.native.name, "the team there is no more")
		return b.dismiss(ctx)
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// pass synchronises both sides; soon means that something must be retried.
func (b *bridge) pass(ctx context.Context) (soon bool, err error) {
	b.passes.Add(1)
	b.next = time.Time{}
	p, err := b.look(ctx)
	if err != nil {
		return false, err
	}
	for _, step := range []func(context.Context) error{p.rosterHere, p.rosterThere, p.syncTasks, p.mailHere, p.mailThere, p.rosterLeft} {
		if err := step(ctx); err != nil {
			if b.native.gone() {
				err = errGone
			}
			return p.soon, err
		}
	}
	return p.soon, nil
}

// pass is one comparison of both sides.
type pass struct {
	*bridge
	cfg     *team.Config
	bursts  bool
	members []ledger.Member // the roster, lead first
	rows    rows
	soon    bool
}

func (b *bridge) look(ctx context.Context) (*pass, error) {
	cfg, err := b.native.readConfig()
	if err != nil {
		return nil, err
	}
	p := &pass{bridge: b, cfg: cfg, bursts: takesBursts(cfg)}
	if p.members, err = b.in.Team.Ledger.Members(ctx, false); err != nil {
		return nil, err
	}
	return p, p.reread(ctx)
}

func (p *pass) reread(ctx context.Context) error {
	all, err := p.led().Mirrored(ctx, p.id)
	p.rows = newRows(all)
	return err
}

func (b *bridge) led() *ledger.Ledger { return b.in.Team.Ledger.As("bridge") }

func (b *bridge) row(kind ledger.MirrorKind, there, here string) ledger.Mirrored {
	return ledger.Mirrored{Bridge: b.id, Kind: kind, There: there, Here: here}
}

func (b *bridge) say(what, name, why string) {
	if b.in.Say != nil {
		b.in.Say(Note{At: time.Now().UnixMilli(), What: what, Name: name, Why: why})
	}
}

// sayOnce is say for facts that every pass finds again.
func (b *bridge) sayOnce(what, name, why string) {
	key := what + "\x00" + name + "\x00" + why
	if !b.told[key] {
		b.told[key] = true
		b.say(what, name, why)
	}
}

// refusal reports whether an error rejects only this one thing.
func refusal(err error) bool {
	for _, code := range []team.Code{team.CodeInvalid, team.CodeDenied, team.CodeLimit, team.CodeNotFound, team.CodeConflict} {
		if team.IsCode(err, code) {
			return true
		}
	}
	return false
}

// notWhole reports whether a text is still being written.
func notWhole(err error) bool { return team.ReasonOf(err) == team.ReasonUnsettled }
