// Command teamctl-shim is the parent process of one agent, the writer of one agent's log, and the
// hook of an agent for which nothing waits. A team's supervisor uses it if it is beside teamctl and
// has the same bundle.Version; otherwise teamctl does the same work itself, with a slower start and
// more memory. It links neither SQLite nor a command line nor HTTP.
package main

import (
	"os"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/internal/hookcall"
)

func main() {
	args := os.Args[1:]
	if len(args) > 2 && args[2] == bundle.StepHook {
		os.Exit(hookcall.Main(args[1], args[2:], args[0] == bundle.Version))
	}
	os.Exit(shim.SmallMain(args, pty.Host()))
}
