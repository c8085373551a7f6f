//go:build !linux

package tmux

import "github.com/teamctl/teamctl/backends"

// stray is for systems where a tmux server can be told by the process table.
func stray(string) (id backends.ProcID, ok bool) { return id, false }
