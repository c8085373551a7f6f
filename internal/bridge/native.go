package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/team"
)

// lockWait bounds the wait for a lock of the other program, which holds its locks for
// milliseconds; an abandoned one becomes stale after mkdirlock.Stale.
const lockWait = 15 * time.Second

// lockMode is the mode of the bridge's own lock directories for the config and for tasks. No other
// program uses it, so a bridge recognises the locks of a killed one.
const lockMode = 0o711

// sweepLocks removes the locks of a killed bridge: the program would wait for them until they are
// stale, and some versions drop the write.
func (n native) sweepLocks() error {
	return errors.Join(mkdirlock.Sweep(n.team(), lockMode), mkdirlock.Sweep(n.tasks(), lockMode), mkdirlock.Sweep(n.inboxes(), inbox.LockMode))
}

// native is a native team: two directories.
type native struct {
	dir  string // the program's configuration directory, absolute
	name string // name of the team
}

func (n native) team() string    { return filepath.Join(n.dir, "teams", n.name) }
func (n native) config() string  { return filepath.Join(n.team(), "config.json") }
func (n native) inboxes() string { return filepath.Join(n.team(), "inboxes") }
func (n native) tasks() string   { return filepath.Join(n.dir, "tasks", n.name) }

// id identifies the bridge in the ledger.
func (n native) id() string { return "claude:" + n.dir + ":" + n.name }

// FindNative finds the native team in dir. With an empty name it is the only one. Errors:
// CodeNotFound (no_native_team), CodeInvalid (native_team: several, or a name that the program
// itself spells in two ways).
func FindNative(dir, name string) (string, error) {
	if name == "" {
		all, err := filepath.Glob(filepath.Join(glob.Escape(dir), "teams", "*", "config.json"))
		if err != nil {
			return "", team.Errorf(team.CodeInvalid, "look for teams in %s: %w", dir, err)
		}
		names := make([]string, len(all))
		for i, p := range all {
			names[i] = filepath.Base(filepath.Dir(p))
		}
		switch len(names) {
		case 0:
			return "", team.Errorf(team.CodeNotFound, "there is no team in %s", filepath.Join(dir, "teams")).
				WithReason(team.ReasonNoNativeTeam).WithHint("start the lead first: it makes its team; or say --config-dir")
		case 1:
			name = names[0]
		default:
			return "", team.Errorf(team.CodeInvalid, "there are several teams in %s: %s", dir, strings.Join(names, ", ")).
				WithReason(team.ReasonNativeTeam).WithHint("teamctl bridge claude --native " + names[0])
		}
	}
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(name, "-") == "" {
		return "", team.Errorf(team.CodeInvalid, "the team name %q cannot be bridged: the program spells it differently in different places", name).
			WithReason(team.ReasonNativeTeam).WithHint("give the team there a name of a-z, 0-9 and '-'")
	}
	if _, err := os.Stat(filepath.Join(dir, "teams", name, "config.json")); err != nil {
		return "", team.Errorf(team.CodeNotFound, "there is no team %q in %s", name, dir).
			WithReason(team.ReasonNoNativeTeam).WithHint("ls " + team.ShellQuote(filepath.Join(dir, "teams")))
	}
	return name, nil
}

// inboxName returns an agent's name as spelled in the name of its mailbox.
func inboxName(agent string) string {
	return regexp.MustCompile(`[^A-Za-z0-9_-]`).ReplaceAllString(agent, "-")
}

func (b *bridge) box(agent string) (*inbox.Box, error) {
	return inbox.Open(b.native.inboxes(), b.locks, inboxName(agent))
}

// boxFile is the name of the file of an agent's mailbox.
func boxFile(agent string) string { return inboxName(agent) + ".json" }

// errGone means that the native team was deleted.
var errGone = errors.New("the team is gone")

// unsettled returns an error that the next change of a file resolves.
func unsettled(err error) error {
	return team.Errorf(team.CodeUnavailable, "%w", err).WithReason(team.ReasonUnsettled)
}

// parseNative parses the program's config.
func parseNative(data []byte) (*team.Config, error) {
	cfg, err := team.ParseConfig(data)
	if err != nil { // empty or incomplete: it is being written
		return nil, unsettled(errors.New("config.json is not whole"))
	}
	return cfg, nil
}

// gone reports whether the native team was deleted.
func (n native) gone() bool {
	_, err := os.Stat(n.team())
	return errors.Is(err, fs.ErrNotExist)
}

func (n native) readConfig() (*team.Config, error) {
	data, err := os.ReadFile(n.config())
	if errors.Is(err, fs.ErrNotExist) {
		if n.gone() {
			return nil, errGone
		}
		return nil, unsettled(errors.New("there is no config.json"))
	}
	if err != nil {
		return nil, unsettled(err)
	}
	return parseNative(data)
}

// editConfig changes config.json with edit, which returns whether it changed anything and may be
// called again with another writer's changes.
func (n native) editConfig(ctx context.Context, edit func(*team.Config) bool) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	err := mkdirlock.Hold(ctx, n.config()+".lock", lockMode, func(held func() error) error {
		old, err := os.Open(n.config())
		if err != nil {
			return err
		}
		defer func() { _ = old.Close() }()
		for range 20 {
			was, err := whole(old)
			if err != nil {
				return err
			}
			cfg, err := parseNative(was)
			if err != nil {
				return err
			}
			if !edit(cfg) {
				return nil
			}
			data, err := cfg.Marshal()
			if err != nil {
				return err
			}
			if now, err := whole(old); err != nil || !bytes.Equal(now, was) {
				continue // another program writes without the lock
			}
			if err := held(); err != nil {
				return err
			}
			if err := n.replaceConfig(old, data); err != nil {
				return err
			}
			again, err := overwritten(ctx, old, was)
			if err != nil || !again {
				return err
			}
		}
		return errors.New("another program keeps writing it")
	})
	if err != nil {
		return unsettled(fmt.Errorf("change %s: %w", n.config(), err))
	}
	return nil
}

// replaceConfig renames data over config.json, which keeps its mode.
func (n native) replaceConfig(old *os.File, data []byte) error {
	info, err := old.Stat()
	if err != nil {
		return err
	}
	return atomicfile.Write(n.config(), data, info.Mode().Perm(), false)
}

func whole(f *os.File) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, 0, 64<<20))
}

// overwritten reports whether a writer with the old file open has written to it after it was
// replaced: its text is in no file any more and must be merged. It waits for a writer that is not
// finished.
func overwritten(ctx context.Context, old *os.File, was []byte) (bool, error) {
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for {
		now, err := whole(old)
		if err != nil || bytes.Equal(now, was) {
			return false, err
		}
		if _, err := parseNative(now); err == nil {
			return true, nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// ourMember returns the entry of our member for the program's config. Its pane does not exist in
// any tmux, since the program kills the pane of a member that it shuts down.
func ourMember(cfg *team.Config, name string, m memberFacts) team.ConfigMember {
	yes, no := true, false
	return team.ConfigMember{
		AgentID: team.AgentID(name, cfg.Name), Name: name, AgentType: m.kind, Model: m.model, Color: m.color, PlanModeRequired: &no,
		JoinedAt: m.joinedAt, TmuxPaneID: team.PaneInProcess, Cwd: m.cwd, BackendType: team.PaneInProcess, IsActive: &yes, Whole: true,
	}
}

type memberFacts struct {
	kind, model, color, cwd string
	joinedAt                int64
}

// isLead reports whether an entry of the config is the lead's.
func isLead(cfg *team.Config, m team.ConfigMember) bool {
	return m.Name == team.LeadName || m.AgentID == cfg.LeadAgentID
}

// takesBursts reports whether the program reads entries that are appended while it marks read
// ones. Older versions lose them; newer ones write the lead into the config.
func takesBursts(cfg *team.Config) bool {
	data, err := cfg.Marshal()
	if err != nil {
		return false
	}
	obj, err := team.ParseJSONObject(data)
	return err == nil && obj.Index("leadProcess") >= 0
}

// mayAdd returns the condition for adding to a native mailbox.
func mayAdd(bursts bool) func([]inbox.Entry) bool {
	return func(there []inbox.Entry) bool {
		return bursts || !slices.ContainsFunc(there, func(e inbox.Entry) bool { return !e.Read })
	}
}

// msgV is the version in the entries of newer programs.
var msgV = json.RawMessage("1")
