//go:build !linux

package cgroup

import (
	"context"
	"os"

	"github.com/teamctl/teamctl/team"
)

// Group is one generation's control group; there is none on this system.
type Group struct{}

// Probe determines what is possible for this process.
func Probe() Support { return Support{Why: "this system has no control groups"} }

// Create returns ErrUnsupported.
func Create(string) (*Group, error) { return nil, ErrUnsupported }

// Open returns ErrUnsupported.
func Open(string) (*Group, error) { return nil, ErrUnsupported }

// Find returns ErrUnsupported.
func Find(string) (*Group, error) { return nil, ErrUnsupported }

// Sweep removes nothing.
func Sweep(string) {}

// Leave does nothing.
func Leave() error { return nil }

// Contained returns false.
func Contained() bool { return false }

// Path returns "".
func (g *Group) Path() string { return "" }

// FD returns ErrUnsupported, as do most methods below.
func (g *Group) FD() (*os.File, error) { return nil, ErrUnsupported }

// SetLimits sets no limits.
func (g *Group) SetLimits(team.Limits) (Applied, error) { return Applied{}, ErrUnsupported }

// PIDs lists no processes.
func (g *Group) PIDs() ([]int, error) { return nil, ErrUnsupported }

// Kill kills no processes.
func (g *Group) Kill() error { return ErrUnsupported }

// Populated is unsupported.
func (g *Group) Populated() (bool, error) { return false, ErrUnsupported }

// Frozen is unsupported.
func (g *Group) Frozen() (bool, error) { return false, ErrUnsupported }

// Freeze freezes no processes.
func (g *Group) Freeze(context.Context, bool) error { return ErrUnsupported }

// OOMKills returns 0.
func (g *Group) OOMKills() (int64, error) { return 0, nil }

// Remove removes nothing.
func (g *Group) Remove() error { return nil }
