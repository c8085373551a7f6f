package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Publish writes config.json from the ledger if that changes it. Keys that we do
// not know are kept. A config.json that cannot be read is moved aside, never
// overwritten: the ledger is the truth.
func Publish(ctx context.Context, l team.Layout, led *ledger.Ledger) error {
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
	var moved string
	cfg, err := team.ReadConfig(l.Config())
	switch {
	case err == nil:
	case team.IsCode(err, team.CodeNotFound):
		cfg = &team.Config{}
	case team.ReasonOf(err) == team.ReasonCorruptConfig:
		aside := fmt.Sprintf("%s.corrupt-%d", l.Config(), time.Now().UnixMilli())
		if err := os.Rename(l.Config(), aside); err != nil {
			return fmt.Errorf("move corrupt config.json aside: %w", err)
		}
		cfg, moved = &team.Config{}, aside
	default:
		return err
	}
	fillConfig(cfg, row, members)
	data, err := cfg.Marshal()
	if err != nil {
		return fmt.Errorf("encode config.json: %w", err)
	}
	old, err := os.ReadFile(l.Config())
	if err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read config.json: %w", err)
	}
	if err := atomicfile.Write(l.Config(), data, 0o600, false); err != nil || moved == "" {
		return err
	}
	_, err = led.Event(ctx, ledger.Event{What: EventConfigAside, ID: filepath.Base(moved)})
	return err
}

// EventConfigAside says that a config.json could not be read, and under which name it
// lies beside the new one.
const EventConfigAside = "config.aside"

// sweepConfig removes what publishers left that were killed: nobody writes while
// we hold their lock.
func sweepConfig(ctx context.Context, l team.Layout) (int, error) {
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
		c.JoinedAt, c.Cwd = m.JoinedAt, m.Spec.Cwd
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
			// Nobody sees the process of one that joined by itself: it is idle when it says so.
			runs := m.Observed == team.Running || m.Spec.Agent == ledger.AgentExternal
			active := runs && m.Activity != team.Idle
			c.IsActive = &active
		}
		list = append(list, c)
	}
	cfg.Members = list
}
