//go:build !linux

package tmux

import "github.com/teamctl/teamctl/backends"

// stray is only implemented where the process table identifies a tmux server.
func stray(string) (id backends.ProcID, ok bool) { return id, false }
