//go:build !linux

package cgroup

import (
	"context"
	"os"

	"github.com/teamctl/teamctl/team"
)

// Group is one generation's control group; there is none on this system.
type Group struct{}

// Probe looks at what is possible for this process.
func Probe() Support { return Support{Why: "this system has no control groups"} }

// Create is ErrUnsupported.
func Create(string) (*Group, error) { return nil, ErrUnsupported }

// Open is ErrUnsupported.
func Open(string) (*Group, error) { return nil, ErrUnsupported }

// Find is ErrUnsupported.
func Find(string) (*Group, error) { return nil, ErrUnsupported }

// Sweep removes nothing.
func Sweep(string) {}

// Leave does nothing.
func Leave() error { return nil }

// Contained is false.
func Contained() bool { return false }

// Path is empty.
func (g *Group) Path() string { return "" }

// FD is ErrUnsupported, as are the methods below.
func (g *Group) FD() (*os.File, error) { return nil, ErrUnsupported }

// SetLimits sets nothing.
func (g *Group) SetLimits(team.Limits) (Applied, error) { return Applied{}, ErrUnsupported }

// PIDs lists nothing.
func (g *Group) PIDs() ([]int, error) { return nil, ErrUnsupported }

// Kill kills nothing.
func (g *Group) Kill() error { return ErrUnsupported }

// Populated knows nothing.
func (g *Group) Populated() (bool, error) { return false, ErrUnsupported }

// Frozen knows nothing.
func (g *Group) Frozen() (bool, error) { return false, ErrUnsupported }

// Freeze freezes nothing.
func (g *Group) Freeze(context.Context, bool) error { return ErrUnsupported }

// OOMKills counts nothing.
func (g *Group) OOMKills() (int64, error) { return 0, nil }

// Remove removes nothing.
func (g *Group) Remove() error { return nil }
