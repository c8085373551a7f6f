//go:build !linux

package holder

import "github.com/teamctl/teamctl/backends"

// lockHolder is not available on this system: callers use the process table.
func lockHolder(string) (backends.ProcID, bool) { return backends.ProcID{}, false }
