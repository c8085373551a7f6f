// Package publish writes config.json, the roster as other programs read it, from the ledger.
package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Config writes config.json from the ledger if that changes it. Keys that we do
// not know are kept. A config.json that cannot be read is moved aside, never
// overwritten: the ledger is the truth.
func Config(ctx context.Context, l team.Layout, led *ledger.Ledger) error {
	return new(File).Publish(ctx, l, led)
}

// File is a config.json that is written again and again by one who is mostly
// alone with it: while it has the text that we left, it is not parsed anew.
type File struct {
	mu   sync.Mutex
	text []byte
	cfg  *team.Config // what has text; nil before the first writing
}

// Publish is Config.
func (f *File) Publish(ctx context.Context, l team.Layout, led *ledger.Ledger) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	lock, err := filelock.Lock(ctx, l.ConfigLock())
	if err != nil {
		return fmt.Errorf("lock config.json: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	// Read under the lock: the last to publish has seen the newest roster.
	row, err := led.Team(ctx)
	if err != nil {
		return err
	}
	members, err := led.Members(ctx, false)
	if err != nil {
		return err
	}
	old, err := regular.ReadFile(l.Config())
	cfg, moved := f.cfg, ""
	f.cfg = nil // until it is written, what is filled in is in no file
	switch {
	case errors.Is(err, os.ErrNotExist):
		cfg = &team.Config{}
	case err != nil && !errors.Is(err, regular.ErrNotRegular):
		return fmt.Errorf("read config.json: %w", err)
	case err != nil || cfg == nil || !bytes.Equal(old, f.text):
		if err == nil {
			cfg, err = team.ParseConfig(old)
		}
		if err != nil {
			moved = fmt.Sprintf("%s.corrupt-%d", l.Config(), time.Now().UnixMilli())
			if err := os.Rename(l.Config(), moved); err != nil {
				return fmt.Errorf("move corrupt config.json aside: %w", err)
			}
			old, cfg = nil, &team.Config{}
		}
	}
	fillConfig(cfg, row, members)
	data, err := cfg.Marshal()
	if err != nil {
		return fmt.Errorf("encode config.json: %w", err)
	}
	if !bytes.Equal(old, data) {
		if err := atomicfile.Write(l.Config(), data, 0o600, false); err != nil {
			return err
		}
	}
	f.text, f.cfg = data, cfg
	if moved == "" {
		return nil
	}
	_, err = led.Event(ctx, ledger.Event{What: team.EventConfigAside, ID: filepath.Base(moved)})
	return err
}

// Sweep removes what publishers left that were killed: nobody writes while
// we hold their lock.
func Sweep(ctx context.Context, l team.Layout) (int, error) {
	lock, err := filelock.Lock(ctx, l.ConfigLock())
	if err != nil {
		return 0, fmt.Errorf("lock config.json: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	return atomicfile.SweepTemp(l.Dir, 0)
}

// fillConfig brings the roster of the ledger into cfg; members that cfg knows
// keep their unknown keys.
func fillConfig(cfg *team.Config, row ledger.TeamRow, members []ledger.Member) {
	cfg.Name, cfg.Description, cfg.CreatedAt = row.Name, row.Description, row.CreatedAt
	cfg.LeadAgentID, cfg.LeadSessionID = team.AgentID(team.LeadName, row.Key), row.LeadSession
	cfg.HiddenPaneIDs = hiddenNow(row.Hidden, members)
	list := make([]team.ConfigMember, 0, len(members))
	for _, m := range members {
		c := team.ConfigMember{}
		if known := cfg.Member(m.AgentID); known != nil {
			c = *known
		}
		c.AgentID, c.Name, c.AgentType, c.Model = m.AgentID, m.Name, m.Spec.AgentType, m.Spec.Model
		c.JoinedAt, c.Cwd, c.Whole = m.JoinedAt, m.Spec.Cwd, true
		if m.Name != team.LeadName {
			if c.AgentType == "" {
				c.AgentType = m.Spec.Agent
			}
			plan := m.Spec.PlanRequired || m.Spec.Mode == team.ModePlan // an approved plan does not change what was asked of it
			c.Prompt, c.Color, c.PlanModeRequired = m.Spec.Prompt, m.Color, &plan
			c.TmuxPaneID, c.BackendType, c.WorktreePath = m.PaneID, m.Spec.Backend, m.Worktree
			c.Mode = string(m.Spec.Mode)
			if m.Worktree != "" {
				c.Cwd = m.Worktree
			}
			// The process of a joined program is not observed: it is idle only if it reports so.
			runs := m.Observed == team.Running || team.KindOf(m.Spec.Agent).External
			active := runs && m.Activity != team.Idle
			c.IsActive = &active
		}
		list = append(list, c)
	}
	cfg.Members = list
}

// hiddenNow are the hidden panes that a member of the roster is in.
func hiddenNow(hidden []string, members []ledger.Member) []string {
	return slices.DeleteFunc(slices.Clone(hidden), func(id string) bool {
		return !slices.ContainsFunc(members, func(m ledger.Member) bool { return m.Name != team.LeadName && m.PaneID == id })
	})
}
