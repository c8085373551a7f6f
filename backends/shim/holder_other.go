//go:build !linux

package shim

import "github.com/teamctl/teamctl/backends"

// lockHolder is not known here: the process table has to do.
func lockHolder(string) (backends.ProcID, bool) { return backends.ProcID{}, false }
