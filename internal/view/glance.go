package view

import (
	"fmt"
	"strings"
	"time"
)

// Glance is a one-line summary of a team.
type Glance struct {
	Team   string `json:"team"`
	Needs  int    `json:"needs"` // number of needs that are not put off
	Active int    `json:"active"`
	Ready  int    `json:"ready"`
	Failed int    `json:"failed"`
	Stuck  int    `json:"stuck"`
	Done   int    `json:"done"`
	Total  int    `json:"total"`
	Cost   string `json:"-"` // see Spent.Money
	// Down is since when no supervisor is running although members should be.
	Down time.Time `json:"supervisorDownSince,omitzero"`
	// Silent reports that there is one, but it does not answer.
	Silent bool `json:"supervisorSilent,omitempty"`
	// Unread is why the team could not be read.
	Unread string `json:"unread,omitempty"`
}

// GlanceOf returns the Glance of a snapshot.
func GlanceOf(s Snapshot) Glance {
	c := s.Count()
	return Glance{
		Team: s.Team, Needs: len(Waiting(s.Needs)), Active: c.Active, Ready: c.Ready, Failed: c.Failed, Stuck: c.Stuck, Done: c.Done, Total: c.Total, Cost: s.Spent.Money(),
		Down: s.Down, Silent: s.Silent,
	}
}

// String returns the line, "demo !4 ▸4 ·1 ✗1 5/12": needs, tasks in progress, ready ones, failed
// ones, and how many of all are done. Zeros are omitted. A team that no supervisor maintains has a
// question mark before them, and one that could not be read has only that.
func (g Glance) String() string {
	parts := []string{Clean(g.Team)}
	if g.Unread != "" {
		return parts[0] + " ?"
	}
	if !g.Down.IsZero() {
		parts = append(parts, "?")
	}
	for _, p := range []struct {
		sign string
		n    int
	}{{"!", g.Needs}, {"▸", g.Active}, {"·", g.Ready}, {"✗", g.Failed}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s%d", p.sign, p.n))
		}
	}
	if g.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d", g.Done, g.Total))
	}
	return strings.Join(parts, " ")
}

// Glances returns several teams in one line.
func Glances(list []Glance) string {
	lines := make([]string, len(list))
	for i, g := range list {
		lines[i] = g.String()
	}
	return strings.Join(lines, "  ")
}

// ForTmux escapes a text for the status line of tmux, which interprets #[...] as a style and
// #(...) as a command.
func ForTmux(s string) string { return strings.ReplaceAll(Clean(s), "#", "##") }
